/** The owner's ledger on both faces, the tier's refill, and how to get credits (docs/spec/accounts.md#ledger). */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CREDIT, chat, closeBooks, databaseOf, type Payer } from "../e2e/money.js";
import { MyLedgerDocument, type MyLedgerQueryVariables, NodesByIdsDocument, TopUpDocument } from "../operations/generated/graphql.js";
import { createClient } from "../rest/client.js";
import { createTestApp } from "../support/app.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { createTierAccount, createTierApp, type TierApp } from "../support/tiers.js";
import { json } from "../support/upstream-replies.js";
import { codes, execute, ok } from "./client.js";

const DAY_MS = 86_400_000;

let app: TierApp;

beforeAll(async () => {
  app = await createTierApp();
});
afterEach(() => app.setClock(app.noon));
afterAll(() => app.close());

/** One credit for each token. */
async function spend(payer: Payer, tokens: number): Promise<void> {
  app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, tokens) })));
  expect((await chat(app, payer, { model: "acme/dear", max_tokens: tokens })).status).toBe(200);
}

/** Five credits granted two days ago, and two of them charged a day ago, which no request can do. */
async function addHistory({ accountId }: Payer, grantedAt: Date, chargedAt: Date): Promise<void> {
  const { prisma } = databaseOf(app);
  const id = randomUUID();
  const grant = { transactionId: randomUUID(), accountId, kind: "grant", note: "thank you", createdAt: grantedAt } as const;
  const charge = { transactionId: id, accountId, kind: "charge", createdAt: chargedAt } as const;
  const model = "acme/dear";
  await prisma.$transaction([
    prisma.ledgerEntry.createMany({
      data: [
        { ...grant, line: 1, book: "pack", amountNanocredits: 5n * CREDIT },
        { ...grant, line: 2, book: "issued", amountNanocredits: -5n * CREDIT },
        { ...charge, line: 3, book: "pack", amountNanocredits: -2n * CREDIT },
        { ...charge, line: 5, book: "revenue", amountNanocredits: 2n * CREDIT },
      ],
    }),
    prisma.usageRecord.create({
      data: {
        ...{
          id,
          accountId,
          timestamp: chargedAt,
          modality: "text",
          model,
          modelUsed: model,
          meterSource: "pack",
          costNanocredits: 2n * CREDIT,
        },
        ...{ responseTimeMs: 5, status: "ok", usageSource: "provider" },
      },
    }),
    prisma.usageDaily.create({
      data: { accountId, day: chargedAt, model, meterSource: "pack", requests: 1, costNanocredits: 2n * CREDIT },
    }),
    prisma.account.update({ where: { id: accountId }, data: { packNanocredits: 3n * CREDIT } }),
  ]);
}

const ledgerOf = async ({ key }: Payer, variables: MyLedgerQueryVariables = {}) =>
  ok(await execute({ ...app, key }, MyLedgerDocument, variables)).me;
const rest = async ({ key }: Payer, query = "") => (await createClient(app.baseUrl, key).get(`/account/ledger${query}`)).json();

const startOfDay = (daysAgo: number) => new Date(Math.floor(app.noon.getTime() / DAY_MS) * DAY_MS - daysAgo * DAY_MS).toISOString();

describe("the ledger of an account", () => {
  it("lists grants and the charges of each day with the balance after each, page by page on both faces", async () => {
    const payer = await createTierAccount(app, { tierName: null });
    const grantedAt = new Date(app.noon.getTime() - 2 * DAY_MS);
    await addHistory(payer, grantedAt, new Date(app.noon.getTime() - DAY_MS));
    await spend(payer, 1);

    const { balance, ledger, tierRefill } = await ledgerOf(payer);

    const charge = { kind: "CHARGE", bucket: null, note: null, expiresAt: null };
    const lines = [
      { ...charge, bookedAt: startOfDay(0), credits: "-1", requests: 1, balanceAfter: "2" },
      { ...charge, bookedAt: startOfDay(1), credits: "-2", requests: 1, balanceAfter: "3" },
      {
        ...{ kind: "GRANT", bucket: "PACK", note: "thank you", expiresAt: null, requests: null },
        ...{ bookedAt: grantedAt.toISOString(), credits: "5", balanceAfter: "5" },
      },
    ];
    expect([tierRefill, balance?.available, ledger?.totalCount, ledger?.nodes.map(({ id: _, ...line }) => line)]).toEqual([
      null,
      "2",
      3,
      lines,
    ]);
    const first = (await ledgerOf(payer, { first: 1 })).ledger ?? expect.unreachable();
    const next = (await ledgerOf(payer, { first: 5, after: first.pageInfo.endCursor })).ledger ?? expect.unreachable();
    const back = (await ledgerOf(payer, { last: 1, before: next.pageInfo.endCursor })).ledger ?? expect.unreachable();
    const [today, yesterday, granted] = ledger?.nodes ?? [];
    expect([first, next, back].map(({ nodes }) => nodes)).toEqual([[today], [yesterday, granted], [yesterday]]);
    expect([first, next].map(({ pageInfo }) => pageInfo.hasNextPage)).toEqual([true, false]);
    const ids = [today, yesterday, granted].map((line) => line?.id ?? "");
    expect(ok(await execute({ ...app, key: payer.key }, NodesByIdsDocument, { ids })).nodes.map((node) => node?.id)).toEqual(ids);
    const stranger = await createTierAccount(app);
    expect(ok(await execute({ ...app, key: stranger.key }, NodesByIdsDocument, { ids })).nodes).toEqual([null, null, null]);
    const { nextCursor, ledger: newest } = await rest(payer, "?limit=1");
    expect(newest).toEqual([{ ...lines[0], kind: "charge", credits: -1, balanceAfter: 2 }]);
    expect(await rest(payer, `?limit=2&cursor=${nextCursor}`)).toEqual({
      nextCursor: null,
      ledger: [
        { ...lines[1], kind: "charge", credits: -2, balanceAfter: 3 },
        { ...lines[2], kind: "grant", bucket: "pack", credits: 5, balanceAfter: 5 },
      ],
    });
    await closeBooks(app, payer);
  });

  it("has a refill that is due, and when it expires", async () => {
    const payer = await createTierAccount(app, { pack: CREDIT });

    const { ledger, tierRefill } = await ledgerOf(payer);

    expect(tierRefill).toEqual({ credits: "1", period: "DAY" });
    expect(ledger?.nodes).toMatchObject([
      { kind: "REFILL", bucket: "TIER", note: "free", credits: "1", expiresAt: app.midnight.toISOString(), balanceAfter: "2" },
      { kind: "GRANT", bucket: "PACK", credits: "1", expiresAt: null, balanceAfter: "1" },
    ]);
    await closeBooks(app, payer);
  });

  it("is refused without the permission for the balance, and a cursor of another list names the argument", async () => {
    const blind = await createTierAccount(app, { permissions: ["usage"] });
    const payer = await createTierAccount(app);

    expect(codes(await execute({ ...app, key: blind.key }, MyLedgerDocument, {}))).toContain("FORBIDDEN");
    expect((await createClient(app.baseUrl, blind.key).get("/account/ledger")).status).toBe(403);
    const wrong = await createClient(app.baseUrl, payer.key).get("/account/ledger?cursor=bm90aGluZw");
    expect([wrong.status, wrong.json<{ error: { param: string } }>().error.param]).toEqual([400, "cursor"]);
    const [, tooMany] = await Promise.all(
      ["1", "101"].map((limit) => createClient(app.baseUrl, payer.key).get(`/account/ledger?limit=${limit}`)),
    );
    expect(tooMany?.json<{ error: { param: string } }>().error.param).toBe("limit");
  });
});

describe("how to get credits", () => {
  it("is null unless the operator says it", async () => {
    expect(await execute({ ...app, key: null }, TopUpDocument)).toMatchObject({ data: { topUp: null } });
  });

  it.each([
    [{ text: "Ask in #ai.", url: "https://pay.example/?a=1" }, "top up the account. Ask in #ai. https://pay.example/?a=1"],
    [{ text: null, url: "mailto:ai@example.com" }, "top up the account: mailto:ai@example.com"],
    [{ text: "Ask in #ai.", url: null }, "top up the account. Ask in #ai."],
  ])("is on the graph and in 402 errors: %j", async (topUp, advice) => {
    const told = await createTestApp({ config: { topUp } });
    try {
      const { key } = await createTierAccount(told, { tierName: null, pack: CREDIT });

      const refused = await chat(told, { key } as Payer, { model: "acme/dear", max_tokens: 2 });

      const { error } = (await refused.json()) as { error: { message: string; details: object } };
      expect([refused.status, error.details]).toEqual([
        402,
        { bound: "balance", required: "2", available: "1", topUp, topUpUrl: expect.stringContaining("/dashboard/credits") },
      ]);
      expect(error.message).toBe(
        "The account's balance does not cover the estimated cost of this request (2 credits needed, 1 available): " +
          `set a smaller max_tokens or ${advice}`,
      );
      expect(ok(await execute({ ...told, key: null }, TopUpDocument)).topUp).toEqual(topUp);
    } finally {
      await told.close();
    }
  });
});
