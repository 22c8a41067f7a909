/** Every page in both schemes, on a phone and on a desk: nothing is cut off or scrolls sideways, and axe finds nothing serious. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { LOOKS, seriousFindings, visitDashboard } from "../support/dashboard.js";
import { type Person, signUp } from "../support/sign-in.js";

/** Below /dashboard; the first is the dashboard itself. */
const PATHS = [
  ["", "keys", "keys?new"],
  ["usage", "usage?status=CANCELLED&from=24h"],
  ["operator", "operator/accounts", "operator/accounts?new"],
  ["apps", "apps?new"],
  ["files", "files?kind=video&tag=none"],
  ["playground"],
  ["webhooks", "webhooks?new"],
  ["account", "account/sessions", "account/data"],
].flat();

describe.skipIf(NO_BROWSER)("every page of the dashboard", () => {
  let browser: Browser;
  let app: TestApp;
  let person: Person;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    person = await signUp(app, { credits: 10, name: "Ada" });
    await app.database.prisma.account.update({ where: { id: person.accountId }, data: { isOperator: true } });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it.each(LOOKS)("is whole and accessible: $scheme, $width px", async (look) => {
    const visit = await visitDashboard(browser, app, { look, person });
    for (const path of [...PATHS, `operator/accounts/${person.accountId}`]) {
      await visit.open(path);
      await visit.page.waitForLoadState("networkidle");
      await screenshot(visit.page, `${path.replace(/\W/g, "-") || "overview"}-${look.scheme}-${look.width}`);
      expect(await overflowOf(visit.page), `/${path} is wider than its window`).toBe(0);
      expect(await seriousFindings(visit.page), `/${path}`).toEqual([]);
    }
    expect(visit.complaints).toEqual([]);
    await visit.context.close();
  });
});
