/** Frame of every page: command palette, navigation, and lost connections and sessions. */
import type { Browser, Page, WebSocketRoute } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, runGraphql, visitDashboard } from "../support/dashboard.js";
import { giveCredits, signedIn, signIn } from "../support/sign-in.js";

const COLOR = (element: unknown) =>
  (globalThis as unknown as { getComputedStyle(of: unknown): { color: string } }).getComputedStyle(element).color;

describe.skipIf(NO_BROWSER)("dashboard frame", () => {
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

  it("opens pages, keys and models from the palette, and returns with the back button", async () => {
    const { page } = visit;
    await visit.open();
    await page.keyboard.press("Control+K");
    await page.getByPlaceholder("Search pages, keys and models").fill("acme/chat-b");
    await page.getByText("acme/chat-b").first().waitFor();
    await page.getByPlaceholder("Search pages, keys and models").fill("keys");
    await page.getByRole("button", { name: "Keys" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    await page.goBack();

    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/dashboard");
  });

  it('shows "not found" for a mistyped address', async () => {
    const { page } = visit;
    for (const path of ["keys/mistyped", "usage/mistyped", "files/mistyped", "apps/mistyped", "webhooks/mistyped"]) {
      await visit.open(path);
      await page.getByRole("heading", { level: 1, name: / not found$/ }).waitFor();
      expect(await page.getByRole("alert").count(), path).toBe(0);
    }
  });

  it("updates the balance when credits arrive", async () => {
    const { page, person } = visit;
    const shown = page.locator("[data-balance]");
    await visit.open();
    await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    await giveCredits(app, person.accountId, 5);

    await expect.poll(() => shown.first().textContent()).toBe("16.00");
  });

  it("shows a banner while the gateway is unreachable, keeps the input, and recovers", async () => {
    const { page, context } = visit;
    await visit.open("keys?new");
    await page.getByLabel("Name").fill("Typed offline");
    await context.setOffline(true);
    const create = page.getByRole("dialog").getByRole("button", { name: "Create key" });
    await create.click();
    await page.getByText("Data on this page may be out of date").waitFor();
    // Known figures and the menu stay. The balance is dimmed, because it may be old.
    const balance = page.locator("[data-balance]");
    const dimmed = await page.getByText("Programs use keys to spend your credits").evaluate(COLOR);
    await expect.poll(() => balance.evaluate(COLOR)).toBe(dimmed);
    expect(await balance.getAttribute("data-balance")).toMatch(/^\d+/);
    expect(await page.getByRole("button", { name: /^Account menu/, includeHidden: true }).count()).toBe(1);
    await screenshot(page, "away");
    await context.setOffline(false);
    expect(await page.getByLabel("Name").inputValue()).toBe("Typed offline");
    await create.click();

    await page.getByText("Copy this key now").waitFor();
    await expect.poll(() => page.getByText("Cannot reach the gateway").count()).toBe(0);
    await expect.poll(() => balance.evaluate(COLOR)).not.toBe(dimmed);
  });

  it("asks before it drops a half-filled form, and not for an empty one", async () => {
    const { page } = visit;
    await visit.open("keys?new");
    const dialog = page.getByRole("dialog", { name: "Create key" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Create key" }).first().click();
    const name = dialog.getByLabel("Name");
    await name.fill("Half");
    const question = page.getByRole("dialog", { name: "Discard changes?" });
    await page.keyboard.press("Escape");
    await question.waitFor();
    await screenshot(page, "discard");
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "hidden" });
    expect(await name.inputValue()).toBe("Half");
    await page.mouse.click(5, 400);
    await question.getByRole("button", { name: "Keep editing" }).click();
    await question.waitFor({ state: "hidden" });
    expect(await name.inputValue()).toBe("Half");
    // A budget is never changed: -5 is not 5.
    await dialog.getByLabel("Budget in credits").fill("-5");
    await dialog.getByText("Enter 0 or more").waitFor();
    await dialog.getByRole("button", { name: "Create key" }).click();
    await expect.poll(() => dialog.getByLabel("Budget in credits").inputValue()).toBe("-5");
    expect(await page.getByText("Copy this key now").count()).toBe(0);
    expect(await page.evaluate("document.querySelectorAll('header:not([role])').length")).toBe(1);
    await page.keyboard.press("Escape");
    await question.getByRole("button", { name: "Discard" }).click();
    await dialog.waitFor({ state: "hidden" });
  });

  it("marks the overview in the menu, also with a slash at the end of its address", async () => {
    const { page } = visit;
    await page.goto(`${app.baseUrl}/dashboard/`);
    const entry = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Overview" });
    await entry.waitFor();
    expect(await entry.getAttribute("data-active")).toBe("true");
  });

  it("fetches events that it missed while the WebSocket was closed", async () => {
    const { page, person } = visit;
    const sockets: WebSocketRoute[] = [];
    let isCut = false;
    // The page only reports the loss of a socket that was open.
    let markOpen = () => {};
    const opened = new Promise<void>((resolve) => {
      markOpen = resolve;
    });
    await page.routeWebSocket(/\/graphql$/, (socket) => {
      if (isCut) return void socket.close();
      sockets.push(socket);
      socket.connectToServer().onMessage((message) => {
        socket.send(message);
        if (String(message).includes("connection_ack")) markOpen();
      });
    });
    await visit.open();
    await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    await opened;
    // An answered request would clear the banner.
    await page.route("**/graphql", (route) => (isCut ? route.abort("connectionrefused") : route.continue()));
    isCut = true;
    await Promise.all(sockets.map((socket) => socket.close()));
    await page.getByText("Data on this page may be out of date").waitFor();
    await giveCredits(app, person.accountId, 5);
    isCut = false;

    await page.getByLabel("Balance: 16.00 credits").first().waitFor();
    await expect.poll(() => page.getByText("Cannot reach the gateway").count()).toBe(0);
    await page.unroute("**/graphql");
  });

  it("retries a failed query automatically when the gateway is back", async () => {
    const { page } = visit;
    await visit.open("account");
    let isDown = true;
    await page.route("**/graphql", (route) => (isDown ? route.abort("connectionrefused") : route.continue()));
    await page.getByRole("tab", { name: "Sessions" }).click();
    await page.getByText("Retrying as soon as the connection is back").waitFor();
    await screenshot(page, "down");
    isDown = false;

    await page.getByText("This browser").waitFor();
    await expect.poll(() => page.getByText("Cannot reach the gateway").count()).toBe(0);
  });

  it("reloads a page once when an update of the gateway has replaced its code", async () => {
    const { page } = visit;
    await visit.open();
    let isReplaced = true;
    await page.route("**/dashboard/assets/*", (route) => (isReplaced ? route.fulfill({ status: 404 }) : route.continue()));
    const documents: string[] = [];
    await page.route("**/dashboard/webhooks", async (route) => {
      documents.push(route.request().resourceType());
      if (route.request().resourceType() === "document") return route.continue();
      isReplaced = false;
      return route.fulfill({ contentType: "text/html", body: '<script type="module" src="/dashboard/assets/main-newer.js"></script>' });
    });
    await page.getByRole("link", { name: "Webhooks" }).click();

    await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
    expect(documents).toEqual(["fetch", "document"]);
  });

  it("says that a page's code cannot load while offline, and loads it afterwards", async () => {
    const { page, context } = visit;
    await visit.open();
    await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    await context.setOffline(true);
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByRole("heading", { level: 1, name: "This page could not be loaded" }).waitFor();
    await page.getByText("The page loads as soon as the connection is back").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await screenshot(page, "code-missing");
    expect(new URL(page.url()).pathname).toBe("/dashboard/keys");
    await context.setOffline(false);

    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  });

  it("keeps the input of every form when the session ends", async () => {
    const { person, context } = visit;
    const forms = [
      { path: "keys?new", label: "Name", typed: "Typed before", button: "Create key", shown: "Copy this key now" },
      { path: "account", label: "Name", typed: "Typed before", button: "Save profile", shown: "Profile saved" },
      { path: "apps?new", label: "Name", typed: "Typed before", button: "Register app", shown: "Build authorization link" },
    ];
    const tabs = await Promise.all(forms.map(async (form) => ({ ...form, page: await context.newPage() })));
    for (const { page, path, label, typed } of tabs) {
      await page.goto(`${app.baseUrl}/dashboard/${path}`);
      await page.getByRole("textbox", { name: label }).first().fill(typed);
      await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    }
    const again = await signIn(app, person);
    await runGraphql(app, signedIn(again), "mutation { revokeOtherSessions(input: {}) { __typename } }");
    // The gateway closes the socket of each page, which needs no request to notice.
    for (const { page } of tabs) await page.getByRole("dialog", { name: "Your session has ended" }).waitFor();
    await screenshot(tabs[0]?.page as Page, "session-ended");
    // Behind the dialog are no words for programs.
    for (const { page } of tabs) expect(await page.locator("body").innerText()).not.toMatch(/Bearer|API key is required/);
    const [name = "", value = ""] = again.cookie.split(/=(.*)/s);
    await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true }]);

    for (const { page, label, typed, button, shown } of tabs) {
      await page.evaluate("window.dispatchEvent(new Event('focus'))");
      await page.getByRole("dialog", { name: "Your session has ended" }).waitFor({ state: "hidden" });
      expect(await page.getByRole("textbox", { name: label }).first().inputValue()).toBe(typed);
      // Dialogs come last in the document, after a button of the page with the same name.
      await page.getByRole("button", { name: button }).last().click();
      await page.getByText(shown).first().waitFor();
    }
    // Live events arrive again.
    await giveCredits(app, person.accountId, 5);
    for (const { page } of tabs) await page.getByLabel("Balance: 16.00 credits").first().waitFor();
  });

  it("leads from the address of a former account page through sign-in to its page", async () => {
    const { page, context, person } = visit;
    await context.clearCookies();
    await page.goto(`${app.baseUrl}/sessions`);
    await page.getByLabel("E-mail address").fill(person.email);
    await page.getByLabel("Password").fill(person.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This browser").waitFor();
    await screenshot(page, "former-sessions");
    expect(new URL(page.url()).pathname).toBe("/dashboard/account/sessions");

    await page.goto(`${app.baseUrl}/home/keys/new`);
    await page.getByRole("dialog").getByLabel("Name").waitFor();
    await page.goto(`${app.baseUrl}/password`);
    await page.getByLabel("Current password").waitFor();
    await page.goto(`${app.baseUrl}/home`);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  it("links to the documentation of the API from the account menu", async () => {
    const { page } = visit;
    await visit.open();
    await page.getByRole("button", { name: /^Account menu of/ }).click();
    const links = ["API reference", "GraphiQL"].map((name) => page.getByRole("menuitem", { name }));
    await links[0]?.waitFor();
    await screenshot(page, "account-menu");
    const addresses = await Promise.all(links.map((link) => link.getAttribute("href")));

    expect(addresses.map((address) => new URL(address ?? "").pathname)).toEqual(["/docs", "/graphql"]);
  });

  it("signs out, and redirects to the sign-in page", async () => {
    const { page } = visit;
    await visit.open();
    await page.getByRole("button", { name: /^Account menu of/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.waitForURL("**/sign-in");
    await page.goto(`${app.baseUrl}/dashboard/keys`);

    expect(new URL(page.url()).pathname).toBe("/sign-in");
  });
});
