/** Credits page: a person buys credits at the development checkout, and sees the balance move in another tab. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { signUp } from "../support/sign-in.js";

describe.skipIf(NO_BROWSER)("credits page", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("sells credits, which another tab shows at once", async () => {
    const person = await signUp(app);
    const [visit, other] = [await visitDashboard(browser, app, { person }), await visitDashboard(browser, app, { person })];
    const { page } = visit;
    await other.open("credits");
    await other.page.getByRole("heading", { name: "Buy credits" }).waitFor();
    await visit.open("credits");
    await page.getByLabel("Credits", { exact: true }).fill("0.5");
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.getByText(/must be from 1 to 10000/).waitFor();
    await page.getByRole("button", { name: "25 credits" }).click();
    await screenshot(page, "credits-buy");
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.getByRole("heading", { name: "Buy 25 credits?" }).waitFor();
    await screenshot(page, "checkout");
    await page.getByRole("button", { name: "Pay" }).click();
    await page.getByText("This checkout is paid.").waitFor();
    await other.page.getByText("25.00").first().waitFor();
    // The checkout may be on another host than the dashboard.
    await visit.open("credits");
    await page.getByRole("cell", { name: "Purchase" }).waitFor();
    await screenshot(page, "credits-bought");
    expect(visit.browserErrors).toEqual([]);
    expect(other.browserErrors).toEqual([]);
    await visit.context.close();
    await other.context.close();
  });
});
