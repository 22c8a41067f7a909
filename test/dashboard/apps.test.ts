/** Apps page: registering an app, granting it a key with the built link, revoking it, and integrations. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codes, execute, ok } from "../graphql/client.js";
import { ChatReceiptDocument, CreateApiKeyDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { signedIn } from "../support/sign-in.js";

describe.skipIf(NO_BROWSER)("apps page", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("changes the margin of an app within the operator's bound", async () => {
    const bounded = await createTestApp({ config: { earnings: { communityShare: 750_000n, marginPercentMax: 20 } } });
    const { page, open, context, browserErrors } = await visitDashboard(browser, bounded);
    await open("apps?new");
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("Haiku machine");
    await form.getByRole("button", { name: "Register app" }).click();
    await page.getByRole("button", { name: "Build authorization link" }).click();
    await page.getByText("you earn nothing", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Change margin" }).click();
    await form.getByText("From 0 to 20, the most that the operator allows.", { exact: false }).waitFor();
    for (const [wrong, message] of [
      ["21", "must be from 0 to 20"],
      ["", "must be from 0 to"],
    ] as const) {
      await form.getByLabel("Margin in percent").fill(wrong);
      await form.getByRole("button", { name: "Save" }).click();
      await expect.poll(() => form.getByLabel("Margin in percent").getAttribute("aria-invalid")).toBe("true");
      await screenshot(page, `apps-margin-${wrong}`);
      await form.getByText(message, { exact: false }).first().waitFor();
    }
    await form.getByLabel("Margin in percent").fill("15");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("Users pay 15% on top of the prices of models.", { exact: false }).waitFor();
    expect(await overflowOf(page)).toBe(0);
    await screenshot(page, "apps-one-margin");
    expect(browserErrors).toEqual([]);
    await context.close();
    await bounded.close();
  });

  it("says when the operator allows no margins", async () => {
    const { page, open, context } = await visitDashboard(browser, app);
    await open("apps?new");
    await page.getByRole("dialog").getByLabel("Name").fill("Haiku machine");
    await page.getByRole("dialog").getByRole("button", { name: "Register app" }).click();
    await page.getByRole("button", { name: "Build authorization link" }).click();
    await page.getByText("The operator of this gateway allows no margins", { exact: false }).waitFor();
    expect(await page.getByRole("button", { name: "Change margin" }).count()).toBe(0);
    await context.close();
  });

  it("registers an app, grants it a key through the built link, shows its usage, and revokes it", async () => {
    const visit = await visitDashboard(browser, app);
    const { page } = visit;
    await visit.open("apps");
    await page.getByText("No authorized apps").waitFor();

    await page.getByRole("button", { name: "Register app" }).first().click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("Haiku machine");
    await form.getByLabel("Redirect URLs").fill("javascript:alert(1)");
    await form.getByRole("button", { name: "Register app" }).click();
    await form.getByText("must", { exact: false }).first().waitFor();
    expect(await form.getByLabel("Name").inputValue()).toBe("Haiku machine");
    // Any existing page will do.
    const callback = `${app.baseUrl}/healthz`;
    await form.getByLabel("Redirect URLs").fill(callback);
    await form.getByRole("button", { name: "Register app" }).click();
    const appKey = (await page.locator("[data-app-key]").innerText()).trim();
    expect(appKey).toMatch(/^pk_/);
    await page.getByRole("button", { name: "Build authorization link" }).click();
    await page.getByRole("heading", { level: 1, name: "Haiku machine" }).waitFor();

    await page.getByLabel("Budget in credits").fill("2");
    await page.getByLabel("Balance: available credits").check();
    await page.getByRole("combobox", { name: "Response type" }).click();
    await page.getByRole("option", { name: "Key in the URL fragment" }).click();
    await screenshot(page, "apps-link-builder");
    const link = await page.getByRole("region", { name: "Authorization link" }).innerText();
    await page.getByText("Device", { exact: true }).click();
    const commands = await page.getByRole("region", { name: "Device flow commands" }).innerText();
    expect(commands).toContain(`--data-urlencode 'client_id=${appKey}'`);
    expect(commands).toContain(`${app.baseUrl}/api/device/code`);

    await page.goto(link.trim());
    await page.getByText("Haiku machine").first().waitFor();
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL(`${callback}**`);
    const key = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("api_key") ?? "";
    ok(await execute({ ...app, key }, ChatReceiptDocument));

    await visit.open("apps");
    const issued = page.getByRole("region", { name: "Authorized apps" });
    await issued.getByText("Haiku machine").waitFor();
    await issued.getByText("generate, balance").waitFor();
    // Opening the page folds the spent credits into the key.
    await screenshot(page, "apps");
    await page.getByRole("region", { name: "Your apps" }).getByRole("link", { name: "Haiku machine" }).click();
    await page.getByText(/^1 request for/).waitFor();
    await page.getByRole("figure", { name: "Credits per day by model" }).waitFor();
    await screenshot(page, "apps-usage");
    await page.goBack();

    await issued.getByRole("button", { name: "Revoke access of Haiku machine" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke access" }).click();
    await page.getByText("No authorized apps").waitFor();
    expect(codes(await execute({ ...app, key }, ChatReceiptDocument))).toEqual(["UNAUTHORIZED"]);
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("edits an app, and hides it from other accounts", async () => {
    const visit = await visitDashboard(browser, app);
    const { page } = visit;
    await visit.open("apps?new");
    await page.getByRole("dialog").getByLabel("Name").fill("First name");
    await page.getByRole("dialog").getByRole("button", { name: "Register app" }).click();
    await page.getByRole("button", { name: "Build authorization link" }).click();
    await page.getByRole("heading", { level: 1, name: "First name" }).waitFor();

    await page.getByRole("button", { name: "Add redirect URLs" }).click();
    await page.getByRole("dialog").getByLabel("Redirect URLs").fill("https://haiku.example/callback\nhttp://127.0.0.1/callback");
    await page.getByRole("dialog").getByLabel("Name").fill("Second name");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Second name" }).waitFor();
    await page.getByText("https://haiku.example/callback").first().waitFor();

    const stranger = await visitDashboard(browser, app);
    await stranger.page.goto(page.url());
    await stranger.page.getByRole("heading", { level: 1, name: "App not found" }).waitFor();
    expect(await stranger.page.getByText("haiku").count()).toBe(0);
    await Promise.all([visit.context.close(), stranger.context.close()]);
  });

  it("shows app names with markup, right-to-left text and great length", async () => {
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

  it("connects an integration on the broker's page, and disconnects it", async () => {
    const visit = await visitDashboard(browser, app);
    const { page, context } = visit;
    await visit.open("apps");
    await page.getByRole("button", { name: "Connect app" }).click();
    await page.getByRole("dialog").getByLabel("Search").fill("notes");
    await page.getByRole("button", { name: "Connect Notes" }).click();
    const opened = context.waitForEvent("page");
    await page.getByRole("link", { name: "Open page" }).click();
    const broker = await opened;
    const integrations = page.getByRole("region", { name: "Integrations" });
    await integrations.getByText("Waiting for approval").waitFor();

    await broker.getByRole("button", { name: "Allow" }).click();
    await broker.waitForURL(/callback/);
    await broker.close();
    await page.bringToFront();
    await page.evaluate("window.dispatchEvent(new Event('focus'))");
    await integrations.getByText("Connected", { exact: true }).waitFor();
    await screenshot(page, "apps-integrations");

    await integrations.getByRole("button", { name: "Disconnect Notes" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("No integrations yet").waitFor();
    expect(visit.browserErrors).toEqual([]);
    await context.close();
  });
});
