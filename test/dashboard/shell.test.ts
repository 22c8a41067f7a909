/** What surrounds every page: the palette, the way back, and what is said when the connection or the session is lost. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { askGraph, type DashboardVisit, visitDashboard } from "../support/dashboard.js";
import { giveCredits, signedIn, signIn } from "../support/sign-in.js";

describe.skipIf(NO_BROWSER)("the dashboard's frame", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });
  beforeEach(async () => {
    visit = await visitDashboard(browser, app);
  });
  afterEach(() => visit.context.close());

  it("goes to pages, keys and models by the keyboard, and back by the browser's button", async () => {
    const { page } = visit;
    await visit.open();
    await page.keyboard.press("Control+K");
    await page.getByPlaceholder("Pages, keys and models").fill("acme/chat-b");
    await page.getByText("acme/chat-b").first().waitFor();
    await page.getByPlaceholder("Pages, keys and models").fill("keys");
    await page.getByRole("button", { name: "Keys" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    await page.goBack();

    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/dashboard");
  });

  it("says that there is no such thing at an address that was mistyped", async () => {
    const { page } = visit;
    for (const path of ["keys/mistyped", "usage/mistyped", "files/mistyped", "apps/mistyped", "webhooks/mistyped"]) {
      await visit.open(path);
      await page.getByRole("heading", { level: 1, name: /^There is no such / }).waitFor();
      expect(await page.getByRole("alert").count(), path).toBe(0);
    }
  });

  it("moves the balance when credits come, without being asked", async () => {
    const { page, person } = visit;
    const shown = page.locator("[data-balance]");
    await visit.open();
    await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    await giveCredits(app, person.accountId, 5);

    await expect.poll(() => shown.first().textContent()).toBe("16.00");
  });

  it("says when the gateway is away, loses nothing of what is typed, and goes on when it is back", async () => {
    const { page, context } = visit;
    await visit.open("keys?new");
    await page.getByLabel("Name").fill("Typed offline");
    await context.setOffline(true);
    await page.getByRole("button", { name: "Make the key" }).click();
    await page.getByText("The gateway cannot be reached: what you see may be old").waitFor();
    await screenshot(page, "away");
    await context.setOffline(false);
    expect(await page.getByLabel("Name").inputValue()).toBe("Typed offline");
    await page.getByRole("button", { name: "Make the key" }).click();

    await page.getByText("Copy it now").waitFor();
    await expect.poll(() => page.getByText("The gateway cannot be reached").count()).toBe(0);
  });

  it("keeps what is typed when the session ends in the middle of a form", async () => {
    const { page, person, context } = visit;
    await visit.open("keys?new");
    await page.getByLabel("Name").fill("Typed before");
    const again = await signIn(app, person);
    await askGraph(app, signedIn(again), "mutation { revokeOtherSessions(input: {}) { __typename } }");
    // The gateway tells the page, which need not ask for anything.
    await page.getByText("Your session has ended").waitFor();
    await screenshot(page, "session-ended");
    const [name = "", value = ""] = again.cookie.split(/=(.*)/s);
    await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true }]);
    await page.evaluate("window.dispatchEvent(new Event('focus'))");
    await page.getByText("Your session has ended").waitFor({ state: "hidden" });

    expect(await page.getByLabel("Name").inputValue()).toBe("Typed before");
    await page.getByRole("button", { name: "Make the key" }).click();
    await page.getByText("Copy it now").waitFor();
  });

  it("signs out, and leads to where one signs in", async () => {
    const { page } = visit;
    await visit.open();
    await page.getByRole("button", { name: /^Account of/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.waitForURL("**/sign-in");
    await page.goto(`${app.baseUrl}/dashboard/keys`);

    expect(new URL(page.url()).pathname).toBe("/sign-in");
  });
});
