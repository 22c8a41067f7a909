/** The operator page of routes: their state, changes, and filters. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { type Person, signUp } from "../support/sign-in.js";

describe.skipIf(NO_BROWSER)("the operator page of routes", () => {
  let browser: Browser;
  let app: TestApp;
  let operator: Person;

  beforeAll(async () => {
    const upstream = (id: string, more: object) => ({ id, wireFormat: "openai", baseUrl: "http://127.0.0.1:9/v1", ...more });
    [browser, app] = await Promise.all([
      launchBrowser(),
      createTestApp({
        upstreams: [upstream("alpha", { apiKeys: ["a1", "a2"] }), upstream("beta", { apiKey: "b1" })],
        models: [
          {
            ...{ id: "acme/a-routed", title: "Routed", modality: "text", prices: { promptTextPrice: "0.000001" } },
            routes: [
              { upstream: "alpha", upstreamModel: "a" },
              { upstream: "beta", upstreamModel: "b", priority: 1 },
            ],
          },
        ],
      }),
    ]);
    operator = await signUp(app, { name: "Olga Operator" });
    await app.database.prisma.account.update({ where: { id: operator.accountId }, data: { isOperator: true } });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("limits a model over all accounts", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/routes");
    await page.getByText("No limits of a model over all accounts.").waitFor();
    await page.getByRole("button", { name: "Add limit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("At most").fill("600");
    await dialog.getByRole("button", { name: "Add limit" }).click();
    await expect.poll(() => dialog.getByLabel("Model").getAttribute("aria-invalid")).toBe("true");
    await dialog.getByLabel("Model").fill("acme/a-routed");
    await screenshot(page, "operator-model-limit-new");
    await dialog.getByRole("button", { name: "Add limit" }).click();

    await page.getByRole("cell", { name: "600 requests" }).waitFor();
    await page.getByRole("cell", { name: "Last minute" }).waitFor();
    await screenshot(page, "operator-model-limits");
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove limit" }).click();
    await page.getByText("No limits of a model over all accounts.").waitFor();
    expect(browserErrors.filter((text) => !text.includes("400"))).toEqual([]);
    await context.close();
  });

  it("shows the routes of a model, and changes and resets them", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/routes");
    await page.getByRole("searchbox", { name: "Model" }).fill("acme/a-routed");
    await page.getByRole("button", { name: "Search" }).click();
    const rows = async () =>
      (await page.getByRole("region", { name: "Routes" }).getByRole("row").allInnerTexts()).map((row) => row.replace(/\s+/g, " ").trim());
    await expect.poll(rows).toHaveLength(5);
    expect((await rows())[2]).toMatch(/^alpha \(key 1\) a READY 0 0.5/i);

    await page.getByRole("button", { name: "Edit alpha#1 of acme/a-routed" }).click();
    await page.getByLabel("Weight").fill("4");
    await page.getByRole("switch", { name: "Enabled" }).click();
    await page.getByRole("button", { name: "Save" }).click();

    await expect.poll(async () => (await rows())[2]).toMatch(/^alpha \(key 1\) CHANGED a DISABLED 0 4/i);
    expect((await rows())[3]).toMatch(/^alpha \(key 2\) a READY 0 1/i);
    await page.getByRole("button", { name: "Edit beta of acme/a-routed" }).click();
    await page.getByLabel("Priority").fill("2");
    await screenshot(page, "operator-route-edit");
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(async () => (await rows())[4]).toMatch(/^beta CHANGED b READY 2 1/i);
    await screenshot(page, "operator-routes");

    await page.getByRole("button", { name: "Reset acme/a-routed" }).click();
    await page.getByRole("button", { name: "Reset routes" }).click();
    await expect.poll(async () => (await rows())[4]).toMatch(/^beta b READY 1 1/i);
    expect(await app.database.prisma.routeOverrides.count()).toBe(0);
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("refuses to disable the last route, and names the closest model", async () => {
    const { page, open, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/routes?model=acme/free");
    await page.getByRole("button", { name: "Edit acme of acme/free" }).click();
    await page.getByRole("switch", { name: "Enabled" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/would leave acme\/free without an enabled route/).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();

    await open("operator/routes?model=acme/fee");
    const failure = page.getByText(/closest are: .*acme\/free/);
    await failure.waitFor();
    expect(await failure.count()).toBe(1);
    expect(await app.database.prisma.routeOverrides.count()).toBe(0);
    await context.close();
  });
});
