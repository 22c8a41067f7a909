/** The keys' page in a browser: a key is made, tried, limited and revoked; what the gateway refuses stands at its field. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_KEY_NAME_CHARS_MAX } from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, visitDashboard } from "../support/dashboard.js";

describe.skipIf(NO_BROWSER)("the keys' page", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    visit = await visitDashboard(browser, app);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  const chat = (key: string) =>
    fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }] }),
    });
  let key = "";

  it("says at the field what the gateway refuses, and keeps what was typed", async () => {
    const { page } = visit;
    await visit.open("keys");
    await page.getByText("You have no keys yet").waitFor();
    await page.getByRole("button", { name: "Make a key" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("n".repeat(300));
    await dialog.getByRole("button", { name: "Make the key" }).click();

    const field = dialog.getByLabel("Name");
    await expect.poll(() => field.getAttribute("aria-invalid")).toBe("true");
    expect(await field.inputValue()).toHaveLength(300);
    await field.fill("n".repeat(API_KEY_NAME_CHARS_MAX + 1));
    await dialog.getByLabel("Budget in credits").fill("99999999999999");
    await dialog.getByRole("radio", { name: "Only some" }).check();
    await dialog.getByRole("combobox", { name: "Which models" }).fill("acme/chat");
    await page.getByRole("option", { name: "acme/chat", exact: true }).click();
    await dialog.getByRole("button", { name: "Make the key" }).click();
    for (const label of ["Name", "Budget in credits"]) {
      const wrong = dialog.getByLabel(label);
      await expect.poll(() => wrong.getAttribute("aria-invalid"), { message: label }).toBe("true");
      const said = await wrong.getAttribute("aria-describedby");
      const message = dialog.locator(`[id="${said?.split(" ").find((id) => id.endsWith("-error"))}"]`);
      expect(await message.innerText()).toMatch(label === "Name" ? /120/ : /credit|at most|less/i);
    }
    await screenshot(page, "key-refused");
  });

  it("makes a key, shows it once, and it works", async () => {
    const { page } = visit;
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Weather app");
    await dialog.getByLabel("Budget in credits").fill("0.5");
    await dialog.getByRole("button", { name: "Make the key" }).click();
    await dialog.getByText("Copy it now").waitFor();
    key = await dialog.locator("[data-key-value] .mono").innerText();
    await dialog.getByRole("tab", { name: "GraphQL" }).click();
    const command = await dialog.getByRole("region", { name: "Example for graphql" }).innerText();
    await screenshot(page, "key-made");
    const [, body = ""] = /-d '(.+)'$/.exec(command.trim()) ?? [];
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const answered = await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers, body });
    expect(await answered.json()).toMatchObject({ data: { createChatCompletion: { receipt: { cost: expect.any(String) } } } });
    await dialog.getByRole("button", { name: "I have copied it" }).click();
    await dialog.waitFor({ state: "hidden" });

    expect((await chat(key)).status).toBe(200);
    await page.getByRole("link", { name: "Weather app" }).waitFor();
    expect(await page.content()).not.toContain(key);
  });

  it("shows what was done with it, and changes no more than what was touched", async () => {
    const { page } = visit;
    await page.getByRole("link", { name: "Weather app" }).click();
    await page.getByRole("heading", { level: 1, name: "Weather app" }).waitFor();
    await page.getByRole("row", { name: /^acme\/chat \d/ }).waitFor();
    await screenshot(page, "key");
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Weather service");
    // Meanwhile another tab changes the same field, and another.
    const other = await visitDashboard(browser, app, { person: visit.person });
    await other.open(new URL(page.url()).pathname.replace("/dashboard/", ""));
    await other.page.getByRole("button", { name: "Edit" }).click();
    const theirs = other.page.getByRole("dialog");
    await theirs.getByLabel("Name").fill("Rain app");
    await theirs.getByRole("combobox", { name: "Expires" }).click();
    await other.page.getByRole("option", { name: "in a week" }).click();
    await theirs.getByRole("button", { name: "Save" }).click();
    await other.page.getByRole("heading", { level: 1, name: "Rain app" }).waitFor();
    await other.context.close();

    await dialog.getByText("This was changed elsewhere while you edit it").waitFor();
    await dialog.getByText("Name, which is now “Rain app”").waitFor();
    expect(await dialog.getByLabel("Name").inputValue()).toBe("Weather service");
    await screenshot(page, "key-elsewhere");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Weather service" }).waitFor();

    await page.getByText("in 6 days").waitFor();
    expect(await page.getByText("acme/chat", { exact: true }).count()).toBeGreaterThan(0);
  });

  it("tells another tab when it is revoked, and the key is refused from then on", async () => {
    const { page } = visit;
    const other = await visitDashboard(browser, app, { person: visit.person });
    await other.open("keys");
    await other.page.getByRole("link", { name: "Weather service" }).waitFor();
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke the key" }).click();

    await other.page.getByText("A key was revoked").waitFor();
    await other.page.getByText("You have no keys yet").waitFor();
    await page.getByText("This key is revoked").waitFor();
    expect(await page.getByText("A key was revoked").count()).toBe(0);
    expect((await chat(key)).status).toBe(401);
    expect([...visit.browserErrors, ...other.browserErrors].filter((text) => !text.includes("400"))).toEqual([]);
    await other.context.close();
  });
});
