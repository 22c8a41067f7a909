/** Credits sold on an invoice, their payments, grants that expire, and the trial balance after all of it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GrantCreditsDocument, RecordPaymentDocument, SellCreditsDocument, TrialBalanceDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember } from "../support/community-models.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { codes, execute, ok } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterAll(async () => {
  const broken = await findBrokenInvariants(app.database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

const balanceOf = async () => {
  const { trialBalance } = ok(await execute(app, TrialBalanceDocument, {}));
  if (!trialBalance) throw new Error("no trial balance");
  return trialBalance;
};
const closingOf = async (book: string) => (await balanceOf()).books.find((one) => one.book === book)?.closing ?? "0";

describe("credits sold on an invoice", () => {
  it("count as bought and as owed until they are paid, once each", async () => {
    const { accountId } = await createMember(app, { credits: 0 });
    const [saleId, paymentId] = [randomUUID(), randomUUID()];
    const sell = (credits: string, more: object = {}) =>
      execute(app, SellCreditsDocument, { input: { accountId, bucket: "PACK", credits, saleId, note: "invoice 17", ...more } });
    const pay = (credits: string, id = paymentId) => execute(app, RecordPaymentDocument, { input: { accountId, credits, paymentId: id } });
    const before = await balanceOf();

    expect(ok(await sell("10")).sellCredits?.account.balance?.pack).toBe("10");
    expect(ok(await sell("10")).sellCredits?.account.balance?.pack).toBe("10");
    expect(codes(await sell("11"))).toEqual(["CONFLICT"]);
    expect(codes(await sell("1", { bucket: "TIER", saleId: null }))).toEqual(["BAD_REQUEST"]);
    expect(await closingOf("RECEIVABLE")).toBe("-10");
    expect(codes(await pay("10.5", randomUUID()))).toEqual(["CONFLICT"]);
    ok(await pay("4"));
    ok(await pay("4"));
    expect(codes(await pay("4", saleId))).toEqual(["CONFLICT"]);
    expect([await closingOf("RECEIVABLE"), await closingOf("CASH")]).toEqual(["-6", "-4"]);

    const after = await balanceOf();
    expect(Number(after.sold) - Number(before.sold)).toBe(10);
    expect(after.debit).toBe(after.credit);
    expect(await app.database.prisma.auditEntry.count({ where: { accountId, act: { in: ["sell_credits", "record_payment"] } } })).toBe(2);
  });
});

describe("a grant with an expiry", () => {
  it("loses the part that is not spent by then, and refuses other terms", async () => {
    const { accountId } = await createMember(app, { credits: 1 });
    const grant = (more: object) =>
      execute(app, GrantCreditsDocument, {
        input: { accountId, bucket: "PACK", credits: "3", expiresAt: "2999-01-01T00:00:00Z", ...more },
      });
    ok(await grant({}));
    for (const wrong of [
      { expiresAt: "2020-01-01T00:00:00Z" },
      { bucket: "TIER" },
      { expiresAt: null, priority: 1 },
      { priority: 101 },
      { priority: -1 },
    ]) {
      expect(codes(await grant(wrong)), JSON.stringify(wrong)).toEqual(["BAD_REQUEST"]);
    }
    await app.database.pool.query("UPDATE expiring_grant SET expires_at = now() - interval '1 second' WHERE account_id = $1", [accountId]);
    await app.services.bookkeepingWork.run();
    await app.services.bookkeepingWork.run();

    const { packNanocredits } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } });
    expect(packNanocredits).toBe(10n ** 9n);
    expect(await closingOf("BREAKAGE")).toBe("3");
  });
});
