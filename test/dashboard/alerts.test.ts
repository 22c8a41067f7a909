/** Alerts page: an alert that appears at once, its acknowledgement, a silence and its end, and the rules. */
import { randomUUID } from "node:crypto";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";

describe.skipIf(NO_BROWSER)("alerts page", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("lists alerts, acknowledges one, and ends a silence", async () => {
    const { page, open, person, browserErrors, context } = await visitDashboard(browser, app);
    const alert = { accountId: person.accountId, isSilenced: false, createdAt: new Date(), details: { percent: 80, creditBudget: 10 } };
    const subject = { kind: "budget_reached", subjectId: randomUUID(), subjectName: "production" } as const;
    await app.database.prisma.alert.create({ data: { id: randomUUID(), occurrence: "1", ...subject, ...alert } });
    await open("alerts");
    await page.getByText("The key production has spent 80 % of its budget of 10 credits.").waitFor();
    await screenshot(page, "alerts");

    await page.getByRole("button", { name: "Silence Budget reached" }).click();
    await page.getByRole("button", { name: "End silence" }).waitFor();
    await screenshot(page, "alerts-silenced");
    await page.getByRole("button", { name: "End silence" }).click();
    await page.getByRole("button", { name: "End silence" }).waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("Acknowledged", { exact: true }).or(page.getByText("No open alerts")).first().waitFor();
    await page.getByText("All", { exact: true }).click();
    await page.getByText("Acknowledged", { exact: true }).waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("shows an alert at once, and changes the rules", async () => {
    const { page, open, person, browserErrors, context } = await visitDashboard(browser, app);
    await open("alerts");
    await page.getByText("No open alerts").waitFor();
    let isShown = false;
    const shown = page
      .getByText("A top-up failed: The card was declined.")
      .first()
      .waitFor()
      .then(() => {
        isShown = true;
      });
    while (!isShown) {
      const failure = { accountId: person.accountId, topUpId: randomUUID(), reason: "The card was declined." };
      app.infrastructure.events.publish("top-up-failed", failure);
      await page.title();
    }
    await shown;

    await page.getByRole("button", { name: "Change Unused key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Days without use").fill("0");
    await dialog.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => dialog.getByLabel("Days without use").getAttribute("aria-invalid")).toBe("true");
    await dialog.getByLabel("Days without use").fill("30");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Days without use: 30").waitFor();
    await page.getByRole("switch", { name: "Unused key" }).click({ force: true });
    await expect.poll(() => page.getByRole("switch", { name: "Unused key" }).isChecked()).toBe(false);
    await screenshot(page, "alerts-rules");

    expect(await app.database.prisma.alertRule.findMany({ where: { accountId: person.accountId } })).toMatchObject([
      { kind: "key_unused", isEnabled: false, parameters: { days: 30 } },
    ]);
    expect(browserErrors).toEqual([]);
    await context.close();
  });
});
