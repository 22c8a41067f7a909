/** Reports of the operator pages: spend by account, key and model, finding a person by an ID, and CSV files. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../rest/client.js";
import { createStranger, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { type Person, signUp } from "../support/sign-in.js";
import { buyCredits } from "../support/top-ups.js";

const MARCH = new Date("2026-03-15T12:00:00Z");

describe.skipIf(NO_BROWSER)("operator reports", () => {
  let browser: Browser;
  let app: TestApp;
  let operator: Person;
  let stranger: { readonly key: string; readonly keyId: string };
  let strange: string;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    operator = await signUp(app, { name: "Olga Operator" });
    const { prisma } = app.database;
    await prisma.account.update({ where: { id: operator.accountId }, data: { isOperator: true } });
    const key = await createKey(app, { name: "production" });
    stranger = await createStranger(app);
    strange = (await prisma.apiKey.findUniqueOrThrow({ where: { id: stranger.keyId } })).accountId;
    await createUsage(app, key.id, 3, MARCH, { costNanocredits: 2_000_000_000n, inputTextTokens: 1_000 });
    await createUsage(app, stranger.keyId, 1, MARCH, { costNanocredits: 500_000_000n, model: "acme/image", modelUsed: "acme/image" });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const rowsOf = (page: Page) =>
    page
      .getByRole("region", { name: "Spend" })
      .getByRole("row")
      .allInnerTexts()
      .then((rows) => rows.map((row) => row.replace(/\s+/g, " ").trim()));
  const downloaded = async (page: Page) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download CSV" }).click()]);
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") };
  };

  it("show what owners of models are owed, and days that may be farmed", async () => {
    const { pool } = app.database;
    await pool.query(
      `INSERT INTO earning (generation_id, kind, account_id, payer_id, source, sold_nanocredits, nanocredits, day)
       VALUES (gen_random_uuid(), 'model', $1, $2, 'someone/model', 3000000000, 2500000000, (now() AT TIME ZONE 'UTC')::date)`,
      [strange, operator.accountId],
    );
    await pool.query(
      `INSERT INTO earning_daily (account_id, day, kind, source, requests, nanocredits)
       VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 'model', 'someone/model', 1, 2500000000)`,
      [strange],
    );
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/earnings");

    const owed = page.getByRole("region", { name: "Accounts to pay" });
    expect((await owed.getByRole("row").nth(1).innerText()).replace(/\s+/g, " ")).toMatch(/ 0\.00 2\.50$/);
    const flag = page.getByRole("region", { name: "Flagged days" }).getByRole("row").nth(1);
    expect(await flag.innerText()).toMatch(/Most of the day's earnings came from one payer/);
    await screenshot(page, "operator-earnings");
    expect((await downloaded(page)).text).toContain(`${strange},`);
    await flag.getByRole("link", { name: "Payer" }).click();
    await page.getByRole("status").getByText("1 account", { exact: true }).waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("show the sales of each day, with refunds that failed and disputes that were won", async () => {
    const id = await buyCredits(app, strange, 1_000n);
    const { topUpBooking } = app.services;
    const claim = { kind: "refund", reference: "re_1", cents: 400n } as const;
    const dispute = { kind: "dispute", reference: "dp_1", cents: 500n } as const;
    for (const isVoid of [false, true])
      await topUpBooking.bookClaims(id, [
        { ...claim, isVoid },
        { ...dispute, isVoid },
      ]);
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/sales");

    const row = page.getByRole("region", { name: "Sales" }).getByRole("row").nth(1);
    await expect
      .poll(() => row.innerText().then((text) => text.replace(/\s+/g, " ")))
      .toContain("development 10.00 10.00 USD 1 4.00 USD 1 4.00 USD 1 5.00 USD 1 5.00 USD 1");
    await screenshot(page, "operator-sales");
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("show the spend of a month by account, key and model, sorted by a column, with the total, and as CSV", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/spend");
    await page.getByText(/^No spend in /).waitFor();
    await page.getByLabel("Month", { exact: true }).fill("2026-03");

    await expect.poll(() => rowsOf(page)).toHaveLength(4);
    const [, first, second, total] = await rowsOf(page);
    expect(first).toMatch(/^owner.* 3 3,000 0 6\.00$/);
    expect(second).toMatch(/^stranger.* 1 0 0 0\.50$/);
    expect(total).toBe("Total 4 3,000 0 6.50");
    await page.getByRole("button", { name: "Spend" }).click();
    await expect.poll(async () => (await rowsOf(page))[1]).toMatch(/^stranger/);
    expect(await page.getByRole("columnheader", { name: "Spend" }).getAttribute("aria-sort")).toBe("ascending");
    await page.getByText("Model", { exact: true }).click();
    await expect.poll(async () => (await rowsOf(page))[1]).toMatch(/^acme\/image 1/);
    await page.getByText("Key", { exact: true }).click();
    await page.getByRole("link", { name: "production" }).waitFor();
    await screenshot(page, "operator-spend");

    const { name, text } = await downloaded(page);
    expect(name).toBe("spend-2026-03-by-key.csv");
    expect(text.trimEnd().split("\r\n")).toHaveLength(3);
    await page.getByRole("link", { name: "stranger", exact: true }).click();
    await page.getByRole("region", { name: "Keys of the account" }).getByText("stranger").waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Previous month" }).click();
    await page.getByText("No spend in February 2026").waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("find a person by the request ID of a failed request, by a key ID, and by a key that stays out of the address", async () => {
    const requestId = `req-${randomUUID()}`;
    await app.database.prisma.failedRequest.create({
      data: {
        ...{ id: randomUUID(), accountId: strange, requestId, route: "/v1/chat/completions", status: 502, code: "UPSTREAM_ERROR" },
        ...{ message: "The upstream failed.", milliseconds: 5, timestamp: new Date() },
      },
    });
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open("operator/accounts");
    const find = async (text: string) => {
      await page.getByRole("searchbox", { name: "Search" }).fill(text);
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByRole("status").getByText("1 account", { exact: true }).waitFor();
      return page.getByRole("region", { name: "Accounts" }).getByRole("link");
    };

    const person = await find(requestId);
    expect(await person.textContent()).toMatch(/^stranger/);
    await page.getByRole("link", { name: "502 UPSTREAM_ERROR" }).click();
    await page.getByRole("dialog", { name: "Request" }).getByText("The upstream failed.").waitFor();

    await open("operator/accounts");
    await find(stranger.key);
    expect(page.url()).toContain(`q=${stranger.key.slice(0, 10)}`);
    expect(page.url()).not.toContain(stranger.key.slice(0, 11));
    await (await find(stranger.keyId)).click();
    await page.getByRole("region", { name: "Keys of the account" }).getByRole("button", { name: "Revoke stranger" }).waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("download the filtered audit log as CSV", async () => {
    await app.database.prisma.auditEntry.createMany({
      data: ["set_tier", "suspend_account"].map((act) => ({ id: randomUUID(), act, accountId: strange, reason: `=${act}` })),
    });
    const { page, open, context } = await visitDashboard(browser, app, { person: operator });
    await open(`operator/audit?account=${strange}&action=SET_TIER`);
    await page.getByRole("region", { name: "Audit log" }).getByText("Changed tier").first().waitFor();

    const { name, text } = await downloaded(page);

    expect(name).toBe("audit-log.csv");
    const lines = text.trimEnd().split("\r\n");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain(",'=set_tier,");
    await context.close();
  });
});
