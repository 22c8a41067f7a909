/** Spend of all accounts by account, key and model (docs/spec/usage.md#spend), on both faces, and the audit log as CSV. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { databaseOf } from "../e2e/money.js";
import { SpendDocument, type SpendQueryVariables } from "../operations/generated/graphql.js";
import { type CreatedKey, createClient, createKey, expectEnvelope } from "../rest/client.js";
import { createStranger, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, ok } from "./client.js";

const MONTH = "2026-03";
const at = (day: number) => new Date(Date.UTC(2026, 2, day, 12));

let app: TestApp;
let one: CreatedKey;
let other: CreatedKey;
let stranger: { readonly key: string; readonly keyId: string };
let owner: string;
let strange: string;

beforeAll(async () => {
  app = await createTestApp();
  [one, other] = [await createKey(app, { name: "=one" }), await createKey(app, { name: "other" })];
  stranger = await createStranger(app);
  const { prisma } = databaseOf(app);
  const accountOf = async (id: string) => (await prisma.apiKey.findUniqueOrThrow({ where: { id } })).accountId;
  [owner, strange] = [await accountOf(one.id), await accountOf(stranger.keyId)];
  await createUsage(app, one.id, 3, at(2), { costNanocredits: 5n, inputTextTokens: 7, outputTextTokens: 2 });
  await createUsage(app, one.id, 1, at(31), { costNanocredits: 0n, model: "acme/free", modelUsed: "acme/free" });
  await createUsage(app, other.id, 1, at(3), { costNanocredits: 100n, model: "acme/image", modelUsed: "acme/image" });
  await createUsage(app, other.id, 1, at(4), { costNanocredits: 4n, apiKeyId: null, apiKeyName: null, apiKeyType: null });
  await createUsage(app, stranger.keyId, 2, at(5), { costNanocredits: 50n, inputTextTokens: 1 });
  // In the months before and after, at their last and first moments.
  await createUsage(app, one.id, 1, new Date("2026-02-28T23:59:59.999Z"), { costNanocredits: 1_000n });
  await createUsage(app, one.id, 1, new Date("2026-04-01T00:00:00.000Z"), { costNanocredits: 2_000n });
  await prisma.usageEvent.create({
    data: {
      accountId: strange,
      apiKeyId: stranger.keyId,
      model: "acme/chat",
      modality: "text",
      outcome: "failed",
      timestamp: at(5),
      requests: 3,
    },
  });
});
afterAll(() => app.close());

async function spend(variables: SpendQueryVariables, key: string | null = app.key) {
  return ok(await execute({ ...app, key }, SpendDocument, variables)).spend ?? expect.fail("no spend");
}

const rest = (query: string, key = app.key) => createClient(app.baseUrl, key).get(`/account/operator/spend?${query}`);

describe.each([
  ["of rows that were just written", true],
  ["of rolled up rows", false],
])("spend of a month, %s", (_, isFresh) => {
  it.skipIf(isFresh)("adds up to the same when all rows are rolled up", async () => {
    const { prisma } = databaseOf(app);
    await expect
      .poll(async () => {
        await prisma.$queryRaw`SELECT FROM usage_roll(1000)`;
        return (await prisma.$queryRaw<{ n: number }[]>`SELECT count(*)::integer AS n FROM usage_unrolled()`)[0]?.n;
      })
      .toBe(0);
    expect((await spend({ by: "KEY", month: MONTH })).total.requests).toBe(8);
  });

  it("is summed up by account, the highest first, with a total of all", async () => {
    const report = await spend({ by: "ACCOUNT", month: MONTH });

    expect(report.groups.map(({ accountId, requests, failedRequests, cost }) => [accountId, requests, failedRequests, cost])).toEqual([
      [owner, 6, 0, "0.000000119"],
      [strange, 2, 3, "0.0000001"],
    ]);
    expect(report.groups[0]?.handle).toMatch(/^owner/);
    expect(report).toMatchObject({ month: MONTH, groupCount: 2 });
    expect(report.total).toEqual({ requests: 8, failedRequests: 3, inputTokens: 23, outputTokens: 6, cost: "0.000000219" });
  });

  it("is summed up by key, with sessions apart, and by model", async () => {
    const keys = await spend({ by: "KEY", month: MONTH });
    expect(keys.groups.map(({ apiKeyId, apiKeyName, requests, cost }) => [apiKeyId, apiKeyName, requests, cost])).toEqual(
      [
        [other.id, "other", 1, "0.0000001"],
        [stranger.keyId, "stranger", 2, "0.0000001"],
        [one.id, "=one", 4, "0.000000015"],
        [null, null, 1, "0.000000004"],
      ].sort((first, second) => order(first as [string]) - order(second as [string])),
    );
    const models = await spend({ by: "MODEL", month: MONTH });
    expect(models.groups.map(({ modelId, accountId, cost }) => [modelId, accountId, cost])).toEqual([
      ["acme/chat", null, "0.000000119"],
      ["acme/image", null, "0.0000001"],
      ["acme/free", null, "0"],
    ]);
    expect([keys.total.cost, models.total.cost]).toEqual(["0.000000219", "0.000000219"]);
  });

  it("is cut to the first groups, sorted, and restricted to an account, with the total of all groups", async () => {
    const cut = await spend({ by: "MODEL", month: MONTH, first: 1, orderBy: { field: "NAME", direction: "ASC" } });
    expect(cut).toMatchObject({ groupCount: 3, total: { requests: 8 }, groups: [{ modelId: "acme/chat" }] });
    const byRequests = await spend({ by: "ACCOUNT", month: MONTH, orderBy: { field: "REQUESTS", direction: "ASC" } });
    expect(byRequests.groups.map(({ accountId }) => accountId)).toEqual([strange, owner]);
    for (const accountId of [strange, toGlobalId("Account", strange)]) {
      expect((await spend({ by: "MODEL", month: MONTH, accountId })).total.cost).toBe("0.0000001");
    }
  });

  it("equals the sum of the rows on REST, as JSON and as CSV", async () => {
    const report = (await rest(`by=key&month=${MONTH}`)).json();
    expect(report).toMatchObject({ month: MONTH, by: "key", count: 4, total_count: 4, total: { requests: 8, cost_usd: 0.000000219 } });
    expect(Object.keys((report.spend as object[])[0] ?? {})).toEqual(
      "account_id handle email api_key_id api_key requests failed_requests input_tokens output_tokens cost_usd".split(" "),
    );

    const table = await rest(`by=key&month=${MONTH}&format=csv`);
    const lines = table.text.trimEnd().split("\r\n");
    expect(lines[0]).toBe("month,account_id,handle,email,api_key_id,api_key,requests,failed_requests,input_tokens,output_tokens,cost_usd");
    expect(lines).toHaveLength(5);
    expect(lines.find((line) => line.includes(one.id))).toMatch(/^2026-03,.*,'=one,4,0,21,6,0\.000000015$/);
    expect(table.headers.get("content-disposition")).toContain("spend-2026-03-by-key.csv");
  });
});

/** Keys with equal costs are sorted by account, then by key. */
function order([id]: [string | null]): number {
  const sorted = [
    ...[
      { id: other.id, account: owner },
      { id: stranger.keyId, account: strange },
    ].sort((first, second) => (first.account < second.account ? -1 : 1)),
    { id: one.id },
  ];
  const place = sorted.findIndex((each) => each.id === id);
  return place === -1 ? sorted.length : place;
}

describe("spend", () => {
  it("is empty in a month without usage, and of the current month by default", async () => {
    expect(await spend({ by: "KEY", month: "2025-01" })).toMatchObject({ groups: [], groupCount: 0, total: { requests: 0, cost: "0" } });
    expect((await spend({ by: "KEY" })).month).toBe(new Date().toISOString().slice(0, 7));
  });

  it.each(["2026-13", "2026-3", "26-03", "1999-12", "2026-03-01", "", "2026-00"])("refuses %j as a month, on both faces", async (month) => {
    expectEnvelope(await rest(new URLSearchParams({ by: "key", month }).toString()), 400, "BAD_REQUEST");
    expect(codes(await execute(app, SpendDocument, { by: "KEY", month }))).toEqual(["BAD_REQUEST"]);
  });

  it.each([0, 1_001])("refuses %d groups", async (first) => {
    expect(codes(await execute(app, SpendDocument, { by: "KEY", month: MONTH, first }))).toEqual(["BAD_REQUEST"]);
    expectEnvelope(await rest(`by=key&limit=${first}`), 400, "BAD_REQUEST");
  });

  it("is refused to accounts that are no operators", async () => {
    expectEnvelope(await rest("by=key", stranger.key), 403, "FORBIDDEN");
    expect(codes(await execute({ ...app, key: stranger.key }, SpendDocument, { by: "KEY" }))).toEqual(["FORBIDDEN"]);
  });
});

describe("the audit log on REST", () => {
  it("is filtered, paged by time, and exported as CSV that no spreadsheet runs", async () => {
    const client = createClient(app.baseUrl, app.key);
    const { prisma } = databaseOf(app);
    const entry = (id: number, reason: string) => ({
      id: `00000000-0000-4000-8000-00000000000${id}`,
      ...{ act: "set_tier", accountId: strange, before: { tier: "free" }, after: { tier: null }, reason, createdAt: at(id) },
    });
    await prisma.auditEntry.createMany({ data: [entry(1, "=cmd()"), entry(2, 'says "no", twice'), entry(3, "last")] });
    const list = (query: string) => client.get(`/account/operator/audit?account_ids=${strange}${query}`);

    const page = (await list("&limit=2")).json();
    expect(page).toMatchObject({ count: 2, entries: [{ reason: "last", before: { tier: "free" } }, { reason: 'says "no", twice' }] });
    const next = await list(`&before=${page.next_before}&before_id=${page.next_before_id}`);
    expect(next.json()).toMatchObject({ count: 1, next_before: null });
    expect((await list("&acts=suspend_account")).json()).toMatchObject({ count: 0 });
    expect((await list(`&from=${at(2).toISOString()}&to=${at(3).toISOString()}`)).json()).toMatchObject({ count: 1 });
    expectEnvelope(await list("&acts=reign"), 400, "BAD_REQUEST");
    expectEnvelope(await createClient(app.baseUrl, stranger.key).get("/account/operator/audit"), 403, "FORBIDDEN");

    const lines = (await list("&format=csv")).text.trimEnd().split("\r\n");
    expect(lines[0]).toBe(
      "id,created_at,act,actor_account_id,actor_api_key_id,account_id,object_id,before,after,reason,address,request_id",
    );
    expect(lines[2]).toContain(',"{""tier"":""free""}","{""tier"":null}","says ""no"", twice",,');
    expect(lines[3]).toContain(",'=cmd(),,");
  });
});
