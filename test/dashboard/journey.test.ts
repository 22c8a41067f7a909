/** First visit of a new user, without a reload: sign-up, key, chat, charge, revocation. */
import { randomUUID } from "node:crypto";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { LOOKS, openContext } from "../support/dashboard.js";
import { chatChunks, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { sse } from "../support/upstream-replies.js";

describe.skipIf(NO_BROWSER)("new user", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
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

  const looks = LOOKS.filter(({ scheme, width }) => (scheme === "light") === width > 600);
  it.each(looks)("signs up, creates a key, chats, sees the charge, and revokes the key: $scheme, $width px", async (look) => {
    const context = await openContext(browser, look);
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    let loads = 0;
    page.on("load", () => {
      loads += 1;
    });
    const picture = (name: string) => screenshot(page, `journey-${name}-${look.scheme}-${look.width}`);
    const isPhone = look.width < 600;
    /** Uses the navigation, which is collapsed on a phone. */
    const goTo = async (name: string) => {
      if (isPhone) await page.getByRole("button", { name: "Open navigation" }).click();
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
    };
    const balance = () => page.locator("header [data-balance]").getAttribute("data-balance");

    await page.goto(`${app.baseUrl}/sign-up?return_to=/dashboard`);
    await picture("1-sign-up");
    await page.getByLabel("Name").fill("Ada");
    await page.getByLabel("E-mail address").fill(`${randomUUID()}@example.com`);
    await page.getByLabel("Password").fill("a long enough password");
    await page.getByRole("button", { name: "Sign up" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await picture("2-overview");
    const loadsBefore = loads;
    const granted = Number(await balance());
    expect(granted).toBeGreaterThan(0);

    await goTo("Keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("My first program");
    await dialog.getByRole("button", { name: "Create key" }).click();
    await dialog.getByText("Copy this key now").waitFor();
    const key = await dialog.locator("[data-key-value] .mono").innerText();
    await picture("3-key");
    await dialog.getByRole("button", { name: "Done" }).click();

    await goTo("Playground");
    if (isPhone) await page.getByRole("button", { name: /^Model and settings/ }).click();
    await choose(page.getByRole("combobox", { name: "Model" }), "acme/chat");
    app.upstream.replyNext(
      sse(
        [...chatChunks(["Wind turns ", "wheels."]), usageChunk(wireUsage(10, 20))].map((chunk) => ({
          do: "event" as const,
          data: JSON.stringify(chunk),
        })),
      ),
    );
    await page.getByRole("textbox", { name: "Message" }).fill("What does wind do?");
    await page.getByRole("textbox", { name: "Message" }).press("Enter");
    await page.getByText("Wind turns wheels.").waitFor();
    await expect.poll(async () => Number(await balance())).toBeLessThan(granted);
    await picture("4-playground");

    await goTo("Overview");
    const feed = page.getByRole("region", { name: "Requests" });
    await expect.poll(() => feed.getByRole("cell", { name: "acme/chat", exact: true }).count()).toBe(1);
    const before = Number(await balance());
    expect((await chat(key)).status).toBe(200);
    await expect.poll(() => feed.getByRole("cell", { name: "acme/chat", exact: true }).count()).toBe(2);
    await expect.poll(async () => Number(await balance())).toBeLessThan(before);
    await picture("5-charged");

    await goTo("Keys");
    await page.getByRole("link", { name: "My first program" }).click();
    await page.getByRole("button", { name: "Revoke" }).click();
    await picture("6-revoking");
    await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await expect.poll(async () => (await chat(key)).status).toBe(401);
    await picture("7-revoked");

    expect(loads).toBe(loadsBefore);
    await context.close();
  });
});

/** Options begin with the ID and continue with prices and capabilities. */
async function choose(field: Locator, id: string): Promise<void> {
  await field.fill(id);
  await field
    .page()
    .getByRole("option")
    .filter({ has: field.page().getByText(id, { exact: true }) })
    .click();
}
