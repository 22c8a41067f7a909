/** Tiers, buckets and split charges, as callers of both faces see them (docs/spec/credits.md). */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CREDIT, chat, closeBooks, databaseOf, type Payer } from "../e2e/money.js";
import { codes, execute, ok } from "../graphql/client.js";
import {
  type ChatCompletionInput,
  ChatDocument,
  MeDocument,
  MyUsageDailyDocument,
  MyUsageDocument,
} from "../operations/generated/graphql.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { createTierAccount, createTierApp, type TierApp } from "../support/tiers.js";
import { handler } from "../support/upstream-replies.js";
import { createClient, type UsageJson } from "./client.js";

let app: TierApp;

beforeAll(async () => {
  app = await createTierApp();
});
afterEach(() => {
  app.setClock(app.noon);
});
afterAll(() => app.close());

/** Generates this many tokens of a model that charges one credit for each. */
type Spend = (payer: Payer, tokens: number, model?: string) => Promise<{ status: number; code: string | null }>;

async function spendByRest(payer: Payer, tokens: number, model = "acme/dear") {
  app.upstream.answer.usage = wireUsage(1, tokens);
  const response = await chat(app, payer, { model, max_tokens: tokens });
  const body = (await response.json()) as { error?: { code: string } };
  return { status: response.status, code: body.error?.code ?? null };
}

async function spendByGraphQL({ key }: Payer, tokens: number, model = "acme/dear") {
  app.upstream.answer.usage = wireUsage(1, tokens);
  const input: ChatCompletionInput = { model, maxTokens: tokens, messages: [{ role: "USER", content: "Hello" }] };
  const answer = await execute({ ...app, key }, ChatDocument, { input });
  return { status: answer.errors ? 402 : 200, code: codes(answer)[0] ?? null };
}

const FACES: [string, Spend][] = [
  ["REST", spendByRest],
  ["GraphQL", spendByGraphQL],
];

const balanceOf = async ({ key }: Payer) =>
  (await createClient(app.baseUrl, key).get("/account/balance")).json<{ balance: number }>().balance;
const nextResetOf = async ({ key }: Payer) => (await createClient(app.baseUrl, key).get("/account/profile")).json().nextResetAt;
const meterSourcesOf = async ({ key }: Payer) => {
  const { usage } = (await createClient(app.baseUrl, key).get("/account/usage")).json<UsageJson>();
  return usage.map(({ meter_source, cost_usd }) => [meter_source, cost_usd]).reverse();
};
const bucketsOf = async ({ key }: Payer) => ok(await execute({ ...app, key }, MeDocument)).me;

describe("an account's tier", () => {
  it.each<[string, (payer: Payer) => Promise<unknown>, unknown]>([
    ["its balance", balanceOf, 1],
    ["its profile", nextResetOf, "midnight"],
    ["me", async (payer) => (await bucketsOf(payer)).nextResetAt, "midnight"],
    ["its buckets", async (payer) => (await bucketsOf(payer)).balance?.tier, "1"],
  ])("is filled when the account is first read: %s", async (_what, read, expected) => {
    const payer = await createTierAccount(app);

    expect(await read(payer)).toBe(expected === "midnight" ? app.midnight.toISOString() : expected);

    const { account } = await closeBooks(app, payer);
    expect(account.buckets.tier).toBe(CREDIT);
  });

  it("shows the same next reset on both faces, and moves it at the boundary", async () => {
    const payer = await createTierAccount(app);

    expect([await nextResetOf(payer), (await bucketsOf(payer)).nextResetAt]).toEqual(Array(2).fill(app.midnight.toISOString()));
    app.setClock(new Date(app.midnight.getTime() - 1));
    expect(await nextResetOf(payer)).toBe(app.midnight.toISOString());
    app.setClock(app.midnight);
    expect([await nextResetOf(payer), (await bucketsOf(payer)).nextResetAt]).toEqual(Array(2).fill(app.nextMidnight.toISOString()));
  });

  it("has no next reset without a tier, or with one that refills nothing", async () => {
    const payers = [await createTierAccount(app, { tierName: null }), await createTierAccount(app, { tierName: "idle" })];
    const owner = createClient(app.baseUrl, app.key);

    for (const payer of payers) {
      expect(await nextResetOf(payer)).toBeNull();
      expect(await balanceOf(payer)).toBe(0);
    }
    expect((await owner.get("/account/profile")).json()).toMatchObject({ tier: null, nextResetAt: null });
  });

  it("does not stack, and is kept apart from bought credits", async () => {
    const payer = await createTierAccount(app, { pack: 3n * CREDIT });

    expect(await balanceOf(payer)).toBe(4);
    app.setClock(app.midnight);
    expect(await balanceOf(payer)).toBe(4);
    app.setClock(app.nextMidnight);
    expect(await balanceOf(payer)).toBe(4);
    expect((await bucketsOf(payer)).balance).toMatchObject({ tier: "1", pack: "3" });
  });

  it("is refilled before a generation holds of it, read or not", async () => {
    for (const [face, spend] of FACES) {
      app.setClock(app.noon);
      const payer = await createTierAccount(app);

      expect(await spend(payer, 1), face).toEqual({ status: 200, code: null });
      expect(await spend(payer, 1), face).toEqual({ status: 402, code: "INSUFFICIENT_BALANCE" });
      app.setClock(new Date(app.midnight.getTime() - 1));
      expect(await spend(payer, 1), face).toEqual({ status: 402, code: "INSUFFICIENT_BALANCE" });
      app.setClock(app.midnight);
      expect(await spend(payer, 1), face).toEqual({ status: 200, code: null });
      expect(await meterSourcesOf(payer)).toEqual([
        ["tier", 1],
        ["tier", 1],
      ]);
      await closeBooks(app, payer);
    }
  });

  it("is refilled once for a burst at the boundary", async () => {
    const payer = await createTierAccount(app, { tierName: "plus" });

    const answers = await Promise.all(Array.from({ length: 10 }, () => spendByRest(payer, 1)));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(answers.filter(({ code }) => code === "INSUFFICIENT_BALANCE")).toHaveLength(5);
    const refills = await databaseOf(app).prisma.ledgerEntry.findMany({
      where: { accountId: payer.accountId, kind: "refill", book: "tier" },
    });
    expect(refills.map(({ amountNanocredits, note }) => [amountNanocredits, note])).toEqual([[5n * CREDIT, "plus"]]);
    await closeBooks(app, payer);
  });

  it("keeps holds across the boundary, and charges them", async () => {
    const payer = await createTierAccount(app, { tierName: "plus" });
    const reading = chatUntil(payer, 4);
    await expect.poll(async () => (await bucketsOf(payer)).balance?.held, { timeout: 10_000, interval: 10 }).toBe("4");
    await databaseOf(app).prisma.account.update({ where: { id: payer.accountId }, data: { tier: "free" } });

    app.setClock(app.midnight);
    const during = await bucketsOf(payer);
    reading.finish();

    expect(during.balance).toMatchObject({ tier: "4", held: "4" });
    expect((await reading.answered).status).toBe(200);
    expect((await closeBooks(app, payer)).account.buckets.tier).toBe(0n);
    expect(await meterSourcesOf(payer)).toEqual([["tier", 4]]);
  });
});

/** A chat of so many tokens whose upstream answers on a signal. */
function chatUntil(payer: Payer, tokens: number) {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const answer = handler(async (_request, response) => {
    await finished;
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(chatCompletion({ usage: wireUsage(1, tokens) })));
  });
  app.upstream.replyNext(answer);
  return { answered: chat(app, payer, { model: "acme/dear", max_tokens: tokens }), finish };
}

describe.each(FACES)("a charge through %s", (_face, spend) => {
  it("draws tier, then crypto, then pack, is split, and is named after the bucket that paid the most", async () => {
    const payer = await createTierAccount(app, { tierName: "plus", crypto: 3n * CREDIT, pack: 10n * CREDIT });

    await spend(payer, 1); // tier 1
    await spend(payer, 6); // tier 4, crypto 2
    await spend(payer, 3); // crypto 1, pack 2

    expect(await meterSourcesOf(payer)).toEqual([
      ["tier", 1],
      ["tier", 6],
      ["pack", 3],
    ]);
    expect(await chargesOf(payer)).toEqual([{ tier: -1 }, { tier: -4, crypto: -2 }, { crypto: -1, pack: -2 }]);
    expect((await closeBooks(app, payer)).account.buckets).toEqual({ tier: 0n, crypto: 0n, pack: 8n * CREDIT });
  });

  it("for a model that takes paid credits only draws crypto, then pack, and never the tier", async () => {
    const payer = await createTierAccount(app, { tierName: "plus", crypto: 2n * CREDIT, pack: 5n * CREDIT });

    await spend(payer, 1, "acme/dear-paid-only"); // crypto 1
    await spend(payer, 3, "acme/dear-paid-only"); // crypto 1, pack 2
    await spend(payer, 4); // tier 4

    expect(await meterSourcesOf(payer)).toEqual([
      ["crypto", 1],
      ["pack", 3],
      ["tier", 4],
    ]);
    expect(await chargesOf(payer)).toEqual([{ crypto: -1 }, { crypto: -1, pack: -2 }, { tier: -4 }]);
    expect(await spend(payer, 4, "acme/dear-paid-only")).toEqual({ status: 402, code: "INSUFFICIENT_BALANCE" });
    expect((await closeBooks(app, payer)).account.buckets).toEqual({ tier: CREDIT, crypto: 0n, pack: 3n * CREDIT });
  });

  it("for a model that takes paid credits only is refused to a tier alone, and no upstream hears of it", async () => {
    const payer = await createTierAccount(app, { tierName: "plus" });
    const asked = app.upstream.requests.length;

    expect(await spend(payer, 1, "acme/dear-paid-only")).toEqual({ status: 402, code: "INSUFFICIENT_BALANCE" });

    expect(app.upstream.requests).toHaveLength(asked);
    expect(await balanceOf(payer)).toBe(5);
  });

  it("is bounded by the key's budget, even with a larger tier", async () => {
    const payer = await createTierAccount(app, { tierName: "plus", budget: 2n * CREDIT });

    expect(await balanceOf(payer)).toBe(2);
    expect(await spend(payer, 2)).toEqual({ status: 200, code: null });
    app.setClock(app.midnight);
    expect(await spend(payer, 1)).toEqual({ status: 402, code: "KEY_BUDGET_EXHAUSTED" });
    expect(await balanceOf(payer)).toBe(0);
  });
});

/** What each charge took from the account's buckets, in credits, oldest first. */
async function chargesOf({ accountId }: Payer): Promise<Record<string, number>[]> {
  const { prisma } = databaseOf(app);
  const rows = await prisma.usageRecord.findMany({ where: { accountId }, orderBy: { timestamp: "asc" } });
  const entries = await prisma.ledgerEntry.findMany({ where: { accountId, kind: "charge", book: { in: ["tier", "crypto", "pack"] } } });
  return rows.map(({ id }) =>
    Object.fromEntries(
      entries
        .filter(({ transactionId }) => transactionId === id)
        .sort((a, b) => a.line - b.line)
        .map(({ book, amountNanocredits }) => [book, Number(amountNanocredits / CREDIT)]),
    ),
  );
}

describe("a usage row", () => {
  it("names on GraphQL the bucket that it names on REST, and so does the daily roll-up", async () => {
    const payer = await createTierAccount(app, { tierName: "plus", pack: 4n * CREDIT });
    await spendByRest(payer, 2);
    await spendByGraphQL(payer, 7); // tier 3, pack 4

    const rows = ok(await execute({ ...app, key: payer.key }, MyUsageDocument)).me.usage?.edges;
    const daily = ok(await execute({ ...app, key: payer.key }, MyUsageDailyDocument)).me.usageDaily?.days;

    expect(await meterSourcesOf(payer)).toEqual([
      ["tier", 2],
      ["pack", 7],
    ]);
    expect(rows?.map(({ node }) => [node.meterSource, node.cost])).toEqual([
      ["PACK", "7"],
      ["TIER", "2"],
    ]);
    expect(daily?.map(({ meterSource, requests, cost }) => [meterSource, requests, cost])).toEqual([
      ["TIER", 1, "2"],
      ["PACK", 1, "7"],
    ]);
  });
});
