/** Apps in the dashboard: one is registered, asks its owner for a key by the link that is built for it, and is stopped again. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codes, execute, ok } from "../graphql/client.js";
import { ChatReceiptDocument, CreateApiKeyDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { signedIn } from "../support/sign-in.js";

describe.skipIf(NO_BROWSER)("apps in the dashboard", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("are registered, ask for a key by the built link, are seen to spend, and are revoked", async () => {
    const visit = await visitDashboard(browser, app);
    const { page } = visit;
    await visit.open("apps");
    await page.getByText("No app acts for you").waitFor();

    await page.getByRole("button", { name: "Register an app" }).first().click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("Haiku machine");
    await form.getByLabel("Redirect addresses").fill("javascript:alert(1)");
    await form.getByRole("button", { name: "Register the app" }).click();
    await form.getByText("must", { exact: false }).first().waitFor();
    expect(await form.getByLabel("Name").inputValue()).toBe("Haiku machine");
    // Some page that is there.
    const callback = `${app.baseUrl}/healthz`;
    await form.getByLabel("Redirect addresses").fill(callback);
    await form.getByRole("button", { name: "Register the app" }).click();
    const appKey = (await page.locator("[data-app-key]").innerText()).trim();
    expect(appKey).toMatch(/^pk_/);
    await page.getByRole("button", { name: "Build a link with it" }).click();
    await page.getByRole("heading", { level: 1, name: "Haiku machine" }).waitFor();

    await page.getByLabel("Budget in credits").fill("2");
    await page.getByLabel("Balance: what they can spend").check();
    await page.getByLabel("Answer", { exact: true }).first().click();
    await page.getByRole("option", { name: "The key itself" }).click();
    await screenshot(page, "apps-link-builder");
    const link = await page.getByRole("region", { name: "Authorization link" }).innerText();
    await page.getByText("On a device").click();
    const commands = await page.getByRole("region", { name: "Commands of the device flow" }).innerText();
    expect(commands).toContain(`--data-urlencode 'client_id=${appKey}'`);
    expect(commands).toContain(`${app.baseUrl}/api/device/code`);

    await page.goto(link.trim());
    await page.getByText("Haiku machine").first().waitFor();
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL(`${callback}**`);
    const key = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("api_key") ?? "";
    ok(await execute({ ...app, key }, ChatReceiptDocument));

    await visit.open("apps");
    const issued = page.getByRole("region", { name: "Apps that act for you" });
    await issued.getByText("Haiku machine").waitFor();
    await issued.getByText("generate, balance").waitFor();
    // What was spent is folded into the key when it is looked at.
    await screenshot(page, "apps");
    await page.getByRole("region", { name: "Your apps" }).getByRole("link", { name: "Haiku machine" }).click();
    await page.getByText(/^1 request for/).waitFor();
    await page.getByRole("figure", { name: "Credits a day by model" }).waitFor();
    await screenshot(page, "apps-usage");
    await page.goBack();

    await issued.getByRole("button", { name: "Revoke the key of Haiku machine" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke the key" }).click();
    await page.getByText("No app acts for you").waitFor();
    expect(codes(await execute({ ...app, key }, ChatReceiptDocument))).toEqual(["UNAUTHORIZED"]);
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("keep what an owner edits, and are nobody else's", async () => {
    const visit = await visitDashboard(browser, app);
    const { page } = visit;
    await visit.open("apps?new");
    await page.getByRole("dialog").getByLabel("Name").fill("First name");
    await page.getByRole("button", { name: "Register the app" }).click();
    await page.getByRole("button", { name: "Build a link with it" }).click();
    await page.getByRole("heading", { level: 1, name: "First name" }).waitFor();

    await page.getByRole("button", { name: "Register addresses" }).click();
    await page.getByRole("dialog").getByLabel("Redirect addresses").fill("https://haiku.example/callback\nhttp://127.0.0.1/callback");
    await page.getByRole("dialog").getByLabel("Name").fill("Second name");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Second name" }).waitFor();
    await page.getByText("https://haiku.example/callback").first().waitFor();

    const stranger = await visitDashboard(browser, app);
    await stranger.page.goto(page.url());
    await stranger.page.getByRole("heading", { level: 1, name: "There is no such app" }).waitFor();
    expect(await stranger.page.getByText("haiku").count()).toBe(0);
    await Promise.all([visit.context.close(), stranger.context.close()]);
  });

  it("may be called whatever strangers like", async () => {
    const name = `<img src=x>\u05e9\u05dc\u05d5\u05dd${"W".repeat(100)}`;
    const visit = await visitDashboard(browser, app, { look: { scheme: "dark", width: 360 } });
    const { page } = visit;
    const redirectUrls = [`https://example.com/${"path".repeat(100)}`];
    const headers = signedIn(visit.person);
    const shown = ok(
      await execute({ ...app, key: null, headers }, CreateApiKeyDocument, { input: { name, type: "PUBLISHABLE", redirectUrls } }),
    );
    const granted = ok(await execute({ ...app, key: null, headers }, CreateApiKeyDocument, { input: { name } })).createApiKey.apiKey;
    const data = { origin: "device_flow", appKeyId: shown.createApiKey.apiKey.restId } as const;
    await app.database.prisma.apiKey.update({ where: { id: granted.restId }, data });

    for (const path of ["apps", `apps/${encodeURIComponent(shown.createApiKey.apiKey.id)}`]) {
      await visit.open(path);
      await page.getByText(name).first().waitFor();
      expect(await overflowOf(page)).toBe(0);
      await screenshot(page, `apps-strange-${path.length > 4 ? "one" : "list"}`);
    }
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("of others are connected on their broker's page, and disconnected", async () => {
    const visit = await visitDashboard(browser, app);
    const { page, context } = visit;
    await visit.open("apps");
    await page.getByRole("button", { name: "Connect an app" }).click();
    await page.getByRole("dialog").getByLabel("Search").fill("notes");
    await page.getByRole("button", { name: "Connect Notes" }).click();
    const opened = context.waitForEvent("page");
    await page.getByRole("link", { name: "Open the page" }).click();
    const broker = await opened;
    const outside = page.getByRole("region", { name: "Outside apps" });
    await outside.getByText("waits for your approval").waitFor();

    await broker.getByRole("button", { name: "Allow" }).click();
    await broker.waitForURL(/callback/);
    await broker.close();
    await page.bringToFront();
    await page.evaluate("window.dispatchEvent(new Event('focus'))");
    await outside.getByText("connected", { exact: true }).waitFor();
    await screenshot(page, "apps-outside");

    await outside.getByRole("button", { name: "Disconnect Notes" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("No outside app is connected").waitFor();
    expect(visit.browserErrors).toEqual([]);
    await context.close();
  });
});
