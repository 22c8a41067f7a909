/** Earnings of owners of community models, from a charge to a payout, and attempts to farm them (docs/spec/earnings.md). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  ConvertEarningsDocument,
  EarningsRecordedDocument,
  LinkAccountsDocument,
  MyEarningsDocument,
  OwedEarningsDocument,
  RecordPayoutDocument,
  ReverseEarningsDocument,
  UnlinkAccountDocument,
} from "../operations/generated/graphql.js";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { buyCredits } from "../support/top-ups.js";
import { json, sse } from "../support/upstream-replies.js";
import { codes, execute, ok, subscribeSse } from "./client.js";

/** In picocredits: 10 prompt and 4 completion tokens are 0.00004 credits. */
const PRICES = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };
const CHARGE = 40_000n;
const SHARE = "0.00003";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
});
beforeEach(() => app.upstream.replyAlways(json(chatCompletion({ content: "One, two, three, four, five.", usage: wireUsage(10, 4) }))));
afterAll(async () => {
  const broken = await findBrokenInvariants(app.database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

const as = ({ key }: Pick<Member, "key">) => ({ ...app, key });
const idOf = ({ accountId }: Pick<Member, "accountId">) => accountId;

async function createOwner() {
  const owner = await createMember(app, { credits: 0 });
  const url = `http://127.0.0.1:${app.upstream.port}/v1/chat/completions`;
  const { modelId } = await registerModel(app, owner, { visibility: "public", upstreamModel: "theirs", url, ...PRICES });
  return { ...owner, modelId };
}

async function createPayer(credits: string) {
  const payer = await createMember(app, { credits: 0 });
  const id = await buyCredits(app, payer.accountId, BigInt(credits) * 100n);
  return { ...payer, topUpId: id };
}

async function call(payer: Pick<Member, "key">, model: string): Promise<string> {
  const answer = await createClient(app.baseUrl, payer.key).post("/v1/chat/completions", {
    model,
    messages: [{ role: "user", content: "Count from one to five, and please do so in English words, with commas." }],
  });
  expect(answer.status, answer.text).toBe(200);
  return answer.headers.get("x-generation-id") ?? "";
}

const earningsOf = async (owner: Member) => {
  const { me } = ok(await execute(as(owner), MyEarningsDocument, { first: 10 }));
  if (!me?.earnings) throw new Error("no earnings");
  return me.earnings;
};
const makeOld = (owner: Member) =>
  app.database.pool.query("UPDATE earning_daily SET day = day - 9 WHERE account_id = $1", [owner.accountId]);
const mature = async (owner: Member) => {
  await makeOld(owner);
  await app.services.bookkeepingWork.run();
};

describe("a community model", () => {
  it("earns its owner a share of others' charges, live, on both faces", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("5")];
    const live = subscribeSse(as(owner), EarningsRecordedDocument, {});
    const id = await call(payer, owner.modelId);

    const { rows } = await app.database.pool.query("SELECT cost_nanocredits FROM usage_record WHERE id = $1", [id]);
    expect(BigInt(rows[0].cost_nanocredits)).toBe(CHARGE);
    const recorded = ok(await live.next()).earningsRecorded;
    expect(recorded).toMatchObject({ kind: "MODEL", source: owner.modelId, credits: SHARE, reversed: "0" });
    const earnings = await earningsOf(owner);
    expect(earnings).toMatchObject({ pending: SHARE, available: "0", converted: "0", paidOut: "0", reversed: "0" });
    expect(earnings.daily).toMatchObject([{ kind: "MODEL", source: owner.modelId, requests: 1, credits: SHARE, maturedAt: null }]);
    expect(earnings.shares?.nodes).toEqual([recorded]);
    const rest = createClient(app.baseUrl, owner.key);
    expect((await rest.get("/account/earnings")).json()).toMatchObject({ pending: 0.00003, days: [{ requests: 1, credits: 0.00003 }] });
    expect((await rest.get("/account/earnings?format=csv")).text).toContain(`model,${owner.modelId},1,0.00003,0,`);
    expect((await rest.get("/account/earnings/shares")).json()).toMatchObject({ data: [{ id: recorded.restId, credits: 0.00003 }] });
    expect(await earningsOf(payer)).toMatchObject({ pending: "0", daily: [] });
  });

  it("names no payer to its owner, nor the generation", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("5")];
    const live = subscribeSse(as(owner), EarningsRecordedDocument, {});
    const id = await call(payer, owner.modelId);
    const rest = createClient(app.baseUrl, owner.key);
    const paths = ["", "?format=csv", "/shares"].map((path) => `/account/earnings${path}`);
    const texts = [
      ...(await Promise.all([...paths, "/account/ledger", "/account/usage", "/account/audit"].map((path) => rest.get(path)))).map(
        ({ text }) => text,
      ),
      JSON.stringify(await earningsOf(owner)),
      JSON.stringify(await live.next()),
    ];
    for (const secret of [payer.accountId, payer.handle, payer.keyId, id]) expect(texts.join("\n")).not.toContain(secret);
    expect((await rest.get(`/account/requests/${id}`)).status).toBe(404);
  });

  it("earns nothing from its owner, granted credits, the tier and linked accounts", async () => {
    const owner = await createOwner();
    const linked = await createPayer("5");
    expect(
      ok(await execute(app, LinkAccountsDocument, { input: { accountIds: [owner, linked].map(idOf) } })).linkAccounts?.linked,
    ).toHaveLength(2);
    await call(linked, owner.modelId);
    await call(await createMember(app, { credits: 5 }), owner.modelId);
    await call(await createMember(app, { credits: 5, bucket: "crypto" }), owner.modelId);
    await call(await createMember(app, { credits: 5, bucket: "tier" }), owner.modelId);
    await call(owner, owner.modelId).catch(() => undefined);
    expect(await earningsOf(owner)).toMatchObject({ pending: "0", daily: [], shares: { nodes: [] } });

    ok(await execute(app, UnlinkAccountDocument, { input: { accountId: linked.accountId } }));
    await call(linked, owner.modelId);
    expect(await earningsOf(owner)).toMatchObject({ pending: SHARE });
  });

  it("earns of the counted amounts when its upstream reports more", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("5")];
    app.upstream.replyAlways(json(chatCompletion({ content: "One.", usage: wireUsage(900, 700) })));
    const id = await call(payer, owner.modelId);

    const { rows } = await app.database.pool.query("SELECT cost_nanocredits, usage_source FROM usage_record WHERE id = $1", [id]);
    const { pending } = await earningsOf(owner);
    // Counted: some twenty tokens of the prompt, and three of the answer.
    expect(BigInt(rows[0].cost_nanocredits)).toBeGreaterThan(1_000_000n);
    expect(Number(pending)).toBeGreaterThan(0);
    expect(Number(pending)).toBeLessThan(0.0001);
  });

  it("earns of the counted amounts of pictures when its upstream reports more tokens", async () => {
    const [owner, payer] = [await createMember(app, { credits: 0 }), await createPayer("5")];
    const url = `http://127.0.0.1:${app.upstream.port}/v9`;
    const fields = {
      visibility: "public",
      modality: "image",
      api: null,
      imagePricing: "tokens",
      completionImagePrice: 1_000_000_000n,
      url,
    } as const;
    const { modelId: model } = await registerModel(app, owner, fields);
    const body = imagesObject([await picture()]);
    const earn = async (usage: object | null) => {
      app.upstream.replyAlways(json({ ...body, ...(usage && { usage }) }));
      const before = Number((await earningsOf(owner)).pending);
      const answer = await createClient(app.baseUrl, payer.key).post("/v1/images/generations", {
        model,
        prompt: "A heron",
        size: "1024x1024",
      });
      expect(answer.status, answer.text).toBe(200);
      return { cost: Number(answer.headers.get("x-cost")), earned: Number((await earningsOf(owner)).pending) - before };
    };
    const counted = await earn(null);
    const inflated = await earn({ input_tokens: 3, output_tokens: 4_000, total_tokens: 4_003 });
    expect(counted.earned).toBeCloseTo(counted.cost * 0.75, 9);
    expect(inflated.cost).toBeGreaterThanOrEqual(counted.cost);
    expect(inflated.earned).toBeCloseTo(counted.earned, 9);
  });

  it("loses shares of credits that are refunded after they were spent", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("1")];
    await call(payer, owner.modelId);
    await app.services.topUps.bookRefund(payer.topUpId, 100n, null);

    expect(await earningsOf(owner)).toMatchObject({ pending: "0", reversed: SHARE, daily: [{ credits: "0", reversed: SHARE }] });
  });

  it("loses shares that an operator takes back", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("1")];
    await call(payer, owner.modelId);
    const input = { payerId: payer.accountId, earnerId: owner.accountId, reason: "one person" };
    expect(ok(await execute(app, ReverseEarningsDocument, { input })).reverseEarnings).toEqual({ reversed: SHARE });
    expect(ok(await execute(app, ReverseEarningsDocument, { input })).reverseEarnings).toEqual({ reversed: "0" });
    expect(await app.database.prisma.auditEntry.count({ where: { act: "reverse_earnings", accountId: payer.accountId } })).toBe(2);
  });
});

describe("earnings", () => {
  it("can be used after seven days, as credits or as a payout, once each", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("1")];
    await call(payer, owner.modelId);
    const convert = (credits: string, conversionId?: string) =>
      execute(as(owner), ConvertEarningsDocument, { input: { credits, conversionId } });
    expect(codes(await convert("0.00001"))).toEqual(["CONFLICT"]);
    await app.services.bookkeepingWork.run();
    expect(await earningsOf(owner)).toMatchObject({ pending: SHARE, available: "0" });
    await mature(owner);
    expect(await earningsOf(owner)).toMatchObject({ pending: "0", available: SHARE });

    const id = randomUUID();
    expect(ok(await convert("0.00001", id)).convertEarnings).toEqual({ converted: "0.00001" });
    expect(ok(await convert("0.00001", id)).convertEarnings).toEqual({ converted: "0.00001" });
    expect(codes(await convert("0.00003"))).toEqual(["CONFLICT"]);
    const pay = (credits: string, payoutId?: string) =>
      execute(app, RecordPayoutDocument, { input: { accountId: owner.accountId, credits, payoutId, note: "bank" } });
    expect(codes(await pay("1"))).toEqual(["CONFLICT"]);
    const payoutId = randomUUID();
    expect(ok(await pay("0.00002", payoutId)).recordPayout).toEqual({ paidOut: "0.00002" });
    expect(ok(await pay("0.00002", payoutId)).recordPayout).toEqual({ paidOut: "0.00002" });
    expect(codes(await convert("0.00002", payoutId))).toEqual(["CONFLICT"]);
    expect(await app.database.prisma.auditEntry.count({ where: { act: "record_payout", accountId: owner.accountId } })).toBe(1);

    expect(await earningsOf(owner)).toMatchObject({ pending: "0", available: "0", converted: "0.00001", paidOut: "0.00002" });
    const { ledger } = (await createClient(app.baseUrl, owner.key).get("/account/ledger")).json<{ ledger: unknown[] }>();
    expect(ledger).toMatchObject([{ kind: "conversion", bucket: "pack", credits: 0.00001 }]);
  });

  it("do not take the id of a generation, whose charge would be refused", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("1")];
    await call(payer, owner.modelId);
    await mature(owner);
    await app.database.pool.query("SELECT credit_grant(gen_random_uuid(), $1, 'tier', 10000000000, NULL)", [owner.accountId]);
    const convert = (conversionId: string) => execute(as(owner), ConvertEarningsDocument, { input: { credits: "0.000001", conversionId } });
    for (const model of ["acme/chat", owner.modelId]) {
      let finish: () => void = () => undefined;
      const until = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const [first, last] = [chatChunk({ role: "assistant", content: "One, " }, null), chatChunk({ content: "two." }, "stop")];
      app.upstream.replyAlways(sse([first, { do: "wait", until }, last, usageChunk(wireUsage(10, 4))]));
      const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${owner.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Count from one to two." }] }),
      });
      const id = answer.headers.get("x-generation-id") ?? "";
      expect(ok(await convert(id)).convertEarnings).toEqual({ converted: "0.000001" });
      expect(ok(await convert(id)).convertEarnings).toEqual({ converted: "0.000001" });
      finish();
      expect(await answer.text()).toContain("[DONE]");
      expect(await app.database.prisma.usageRecord.count({ where: { id } }), model).toBe(1);
      const pay = { accountId: owner.accountId, credits: "0.000001", payoutId: id };
      expect(codes(await execute(app, RecordPayoutDocument, { input: pay }))).toEqual(["CONFLICT"]);
    }
    expect(await earningsOf(owner)).toMatchObject({ converted: "0.000002", paidOut: "0" });
  });

  it("are listed for operators, with unusual patterns", async () => {
    const [owner, payer] = [await createOwner(), await createPayer("5")];
    await call(payer, owner.modelId);
    // As if it were a day of many calls.
    for (const table of ["earning", "earning_daily"]) {
      await app.database.pool.query(`UPDATE ${table} SET nanocredits = 2 * 10 ^ 9 WHERE account_id = $1`, [owner.accountId]);
    }
    const { owedEarnings, earningFlags } = ok(await execute(app, OwedEarningsDocument, {}));
    expect(owedEarnings).toContainEqual(expect.objectContaining({ accountId: owner.accountId, pending: "2", available: "0" }));
    expect(earningFlags).toContainEqual(
      expect.objectContaining({ reason: "ONE_PAYER", accountId: owner.accountId, payerId: payer.accountId, credits: "2", requests: 1 }),
    );
    const rest = createClient(app.baseUrl, app.key);
    expect((await rest.get("/account/operator/earnings?format=csv")).text).toContain(`${owner.accountId},${owner.handle},0,2`);

    // Requests of one minute, at the bound and one below it.
    const copies = (count: number) =>
      app.database.pool.query(
        `INSERT INTO earning (generation_id, kind, account_id, payer_id, source, sold_nanocredits, nanocredits, day, created_at)
         SELECT gen_random_uuid(), kind, account_id, payer_id, source, 0, 0, day, created_at FROM (SELECT * FROM earning WHERE account_id = $1 LIMIT 1) e,
         generate_series(1, $2)`,
        [owner.accountId, count],
      );
    const rates = async () =>
      ok(await execute(app, OwedEarningsDocument, {})).earningFlags?.filter(
        ({ reason, accountId }) => reason === "HIGH_RATE" && accountId === owner.accountId,
      );
    await copies(118);
    expect(await rates()).toEqual([]);
    await copies(1);
    expect(await rates()).toEqual([expect.objectContaining({ payerId: payer.accountId, source: owner.modelId, requests: 120 })]);
    await app.database.pool.query("DELETE FROM earning WHERE account_id = $1 AND nanocredits = 0", [owner.accountId]);
    for (const table of ["earning", "earning_daily"]) {
      await app.database.pool.query(`UPDATE ${table} SET nanocredits = 30000 WHERE account_id = $1`, [owner.accountId]);
    }
  });

  it("belong to their owner and the operator", async () => {
    const owner = await createOwner();
    const rest = createClient(app.baseUrl, owner.key);
    expect((await rest.get("/account/operator/earnings")).status).toBe(403);
    for (const [document, input] of [
      [RecordPayoutDocument, { accountId: owner.accountId, credits: "1" }],
      [ReverseEarningsDocument, { payerId: owner.accountId }],
      [LinkAccountsDocument, { accountIds: [owner.accountId, randomUUID()] }],
      [UnlinkAccountDocument, { accountId: owner.accountId }],
    ] as const) {
      expect(codes(await execute(as(owner), document as typeof UnlinkAccountDocument, { input } as never))).toEqual(["FORBIDDEN"]);
    }
    expect(codes(await execute(app, LinkAccountsDocument, { input: { accountIds: [owner.accountId] } }))).toEqual(["BAD_REQUEST"]);
    expect(codes(await execute(app, LinkAccountsDocument, { input: { accountIds: [owner.accountId, randomUUID()] } }))).toEqual([
      "NOT_FOUND",
    ]);
  });
});
