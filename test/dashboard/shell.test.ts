/** What surrounds every page: the palette, the way back, and what is said when the connection or the session is lost. */
import type { Browser, Page, WebSocketRoute } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, runGraphql, visitDashboard } from "../support/dashboard.js";
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

  it("is told what happened while its socket was lost", async () => {
    const { page, person } = visit;
    const sockets: WebSocketRoute[] = [];
    let isCut = false;
    // What was never open is not missed.
    let tellOpen = () => {};
    const opened = new Promise<void>((resolve) => {
      tellOpen = resolve;
    });
    await page.routeWebSocket(/\/graphql$/, (socket) => {
      if (isCut) return void socket.close();
      sockets.push(socket);
      socket.connectToServer().onMessage((message) => {
        socket.send(message);
        if (String(message).includes("connection_ack")) tellOpen();
      });
    });
    await visit.open();
    await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    await opened;
    isCut = true;
    await Promise.all(sockets.map((socket) => socket.close()));
    await page.getByText("The gateway cannot be reached: what you see may be old").waitFor();
    await giveCredits(app, person.accountId, 5);
    isCut = false;

    await page.getByLabel("Balance: 16.00 credits").first().waitFor();
    await expect.poll(() => page.getByText("The gateway cannot be reached").count()).toBe(0);
  });

  it("asks again by itself for what a gateway that was down did not answer", async () => {
    const { page } = visit;
    await visit.open("account");
    let isDown = true;
    await page.route("**/graphql", (route) => (isDown ? route.abort("connectionrefused") : route.continue()));
    await page.getByRole("tab", { name: "Sessions" }).click();
    await page.getByText("It is tried again as soon as there is a connection").waitFor();
    await screenshot(page, "down");
    isDown = false;

    await page.getByText("this browser").waitFor();
    await expect.poll(() => page.getByText("The gateway cannot be reached").count()).toBe(0);
  });

  it("loads a page anew, once, whose code an update of the gateway has replaced", async () => {
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

  it("says that a page's code cannot come while offline, and brings it afterwards", async () => {
    const { page, context } = visit;
    await visit.open();
    await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    await context.setOffline(true);
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByRole("heading", { level: 1, name: "This page could not be loaded" }).waitFor();
    await page.getByText("The page is loaded as soon as there is a connection").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await screenshot(page, "code-missing");
    expect(new URL(page.url()).pathname).toBe("/dashboard/keys");
    await context.setOffline(false);

    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  });

  it("keeps what is typed when the session ends in the middle of a form, whichever", async () => {
    const { person, context } = visit;
    const forms = [
      { path: "keys?new", label: "Name", typed: "Typed before", button: "Make the key", shown: "Copy it now" },
      { path: "account", label: "Name", typed: "Typed before", button: "Save the profile", shown: "Your profile is saved" },
      { path: "apps?new", label: "Name", typed: "Typed before", button: "Register the app", shown: "Build a link with it" },
    ];
    const tabs = await Promise.all(forms.map(async (form) => ({ ...form, page: await context.newPage() })));
    for (const { page, path, label, typed } of tabs) {
      await page.goto(`${app.baseUrl}/dashboard/${path}`);
      await page.getByRole("textbox", { name: label }).first().fill(typed);
      await page.getByLabel("Balance: 11.00 credits").first().waitFor();
    }
    const again = await signIn(app, person);
    await runGraphql(app, signedIn(again), "mutation { revokeOtherSessions(input: {}) { __typename } }");
    // The gateway tells each page, which need not ask for anything.
    for (const { page } of tabs) await page.getByText("Your session has ended").waitFor();
    await screenshot(tabs[0]?.page as Page, "session-ended");
    const [name = "", value = ""] = again.cookie.split(/=(.*)/s);
    await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true }]);

    for (const { page, label, typed, button, shown } of tabs) {
      await page.evaluate("window.dispatchEvent(new Event('focus'))");
      await page.getByText("Your session has ended").waitFor({ state: "hidden" });
      expect(await page.getByRole("textbox", { name: label }).first().inputValue()).toBe(typed);
      await page.getByRole("button", { name: button }).click();
      await page.getByText(shown).first().waitFor();
    }
    // And they are told again of what happens.
    await giveCredits(app, person.accountId, 5);
    for (const { page } of tabs) await page.getByLabel("Balance: 16.00 credits").first().waitFor();
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
