/** Charges that the database refuses, that come late, and what free tiers may spend together: over the wire, to the last row of the books. */

import { appendFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runSluice } from "../../scripts/sluice/run.js";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { execute, ok } from "../graphql/client.js";
import {
  RefusedSettlementsDocument,
  RetryRefusedSettlementsDocument,
  type RetryRefusedSettlementsInput,
} from "../operations/generated/graphql.js";
import { createClient, type UsageJson } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { createTestLedger, hold, recover, settle, usageRecord } from "../support/ledger.js";
import { wireUsage } from "../support/openai-bodies.js";
import { createSuiteDatabase } from "../support/suite-server.js";
import { createTierAccount, TEST_TIERS } from "../support/tiers.js";
import { CREDIT, chat, closeBooks, createPayer, databaseOf, type Payer, poolOf } from "./money.js";

let upstream: FakeUpstream;
let suite: Awaited<ReturnType<typeof createSuiteDatabase>>;
let dataDir: string;
let app: TestApp;

/** On the same directory and database each time. */
const start = () =>
  createTestApp({ upstream, dataDir, config: { databaseUrl: suite?.url ?? null, tiers: TEST_TIERS, freeSpendPerDay: 3n * CREDIT } });

beforeAll(async () => {
  [upstream, suite, dataDir] = await Promise.all([startFakeUpstream(), createSuiteDatabase(), createEmptyDir()]);
  upstream.answer.usage = wireUsage(10, 1);
  app = await start();
});
afterAll(async () => {
  await app.close();
  await Promise.all([upstream.close(), suite?.drop(), rm(dataDir, { recursive: true })]);
});

/** One credit each. */
const ask = (payer: Payer, more: object = {}) => chat(app, payer, { model: "acme/dear", max_tokens: 1, ...more });

async function sluice(...args: string[]): Promise<string> {
  const out: string[] = [];
  const env = { SLUICE_URL: app.baseUrl, SLUICE_API_KEY: app.key };
  expect(await runSluice(args, env, { out: (text) => out.push(text), error: (text) => out.push(text) })).toBe(0);
  return out.join("\n");
}

describe("a charge that the database refuses", () => {
  it("does not refuse the answer, is shown to operators, and is booked when the cause is gone", async () => {
    const payer = await createPayer(app, { pack: 50n * CREDIT });
    await poolOf(app).query(`ALTER TABLE usage_record ADD CONSTRAINT refused_check CHECK (account_id <> '${payer.accountId}')`);

    const whole = await ask(payer);
    expect(whole.status).toBe(200);
    expect(whole.headers.get("x-cost")).toBe("1");
    const streamed = await ask(payer, { stream: true });
    expect(await streamed.text()).toMatch(/data: \[DONE\]\s*$/);

    const ids = [whole, streamed].map(({ headers }) => headers.get("x-generation-id") as string);
    const shown = await execute(app, RefusedSettlementsDocument);
    expect(ok(shown).refusedSettlements).toEqual({
      count: 2,
      settlements: ids.map((id) => ({
        ...{ generationId: id, accountId: payer.accountId, account: { restId: payer.accountId } },
        ...{ modelId: "acme/dear", model: { restId: "acme/dear" }, cost: "1" },
        reason: expect.stringContaining("refused_check"),
      })),
    });
    expect(await sluice("books", "retry")).toMatch(
      new RegExp(`^GENERATION .*\n${ids[0]} +${payer.accountId} +acme/dear +1 .*refused_check`),
    );
    expect(app.logs.some(({ level, refusedSettlements }) => level === 50 && refusedSettlements === 2)).toBe(true);

    await poolOf(app).query("ALTER TABLE usage_record DROP CONSTRAINT refused_check");
    const retry = async (input: RetryRefusedSettlementsInput) =>
      ok(await execute(app, RetryRefusedSettlementsDocument, { input })).retryRefusedSettlements.refusedSettlements;
    expect(await retry({ ids: ids.slice(1).map((id) => toGlobalId("UsageRecord", id)) })).toEqual({
      count: 1,
      settlements: [{ generationId: ids[0] }],
    });
    expect(await retry({})).toEqual({ count: 0, settlements: [] });
    expect(await sluice("books", "refused")).toBe("The database refuses no charge.");

    const books = await closeBooks(app, payer);
    expect(books.rows.map(({ id, costNanocredits }) => [id, costNanocredits]).sort()).toEqual(ids.map((id) => [id, CREDIT]).sort());
    expect(books.account.buckets.pack).toBe(48n * CREDIT);
  });
});

describe("the cap on the daily spending of all tiers", () => {
  it("ends free generations for all accounts, and no paid ones", async () => {
    const [one, other] = [await createTierAccount(app, { tierName: "plus" }), await createTierAccount(app, { tierName: "plus" })];
    const buyer = await createTierAccount(app, { tierName: "plus", pack: 5n * CREDIT });

    const answers = [await ask(one), await ask(other), await ask(one), await ask(one), await ask(other)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 402, 402]);
    const midnight = new Date(new Date().setUTCHours(24, 0, 0, 0)).toISOString();
    expect(await (answers[3] as Response).json()).toMatchObject({
      error: {
        code: "INSUFFICIENT_BALANCE",
        message: expect.stringContaining(`wait until they return at ${midnight}`),
        details: { bound: "free_spend_per_day", required: "1", resetsAt: midnight },
      },
    });
    expect((await createClient(app.baseUrl, one.key).get("/account/balance")).json()).toMatchObject({ balance: 3 });

    expect((await ask(buyer)).status).toBe(200);
    expect((await closeBooks(app, buyer)).account.buckets).toMatchObject({ tier: 5n * CREDIT, pack: 4n * CREDIT });
    await closeBooks(app, one);
  });
});

describe("a settlement that was spooled before another process recovered its hold", () => {
  it("corrects the recovery when its process is started again", async () => {
    const payer = await createPayer(app, { pack: 9n * CREDIT });
    const noted = usageRecord({ status: "cancelled", usageSource: "partial", timestamp: new Date().toISOString() });
    const held = hold(payer, 5n * CREDIT, { record: noted });
    const ledger = createTestLedger(databaseOf(app));
    await ledger.flush([held]);
    await ledger.flush([recover(held, 1n * CREDIT)]);
    const client = () => createClient(app.baseUrl, payer.key);
    const rows = async () => (await client().get("/account/usage")).json<UsageJson>().usage;
    expect(await rows()).toMatchObject([{ request_id: held.id, cost_usd: 1, status: "cancelled", usage_source: "partial" }]);

    const real = settle(held, 4n * CREDIT, { record: { ...noted, status: "ok", usageSource: "provider" } });
    await appendFile(join(dataDir, "spool/settlements.ndjson"), `${JSON.stringify({ ...real, amount: String(real.amount) })}\n`);
    await app.close();
    app = await start();

    expect(await rows()).toMatchObject([{ request_id: held.id, cost_usd: 4, status: "ok", usage_source: "provider" }]);
    const daily = (await client().get("/account/usage/daily")).json<{ usage: unknown[] }>();
    expect(daily.usage).toMatchObject([{ requests: 1, cost_usd: 4 }]);
    expect((await closeBooks(app, payer)).account.buckets.pack).toBe(5n * CREDIT);
  });
});
