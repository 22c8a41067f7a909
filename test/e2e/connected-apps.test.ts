/** Connecting an app as people meet it: in a browser, on a phone, by keyboard alone (docs/spec/connected-apps.md#operations). */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, openPhone, overflowOf, screenshot, tabTo } from "../support/browser.js";
import { seriousFindings } from "../support/dashboard.js";
import { type Person, signUp } from "../support/sign-in.js";

describe.skipIf(NO_BROWSER !== null)("connecting an app in a browser", () => {
  let app: TestApp;
  let client: Client;
  let browser: Browser;

  beforeAll(async () => {
    [app, browser] = await Promise.all([createTestApp(), launchBrowser()]);
    client = createClient(app.baseUrl, app.key);
  });
  afterAll(async () => {
    await browser?.close();
    await app.close();
  });

  async function begin(toolkit: string): Promise<{ id: string; url: string }> {
    return (await client.post("/account/integrations", { toolkit })).json();
  }

  async function openSignedIn({ cookie }: Person): Promise<Page> {
    const context = await openPhone(browser);
    const [name = "", value = ""] = cookie.split("=");
    await context.addCookies([{ name, value, url: app.baseUrl.replace("127.0.0.1", "localhost") }]);
    return context.newPage();
  }

  async function expectUsable(page: Page, name: string): Promise<void> {
    expect(await overflowOf(page)).toBe(0);
    await screenshot(page, `connected-apps-${name}`);
    expect(await seriousFindings(page), name).toEqual([]);
  }

  const connections = async () =>
    (await client.get("/account/integrations")).json<{ data: { id: string; alias: string | null; status: string }[] }>().data;

  it("leads from the address of a page to a connection that can be used, and can be ended", async () => {
    const { id, url } = await begin("notes");
    const page = await (await openPhone(browser)).newPage();

    await page.goto(url);
    await page.getByRole("heading", { name: "Connect Notes?" }).waitFor();
    await expectUsable(page, "asked");
    await tabTo(page, "#alias");
    await page.keyboard.type("Work");
    // Enter in a field decides nothing.
    await page.keyboard.press("Enter");
    expect((await connections()).map(({ status }) => status)).toEqual(["initiated"]);
    await tabTo(page, 'button[value="approve"]');
    await page.keyboard.press("Enter");

    await page.waitForURL(/\/integrations\/callback\?state=/);
    await page.getByRole("heading", { name: "Notes is connected" }).waitFor();
    await expectUsable(page, "connected");
    expect(await connections()).toEqual([expect.objectContaining({ id, alias: "Work", status: "active" })]);

    await page.goto(url);
    await expectUsable(page, "active");
    await tabTo(page, 'button[value="switch-off"]');
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Notes is disabled" }).waitFor();
    await expectUsable(page, "inactive");
    expect((await connections()).map(({ status }) => status)).toEqual(["inactive"]);

    expect((await client.request("DELETE", `/account/integrations/${id}`)).status).toBe(204);
    expect(await connections()).toEqual([]);
    await page.goto(url);
    expect(await page.getByRole("alert").textContent()).toContain("the connection was removed");
    await expectUsable(page, "removed");
  });

  it("can be refused, and is hidden from other accounts", async () => {
    const { id, url } = await begin("mail");
    const stranger = await openSignedIn(await signUp(app));
    await stranger.goto(url);
    await stranger.getByText("This is not your connection.").waitFor();
    await expectUsable(stranger, "foreign");
    expect(await stranger.getByRole("button", { name: "Allow" }).count()).toBe(0);

    // Signed out, the visitor is anonymous, as its owner may be.
    await stranger.getByRole("button", { name: "Switch account" }).click();
    await stranger.getByText("For the account owner").waitFor();
    await stranger.getByRole("button", { name: "Deny" }).click();
    await stranger.getByRole("heading", { name: "Mail is not connected" }).waitFor();
    await expectUsable(stranger, "refused");

    expect((await connections()).find((app) => app.id === id)?.status).toBe("failed");
  });
});
