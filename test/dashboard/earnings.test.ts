/** Earnings on the page of one's models: they appear as soon as another account is charged, and become credits. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { createMember, registerModel } from "../support/community-models.js";
import { visitDashboard } from "../support/dashboard.js";
import { signUp } from "../support/sign-in.js";
import { buyCredits } from "../support/top-ups.js";

describe.skipIf(NO_BROWSER)("earnings", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } })]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  async function createBuyer(): Promise<string> {
    const { accountId, key } = await createMember(app, { credits: 0 });
    await buyCredits(app, accountId, 100_000n);
    return key;
  }

  it("appear live, and are turned into credits when they have matured", async () => {
    const person = await signUp(app);
    const { handle } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    const url = `http://127.0.0.1:${app.upstream.port}/v1/chat/completions`;
    // In picocredits.
    const prices = { promptTextPrice: 2_000_000_000n, completionTextPrice: 5_000_000_000n };
    const owner = { accountId: person.accountId, handle, key: "", keyId: "" };
    const { modelId } = await registerModel(app, owner, { visibility: "public", upstreamModel: "theirs", url, ...prices });
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("my-models");
    await page
      .getByRole("link", { name: /Title|model/i })
      .first()
      .waitFor();
    expect(await page.getByRole("heading", { name: "Earnings" }).count()).toBe(0);

    const key = await createBuyer();
    const body = { model: modelId, messages: [{ role: "user", content: "Say hello to the world, please." }] };
    expect((await createClient(app.baseUrl, key).post("/v1/chat/completions", body)).status).toBe(200);
    await page.getByRole("heading", { name: "Earnings" }).waitFor();
    await page.getByRole("cell", { name: "pending" }).waitFor();
    await screenshot(page, "earnings-pending");

    await app.database.pool.query("UPDATE earning_daily SET day = day - 9 WHERE account_id = $1", [person.accountId]);
    await app.services.bookkeepingWork.run();
    await visit.open("my-models");
    await page.getByLabel("Turn into credits to spend").fill("1000");
    await page.getByRole("button", { name: "Convert" }).click();
    await page.getByText(/credits of earnings have matured/).waitFor();
    await page.getByLabel("Turn into credits to spend").fill("0.01");
    await page.getByRole("button", { name: "Convert" }).click();
    await page.getByText("0.01", { exact: true }).first().waitFor();
    await screenshot(page, "earnings-converted");
    const account = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    expect(account.packNanocredits).toBe(10_000_000n);
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });
});
