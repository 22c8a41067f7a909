/** Keys page: creating, editing and revoking keys, and field errors. */
import { randomBytes, randomUUID } from "node:crypto";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_KEY_NAME_CHARS_MAX } from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, LOOKS, seriousFindings, visitDashboard } from "../support/dashboard.js";

describe.skipIf(NO_BROWSER)("keys page", () => {
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

  it("shows errors at their fields, and keeps the input", async () => {
    const { page } = visit;
    await visit.open("keys");
    await page.getByText("No keys yet").waitFor();
    await page.getByRole("button", { name: "Create key" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("n".repeat(300));
    await dialog.getByRole("button", { name: "Create key" }).click();

    const field = dialog.getByLabel("Name");
    await expect.poll(() => field.getAttribute("aria-invalid")).toBe("true");
    expect(await field.inputValue()).toHaveLength(300);
    await field.fill("n".repeat(API_KEY_NAME_CHARS_MAX + 1));
    await dialog.getByLabel("Budget in credits").fill("99999999999999");
    await dialog.getByRole("radio", { name: "Selected models" }).check();
    await dialog.getByRole("combobox", { name: "Allowed models" }).fill("acme/chat");
    await page.getByRole("option", { name: "acme/chat", exact: true }).click();
    await dialog.getByRole("button", { name: "Create key" }).click();
    for (const label of ["Name", "Budget in credits"]) {
      const wrong = dialog.getByLabel(label);
      await expect.poll(() => wrong.getAttribute("aria-invalid"), { message: label }).toBe("true");
      const described = await wrong.getAttribute("aria-describedby");
      const message = dialog.locator(`[id="${described?.split(" ").find((id) => id.endsWith("-error"))}"]`);
      expect(await message.innerText()).toMatch(label === "Name" ? /120/ : /credit|at most|less/i);
    }
    await screenshot(page, "key-refused");
  });

  it.each(LOOKS)("finds and sorts keys among more than a page: $scheme, $width px", async (look) => {
    const { page, context, person, browserErrors, open } = await visitDashboard(browser, app, { look });
    await app.database.prisma.apiKey.createMany({
      data: Array.from({ length: 120 }, (_, index) => ({
        ...{ id: randomUUID(), accountId: person.accountId, type: "secret" as const, hash: new Uint8Array(randomBytes(32)) },
        ...{ name: `service-${index}`, start: `sk_${String(index).padStart(7, "0")}`, spentNanocredits: BigInt(index) * 1_000_000_000n },
        createdAt: new Date(Date.now() - index * 60_000),
      })),
    });
    await open("keys");
    const links = page.getByRole("region", { name: "Your keys" }).getByRole("link");
    await page.getByText("120 keys").waitFor();
    await screenshot(page, `keys-many-${look.scheme}-${look.width}`);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Next page" }).click();
    await page.getByRole("link", { name: "service-50", exact: true }).waitFor();
    await page.getByLabel("Search").fill("service-11");
    await page.getByText("11 keys").waitFor();
    await page.getByRole("combobox", { name: "Sort by" }).click();
    await page.getByRole("option", { name: "Most spent" }).click();
    await expect.poll(() => links.first().innerText()).toBe("service-119");
    await page.getByRole("row", { name: /^service-119 sk_0000119… 119\.00/ }).waitFor();
    await page.getByLabel("Search").fill("none of them");
    await page.getByText("No keys match your search").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByLabel("Search pages, keys and models").fill("service-12");
    await page.getByRole("button", { name: /service-12\b/ }).click();
    await page.getByRole("heading", { level: 1, name: "service-12" }).waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("creates a working key, and shows it once", async () => {
    const { page } = visit;
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Weather app");
    await dialog.getByLabel("Budget in credits").fill("0.5");
    await dialog.getByRole("button", { name: "Create key" }).click();
    await dialog.getByText("Copy this key now").waitFor();
    key = await dialog.locator("[data-key-value] .mono").innerText();
    await dialog.getByRole("tab", { name: "GraphQL" }).click();
    const command = await dialog.getByRole("region", { name: "Example for graphql" }).innerText();
    await screenshot(page, "key-made");
    // Only the button closes it.
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    expect(await dialog.getByRole("button", { name: "Close" }).count()).toBe(0);
    expect(await dialog.locator("[data-key-value]").count()).toBe(1);
    const [, body = ""] = /-d '(.+)'$/.exec(command.trim()) ?? [];
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const answered = await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers, body });
    expect(await answered.json()).toMatchObject({ data: { createChatCompletion: { receipt: { cost: expect.any(String) } } } });
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "hidden" });

    expect((await chat(key)).status).toBe(200);
    await page.getByRole("link", { name: "Weather app" }).waitFor();
    expect(await page.content()).not.toContain(key);
  });

  it("shows the usage of a key, and saves edited fields only", async () => {
    const { page } = visit;
    await page.getByRole("link", { name: "Weather app" }).click();
    await page.getByRole("heading", { level: 1, name: "Weather app" }).waitFor();
    await page.getByRole("row", { name: /^acme\/chat \d/ }).waitFor();
    await screenshot(page, "key");
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Weather service");
    // Meanwhile another tab changes the same field and another one.
    const other = await visitDashboard(browser, app, { person: visit.person });
    await other.open(new URL(page.url()).pathname.replace("/dashboard/", ""));
    await other.page.getByRole("button", { name: "Edit" }).click();
    const theirs = other.page.getByRole("dialog");
    await theirs.getByLabel("Name").fill("Rain app");
    await theirs.getByRole("combobox", { name: "Expires" }).click();
    await other.page.getByRole("option", { name: "7 days" }).click();
    await theirs.getByRole("button", { name: "Save" }).click();
    await other.page.getByRole("heading", { level: 1, name: "Rain app" }).waitFor();
    await other.context.close();

    await dialog.getByText("Changed elsewhere while you were editing").waitFor();
    await dialog.getByText("Name: now “Rain app”").waitFor();
    expect(await dialog.getByLabel("Name").inputValue()).toBe("Weather service");
    await screenshot(page, "key-elsewhere");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Weather service" }).waitFor();

    await page.getByText("in 6 days").waitFor();
    expect(await page.getByText("acme/chat", { exact: true }).count()).toBeGreaterThan(0);
  });

  it("creates a management key, which creates keys and cannot generate", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app);
    await open("keys?new");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("terraform");
    await dialog.getByRole("switch", { name: "Management key" }).click({ force: true });
    expect(await dialog.getByRole("checkbox", { name: "Keys" }).count()).toBe(0);
    await screenshot(page, "key-management-new");
    await dialog.getByRole("button", { name: "Create key" }).click();
    const manager = (await page.locator("[data-key-value] .mono").textContent()) ?? "";
    await screenshot(page, "key-management");
    const answer = await fetch(`${app.baseUrl}/account/keys`, {
      method: "POST",
      headers: { Authorization: `Bearer ${manager}`, "Content-Type": "application/json" },
      body: JSON.stringify({ name: "made" }),
    });

    expect([answer.status, (await chat(manager)).status]).toEqual([200, 403]);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByText("management", { exact: true }).waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("adds a limit that renews, shows its use, and removes it", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app);
    await open("keys?new");
    await page.getByRole("dialog").getByLabel("Name").fill("limited");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    const limited = (await page.locator("[data-key-value] .mono").textContent()) ?? "";
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("link", { name: "limited" }).click();
    await page.getByRole("button", { name: "Add limit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("At most").fill("0");
    await dialog.getByRole("button", { name: "Add limit" }).click();
    await expect.poll(() => dialog.getByLabel("At most").getAttribute("aria-invalid")).toBe("true");
    await dialog.getByLabel("At most").fill("1");
    await dialog.getByRole("combobox", { name: "Of" }).click();
    await page.getByRole("option", { name: "requests", exact: true }).click();
    await screenshot(page, "key-limit-new");
    await dialog.getByRole("button", { name: "Add limit" }).click();
    await page.getByRole("cell", { name: "1 requests" }).waitFor();

    expect([(await chat(limited)).status, (await chat(limited)).status]).toEqual([200, 429]);
    await page.reload();
    await page.getByText("1 (100%)").waitFor();
    await screenshot(page, "key-limits");
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove limit" }).click();
    await page.getByText("No limits by minute, hour, day, week or month.").waitFor();
    expect(browserErrors.filter((text) => !text.includes("400"))).toEqual([]);
    await context.close();
  });

  it("revokes a key, and notifies other tabs", async () => {
    const { page } = visit;
    const other = await visitDashboard(browser, app, { person: visit.person });
    await other.open("keys");
    await other.page.getByRole("link", { name: "Weather service" }).waitFor();
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();

    await other.page.getByText("Key revoked").waitFor();
    await other.page.getByText("No keys yet").waitFor();
    await page.getByText("This key has been revoked").waitFor();
    expect(await page.getByText("Key revoked").count()).toBe(0);
    expect((await chat(key)).status).toBe(401);
    expect([...visit.browserErrors, ...other.browserErrors].filter((text) => !text.includes("400"))).toEqual([]);
    await other.context.close();
  });
});
