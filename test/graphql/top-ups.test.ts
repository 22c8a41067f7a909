/** Credits that are bought at the development checkout, on both faces: once each, refunds down to zero, for its own account alone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CreateCheckoutDocument, MyTopUpsDocument, RefundTopUpDocument, TopUpCompletedDocument } from "../operations/generated/graphql.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { PageBrowser } from "../support/page-browser.js";
import { json } from "../support/upstream-replies.js";
import { codes, execute, ok, subscribeSse, type Target } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

const buy = async (credits: string, target: Target = app) =>
  ok(await execute(target, CreateCheckoutDocument, { input: { credits } })).createCheckout;
const tokenOf = (url: string) => new URL(url).searchParams.get("token") ?? "";
const pathOf = (url: string) => new URL(url).pathname + new URL(url).search;

/** A person who has the page open. */
async function open(url: string) {
  const browser = new PageBrowser(app.baseUrl);
  await browser.get(pathOf(url));
  return (decision: "pay" | "cancel") => browser.submit("/checkout", { decision, token: tokenOf(url) });
}

const decide = async (url: string, decision: "pay" | "cancel") => (await open(url))(decision);

const packOf = async (accountId: string) =>
  (await app.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } })).packNanocredits;

async function createBuyer() {
  const { key, keyId } = await createStranger(app);
  const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
  return { ...app, key, accountId };
}

const linesOf = async (transactionId: string) =>
  (await app.database.prisma.ledgerEntry.findMany({ where: { transactionId }, orderBy: { line: "asc" } })).map((entry) => [
    entry.book,
    entry.kind,
    entry.amountNanocredits,
  ]);

describe("a checkout", () => {
  it("adds its credits once it is paid, and once alone", async () => {
    const buyer = await createBuyer();
    const live = subscribeSse(buyer, TopUpCompletedDocument, {});
    const { url, topUp } = await buy("12.5", buyer);
    expect(topUp).toMatchObject({
      state: "OPEN",
      credits: "12.5",
      amount: "12.50",
      currency: "usd",
      processor: "development",
      paidAt: null,
    });
    expect((await new PageBrowser(app.baseUrl).get(pathOf(url))).text).toContain("Buy 12.5 credits?");

    const inAnotherTab = await open(url);
    expect((await decide(url, "pay")).status).toBe(303);
    expect(ok(await live.next()).topUpCompleted).toMatchObject({ restId: topUp.restId, state: "PAID" });
    expect((await new PageBrowser(app.baseUrl).get(pathOf(url))).text).toContain("This checkout is paid.");
    expect((await inAnotherTab("pay")).status).toBe(409);
    const report = { topUpId: topUp.restId, cents: 1250n, currency: "usd" };
    const reports = await Promise.all(Array.from({ length: 5 }, () => app.services.topUps.bookPayment("development", report)));

    expect(reports).toEqual(Array.from({ length: 5 }, () => true));
    expect(await packOf(buyer.accountId)).toBe(12_500_000_000n);
    expect(await linesOf(topUp.restId)).toEqual([
      ["pack", "purchase", 12_500_000_000n],
      ["cash", "purchase", -12_500_000_000n],
    ]);
  });

  it("adds nothing when it is cancelled, or another amount or currency is reported", async () => {
    const buyer = await createBuyer();
    const { url, topUp } = await buy("5", buyer);
    const { topUps } = app.services;
    const report = { topUpId: topUp.restId, cents: 500n, currency: "usd" };

    expect(await topUps.bookPayment("development", { ...report, cents: 1n })).toBe(false);
    expect(await topUps.bookPayment("development", { ...report, currency: "eur" })).toBe(false);
    expect(await topUps.bookPayment("stripe", report)).toBe(false);
    expect(await topUps.bookPayment("development", { ...report, topUpId: "00000000-0000-4000-8000-000000000000" })).toBe(false);
    const inAnotherTab = await open(url);
    expect((await decide(url, "cancel")).status).toBe(303);
    expect((await inAnotherTab("pay")).status).toBe(409);
    expect(await packOf(buyer.accountId)).toBe(0n);
    expect(ok(await execute(buyer, MyTopUpsDocument, { first: 1 })).me?.topUps?.nodes).toMatchObject([{ state: "CANCELLED" }]);
  });

  it("still counts when its payment is reported after it was cancelled", async () => {
    const buyer = await createBuyer();
    const { url, topUp } = await buy("1", buyer);
    await decide(url, "cancel");

    expect(await app.services.topUps.bookPayment("development", { topUpId: topUp.restId, cents: 100n, currency: "usd" })).toBe(true);
    expect(await packOf(buyer.accountId)).toBe(10n ** 9n);
  });

  it.each(["0", "0.99", "10000.01", "1.001"])("is refused for %s credits, with the field", async (credits) => {
    const refused = await execute(app, CreateCheckoutDocument, { input: { credits } });

    expect(codes(refused)).toEqual(["BAD_REQUEST"]);
    expect(JSON.stringify(refused)).toContain("credits");
  });

  it.each(["1", "10000", "1.01"])("is opened for %s credits", async (credits) => {
    expect((await buy(credits, await createBuyer())).topUp.credits).toBe(credits);
  });

  it("has a page for its own link alone", async () => {
    const { url } = await buy("2", await createBuyer());
    const [content, signature = ""] = tokenOf(url).split(".");
    // The last character of a signature has bits that do not count.
    const forged = `${content}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;

    for (const token of [forged, "", "x".repeat(5_000)]) {
      expect((await new PageBrowser(app.baseUrl).get(`/checkout?token=${token}`)).status).toBe(404);
    }
  });

  it("is seen by its account alone, on both faces", async () => {
    const [buyer, other] = [await createBuyer(), await createBuyer()];
    const created = await fetch(`${app.baseUrl}/account/top-ups`, {
      method: "POST",
      headers: { authorization: `Bearer ${buyer.key}`, "content-type": "application/json" },
      body: JSON.stringify({ credits: 3 }),
    });
    const { url, top_up: topUp } = (await created.json()) as { url: string; top_up: { id: string } };
    const read = async (key: string, path: string) => {
      const answer = await fetch(`${app.baseUrl}/account/top-ups${path}`, { headers: { authorization: `Bearer ${key}` } });
      return [answer.status, await answer.json()] as const;
    };

    expect(created.status).toBe(200);
    expect((await decide(url, "pay")).status).toBe(303);
    expect(await read(buyer.key, "")).toMatchObject([200, { data: [{ id: topUp.id, state: "paid", credits: 3, amount: "3.00" }] }]);
    expect(await read(buyer.key, `/${topUp.id}`)).toMatchObject([200, { state: "paid" }]);
    expect(await read(other.key, "")).toMatchObject([200, { data: [], next_cursor: null }]);
    expect((await read(other.key, `/${topUp.id}`))[0]).toBe(404);
  });
});

describe("a refund", () => {
  it("takes the part that is left, and writes off the part that is spent", async () => {
    app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, 2) })));
    const buyer = await createBuyer();
    const { url, topUp } = await buy("5", buyer);
    await decide(url, "pay");
    // Two output tokens at one credit each.
    const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${buyer.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "acme/dear", max_tokens: 2, messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
    await expect.poll(() => app.database.prisma.usageRecord.count({ where: { accountId: buyer.accountId } })).toBe(1);

    const refund = () => execute(app, RefundTopUpDocument, { input: { topUpId: topUp.id, reason: "asked for it" } });
    const both = await Promise.all([refund(), refund()]);
    expect(both.map((each) => codes(each)).filter((found) => found.length === 0).length).toBeGreaterThanOrEqual(1);
    expect(codes(await refund())).toEqual(["CONFLICT"]);

    const { prisma } = app.database;
    const entries = await prisma.ledgerEntry.findMany({ where: { accountId: buyer.accountId, kind: "refund" }, orderBy: { line: "asc" } });
    const sums = Object.fromEntries(entries.map(({ book, amountNanocredits }) => [book, amountNanocredits]));
    expect(sums).toEqual({ pack: -3_000_000_000n, write_off: -2_000_000_000n, cash: 5_000_000_000n });
    expect(await packOf(buyer.accountId)).toBe(0n);
    expect(await prisma.auditEntry.count({ where: { objectId: topUp.restId, act: "refund_top_up" } })).toBe(1);
    expect(ok(await execute(buyer, MyTopUpsDocument, { first: 1 })).me?.topUps?.nodes).toMatchObject([
      { state: "REFUNDED", refunded: "5" },
    ]);
  });

  it("in parts takes each part once, in any order of the reports", async () => {
    const buyer = await createBuyer();
    const { url, topUp } = await buy("9.99", buyer);
    await decide(url, "pay");
    const { topUps } = app.services;
    for (const cents of [333n, 333n, 666n, 333n, 999n, 5_000n]) await topUps.bookRefund(topUp.restId, cents, null);

    expect(await packOf(buyer.accountId)).toBe(0n);
    const refunds = await app.database.prisma.ledgerEntry.findMany({ where: { accountId: buyer.accountId, kind: "refund", book: "cash" } });
    expect(refunds.map(({ amountNanocredits }) => amountNanocredits).sort()).toEqual([3_330_000_000n, 3_330_000_000n, 3_330_000_000n]);
  });

  it("is refused for an unpaid top-up, and for all but operators", async () => {
    const buyer = await createBuyer();
    const { topUp } = await buy("1", buyer);
    const refund = (target: Target) => execute(target, RefundTopUpDocument, { input: { topUpId: topUp.id } });

    expect(codes(await refund(app))).toEqual(["CONFLICT"]);
    expect(codes(await refund(buyer))).toEqual(["FORBIDDEN"]);
  });
});

describe("a gateway without a processor", () => {
  it("says so", async () => {
    const plain = await createTestApp({ config: { payments: "off" } });
    const { areCreditsSold } = ok(await execute(plain, MyTopUpsDocument, { first: 1 }));
    const refused = await execute(plain, CreateCheckoutDocument, { input: { credits: "5" } });
    const page = await new PageBrowser(plain.baseUrl).get("/checkout?token=x");
    await plain.close();

    expect(areCreditsSold).toBe(false);
    expect(codes(refused)).toEqual(["SERVICE_UNAVAILABLE"]);
    expect(page.status).toBe(404);
  });
});
