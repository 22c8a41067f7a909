import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { createPayer } from "../e2e/money.js";
import {
  CreateApiKeyDocument,
  OneUsageRecordDocument,
  UsageCourseDocument,
  UsageListDocument,
  type UsageListQueryVariables,
  UsageOfCurrentKeyDocument,
  UsageOfKeyDocument,
  type UsageOfKeyQueryVariables,
  UsageOfKeysDocument,
  UsageOfKeyTwiceDocument,
  UsageSummaryDocument,
  type UsageSummaryQueryVariables,
  UsageTimesDocument,
} from "../operations/generated/graphql.js";
import { type CreatedKey, createClient, createKey } from "../rest/client.js";
import { createStranger, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { errorReply, json } from "../support/upstream-replies.js";
import { type Answer, codes, execute, executeText, ok } from "./client.js";

const AT = new Date(Date.now() - 3 * 3_600_000);

const NOBODY = "00000000-0000-4000-8000-000000000000";

let app: TestApp;
let key: CreatedKey;
let other: CreatedKey;
/** Newest first: of `key` two chats and a picture, of `other` one that was left. */
let ids: string[];

beforeAll(async () => {
  app = await createTestApp();
  [key, other] = [await createKey(app, { name: "Lists", accountPermissions: ["usage"] }), await createKey(app, { name: "others" })];
  const add = async (of: CreatedKey, index: number, more: Parameters<typeof createUsage>[4]) =>
    (await createUsage(app, of.id, 1, new Date(AT.getTime() - index * 60_000), more))[0] as string;
  ids = [
    await add(key, 0, { costNanocredits: 3n, responseTimeMs: 100, inputTextTokens: 7, outputTextTokens: 5 }),
    await add(key, 1, { costNanocredits: 1n, responseTimeMs: 300, timeToFirstTokenMs: 40 }),
    await add(key, 2, { costNanocredits: 3n, responseTimeMs: 200, modality: "image", model: "acme/pictures" }),
    await add(other, 3, { costNanocredits: 2n, responseTimeMs: 400, status: "cancelled" }),
  ];
});

afterAll(() => app.close());

const ofBoth = () => ({ apiKeyIds: [key.id, toGlobalId("ApiKey", other.id)] });

async function list(variables: UsageListQueryVariables) {
  return ok(await execute(app, UsageListDocument, variables)).me.usage ?? expect.fail("no usage");
}

async function found(variables: UsageListQueryVariables): Promise<number[]> {
  return (await list(variables)).nodes.map(({ restId }) => ids.indexOf(restId));
}

async function groups(variables: UsageSummaryQueryVariables, as = app.key) {
  return ok(await execute({ ...app, key: as }, UsageSummaryDocument, variables)).me.usageSummary ?? expect.fail("no summary");
}

describe("the list of usage", () => {
  it("holds the rows that match the filter", async () => {
    for (const [filter, expected] of [
      [ofBoth(), [0, 1, 2, 3]],
      [{ apiKeyIds: [key.id] }, [0, 1, 2]],
      [{ ...ofBoth(), modelIds: [toGlobalId("Model", "acme/pictures")] }, [2]],
      [{ ...ofBoth(), modalities: ["TEXT"] }, [0, 1, 3]],
      [{ ...ofBoth(), statuses: ["CANCELLED"] }, [3]],
      [{ ...ofBoth(), from: new Date(AT.getTime() - 60_000).toISOString() }, [0, 1]],
      [{ ...ofBoth(), to: new Date(AT.getTime() - 60_000).toISOString() }, [2, 3]],
      [{ ...ofBoth(), minCost: "0.000000003" }, [0, 2]],
      [{ search: "list" }, [0, 1, 2]],
      [{ search: ids[3] as string }, [3]],
    ] as const) {
      expect(await found({ filter: filter as UsageListQueryVariables["filter"] }), JSON.stringify(filter)).toEqual(expected);
    }
  });

  it.each([
    ["TIMESTAMP", "DESC", [0, 1, 2, 3]],
    ["TIMESTAMP", "ASC", [3, 2, 1, 0]],
    ["COST", "DESC", null],
    ["COST", "ASC", null],
    ["RESPONSE_TIME", "DESC", [3, 1, 2, 0]],
    ["RESPONSE_TIME", "ASC", [0, 2, 1, 3]],
    ["TOKENS", "DESC", null],
    ["TOKENS", "ASC", null],
  ] as const)("is sorted by %s %s, page by page, from either end", async (field, direction, order) => {
    // Of those with equal values, the id decides.
    const byId = (...indices: number[]) => indices.sort((one, two) => ((ids[one] as string) < (ids[two] as string) ? -1 : 1));
    const ascending = field === "TOKENS" ? [...byId(1, 2, 3), 0] : [1, 3, ...byId(0, 2)];
    const expected = order ?? (direction === "ASC" ? ascending : ascending.reverse());
    const terms = { filter: ofBoth(), orderBy: { field, direction } };
    const whole = await list(terms);

    expect(whole.nodes.map(({ restId }) => ids.indexOf(restId))).toEqual(expected);
    expect(whole.totalCount).toBe(4);
    const first = await list({ ...terms, first: 3 });
    expect(first.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
    expect(await found({ ...terms, first: 3, after: first.pageInfo.endCursor })).toEqual(expected.slice(3));
    const last = await list({ ...terms, last: 3 });
    expect(last.nodes.map(({ restId }) => ids.indexOf(restId))).toEqual(expected.slice(1));
    expect(await found({ ...terms, last: 3, before: last.pageInfo.startCursor })).toEqual(expected.slice(0, 1));
  });

  it("refuses impossible input, and says where", async () => {
    const cursor = (await list({ first: 1 })).pageInfo.endCursor;
    const many = (count: number) => Array.from({ length: count }, (_, index) => `m/${index}`);
    expect(await found({ filter: { modelIds: many(100) } })).toEqual([]);

    for (const [variables, param] of [
      [{ filter: { from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" } }, "from"],
      [{ filter: { apiKeyIds: [toGlobalId("Model", "acme/chat")] } }, "apiKeyIds.0"],
      [{ filter: { modelIds: many(101) } }, "modelIds"],
      [{ filter: { statuses: [] } }, "statuses"],
      [{ filter: { search: "s".repeat(201) } }, "search"],
      [{ after: cursor, orderBy: { field: "COST", direction: "DESC" } }, "after"],
      [{ after: cursor, orderBy: { field: "TIMESTAMP", direction: "ASC" } }, "after"],
    ] as const) {
      const { errors } = await execute(app, UsageListDocument, variables as UsageListQueryVariables);
      expect(
        errors?.map(({ extensions: { code, param } }) => [code, param]),
        JSON.stringify(variables),
      ).toEqual([["BAD_REQUEST", param]]);
    }
  });

  it("has each of them by either of its ids, and no other", async () => {
    const [restId = ""] = ids;
    const one = async (id: string, as = app.key) => execute({ ...app, key: as }, OneUsageRecordDocument, { id });
    const { id } = ok(await one(restId)).me.usageRecord ?? expect.fail("no record");

    expect(ok(await one(id)).me.usageRecord).toMatchObject({ id, restId, cost: "0.000000003" });
    expect(codes(await one(NOBODY))).toEqual(["NOT_FOUND"]);
    expect(codes(await one(toGlobalId("ApiKey", key.id)))).toEqual(["BAD_REQUEST"]);
    expect(codes(await one(id, (await createStranger(app)).key))).toEqual(["NOT_FOUND"]);
  });

  it("finds nothing by another account's ids", async () => {
    const stranger = await createStranger(app);
    const theirs = { ...app, key: stranger.key };
    const orderBy = { field: "COST", direction: "DESC" } as const;
    const cursor = (await list({ filter: ofBoth(), orderBy, first: 1 })).pageInfo.endCursor;

    for (const end of ["after", "before"] as const) {
      const { errors } = await execute(theirs, UsageListDocument, { orderBy, [end]: cursor });
      expect(errors?.map(({ extensions: { code, param } }) => [code, param])).toEqual([["BAD_REQUEST", end]]);
    }
    expect(ok(await execute(theirs, UsageListDocument, { filter: { apiKeyIds: [key.id] } })).me.usage).toMatchObject({
      nodes: [],
      totalCount: 0,
    });
    expect(ok(await execute(theirs, UsageSummaryDocument, { filter: { apiKeyIds: [key.id] } })).me.usageSummary).toMatchObject([
      { requests: 0 },
    ]);
  });
});

describe("the summary of usage", () => {
  it("is one group, unless it is grouped", async () => {
    expect(await groups({ filter: { apiKeyIds: [key.id] } })).toEqual([
      {
        ...{ from: null, modelId: null, model: null, apiKeyId: null, apiKey: null, status: null, modality: null },
        ...{ requests: 3, cost: "0.000000007", inputTokens: 7, outputTokens: 5, failedRequests: 0, errorRate: 0 },
        responseTimeMs: { p50: 198, p95: 290, p99: 290 },
        timeToFirstTokenMs: { p50: 39 },
      },
    ]);
    expect(await groups({ filter: { modelIds: ["acme/none"] } })).toMatchObject([{ requests: 0, responseTimeMs: null, errorRate: null }]);
  });

  it("counts times wherever a document selects them", async () => {
    const answer = await execute(app, UsageTimesDocument, { id: key.id });

    expect(answer.data).toEqual({ me: { usageSummary: [{ responseTimeMs: { p95: 290 }, first: { p50: 39 } }] } });
  });

  it("is grouped by the requested fields, the most expensive group first", async () => {
    expect(await groups({ filter: ofBoth(), groupBy: ["KEY", "STATUS"] })).toMatchObject([
      { apiKeyId: key.id, apiKey: { name: "Lists" }, status: "OK", requests: 3, errorRate: null },
      { apiKeyId: other.id, apiKey: { name: "others" }, status: "CANCELLED", requests: 1, cost: "0.000000002" },
    ]);
    expect(await groups({ filter: ofBoth(), groupBy: ["MODEL"], first: 1 })).toMatchObject([
      { modelId: "acme/chat", model: { title: expect.any(String) }, requests: 3 },
    ]);
    const hours = await groups({ filter: ofBoth(), groupBy: ["HOUR"] });
    expect(hours.map(({ from }) => from)).toEqual([...hours.map(({ from }) => from)].sort());
    expect(hours.reduce((sum, { requests }) => sum + requests, 0)).toBe(4);
  });

  it("counts generations without an upstream", async () => {
    const failing = await createKey(app, { name: "failing" });
    app.upstream.replyNext(errorReply(500));
    const client = createClient(app.baseUrl, failing.key);
    const body = { messages: [{ role: "user", content: "Hello" }] };
    expect((await client.post("/v1/chat/completions", body)).status).toBe(502);
    app.upstream.replyNext(json(chatCompletion()));
    expect((await client.post("/v1/chat/completions", body)).status).toBe(200);

    await expect
      .poll(async () => (await groups({ filter: { apiKeyIds: [failing.id] } }))[0], { interval: 50 })
      .toMatchObject({ requests: 1, failedRequests: 1, errorRate: 0.5 });
  });

  it("shows the hold and the timing of each", async () => {
    const payer = await createPayer(app, { permissions: ["usage"], pack: 1_000_000_000n });
    const courseOf = async (id: string) => {
      const { node } = ok(await execute({ ...app, key: payer.key }, UsageCourseDocument, { id: toGlobalId("UsageRecord", id) }));
      return node?.__typename === "UsageRecord" ? node : null;
    };
    app.upstream.replyNext(json(chatCompletion()));
    const answer = await createClient(app.baseUrl, payer.key).post("/v1/chat/completions", {
      messages: [{ role: "user", content: "Hello" }],
    });
    const [, whole = "0"] = /upstream;dur=([\d.]+)/.exec(answer.headers.get("server-timing") ?? "") ?? [];

    const course = await courseOf(answer.headers.get("x-generation-id") ?? "");

    expect(Number(course?.held)).toBeGreaterThanOrEqual(Number(course?.cost));
    expect(course?.upstreamMs).toBeCloseTo(Number(whole), 1);
    expect(course?.gatewayMs).toBeGreaterThan(0);
    const [older = ""] = await createUsage(app, payer.apiKeyId, 1, AT);
    expect(await courseOf(older)).toMatchObject({ held: null, upstreamMs: null, gatewayMs: null });
  });

  it("refuses unanswerable input, and says where", async () => {
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000 + 60_000).toISOString();
    await groups({ filter: { from: daysAgo(366) }, groupBy: ["DAY"] });
    await groups({ filter: { from: daysAgo(31) }, groupBy: ["HOUR"], first: 100 });

    for (const [variables, param] of [
      [{ filter: { from: daysAgo(367) } }, "from"],
      [{ filter: { from: daysAgo(32) }, groupBy: ["HOUR"] }, "from"],
      [{ groupBy: ["HOUR", "DAY"] }, "groupBy"],
      [{ groupBy: ["KEY", "KEY"] }, "groupBy"],
      [{ first: 0 }, "first"],
      [{ filter: { from: daysAgo(1), to: daysAgo(2) } }, "from"],
      [{ filter: { modelIds: [toGlobalId("ApiKey", key.id)] } }, "modelIds.0"],
      [{ filter: { apiKeyIds: Array.from({ length: 101 }, () => key.id) } }, "apiKeyIds"],
      [{ filter: { minCost: "-1" } }, "minCost"],
    ] as const) {
      const { errors } = await execute(app, UsageSummaryDocument, variables as UsageSummaryQueryVariables);
      expect(
        errors?.map(({ extensions: { code, param } }) => [code, param]),
        JSON.stringify(variables),
      ).toEqual([["BAD_REQUEST", param]]);
    }
  });
});

describe("the bound of usage rows read one by one", () => {
  /** A key of a new account with so much usage, though the rows are not there: lists and sums go by the roll-ups. */
  async function usedBy(count: number) {
    const payer = await createPayer(app, { permissions: ["usage", "keys"] });
    const { apiKeyId, accountId } = payer;
    await createUsage(app, apiKeyId, 1, AT, { costNanocredits: 7n });
    const event = { accountId, apiKeyId, timestamp: AT, modality: "text", model: "acme/chat", outcome: "ok" } as const;
    await app.database.prisma.usageEvent.create({ data: { ...event, requests: count - 1 } });
    return { ...app, key: payer.key };
  }

  const paramsOf = ({ errors = [] }: Answer<unknown>) => errors.map(({ extensions: { code, param } }) => [code, param]);

  it.each(["COST", "RESPONSE_TIME", "TOKENS"] as const)("is 100,000 rows that are sorted by %s", async (field) => {
    const [most, tooMany] = [await usedBy(100_000), await usedBy(100_001)];
    const orderBy = { field, direction: "DESC" } as const;

    expect(ok(await execute(most, UsageListDocument, { orderBy })).me.usage?.nodes).toMatchObject([{ cost: "0.000000007" }]);
    expect(paramsOf(await execute(tooMany, UsageListDocument, { orderBy }))).toEqual([["BAD_REQUEST", "orderBy"]]);
    expect(ok(await execute(tooMany, UsageListDocument, { filter: { modelIds: ["acme/other"] }, orderBy })).me.usage?.nodes).toEqual([]);
  });

  it("is 50,000 rows that are summed up by their cost", async () => {
    const [most, tooMany] = [await usedBy(50_000), await usedBy(50_001)];
    const filter = { minCost: "0.000000001" };

    expect(ok(await execute(most, UsageSummaryDocument, { filter })).me.usageSummary).toMatchObject([{ requests: 1, cost: "0.000000007" }]);
    expect(paramsOf(await execute(tooMany, UsageSummaryDocument, { filter }))).toEqual([["BAD_REQUEST", "minCost"]]);
    expect(ok(await execute(tooMany, UsageSummaryDocument)).me.usageSummary).toMatchObject([{ requests: 50_001 }]);
  });

  it("is each key's own, where several are read together", async () => {
    const tooMany = await usedBy(100_001);
    ok(await execute(tooMany, CreateApiKeyDocument, { input: { name: "seldom used" } }));
    const variables = { orderBy: { field: "COST", direction: "ASC" }, filter: { minCost: "0.000000001" }, first: 1 } as const;

    const answer = await execute(tooMany, UsageOfKeysDocument, variables);

    expect(answer.data?.me?.apiKeys?.nodes).toMatchObject([
      { usage: { totalCount: 0, nodes: [] }, usageSummary: [{ requests: 0 }] },
      { usage: null, usageSummary: null },
    ]);
    expect(paramsOf(answer).sort()).toEqual([
      ["BAD_REQUEST", "minCost"],
      ["BAD_REQUEST", "orderBy"],
    ]);
  });

  it("is a thousand groups", async () => {
    const ask = (first: number) => executeText(app, { query: `{ me { usageSummary(first: ${first}, groupBy: [MODEL]) { requests } } }` });

    expect(codes(await ask(1_000))).toEqual([]);
    expect(paramsOf(await ask(1_001))).toEqual([["BAD_REQUEST", "first"]]);
  });
});

describe("the usage of a key", () => {
  it("is the key's own, for each key of a list", async () => {
    const keys = ok(await execute(app, UsageOfKeysDocument, { first: 2 })).me.apiKeys?.nodes ?? [];
    const of = (id: string) => keys.find(({ restId }) => restId === id);

    expect(of(key.id)).toMatchObject({
      usage: { totalCount: 3, nodes: [{ restId: ids[0], model: { title: expect.any(String) } }, { restId: ids[1] }] },
      usageSummary: [{ requests: 3, cost: "0.000000007" }],
    });
    expect(of(other.id)).toMatchObject({ usage: { totalCount: 1, nodes: [{ restId: ids[3] }] }, usageSummary: [{ requests: 1 }] });
    const cancelled = ok(await execute(app, UsageOfKeysDocument, { filter: { statuses: ["CANCELLED"] } })).me.apiKeys?.nodes ?? [];
    expect(cancelled.flatMap(({ usage }) => usage?.nodes.map(({ restId }) => restId))).toEqual([ids[3]]);
  });

  it.each<[string, Omit<UsageOfKeyQueryVariables, "id">]>([
    ["the newest first", { first: 2 }],
    ["from the end", { last: 2, groupBy: ["MODEL"] }],
    ["the oldest first", { first: 2, orderBy: { field: "TIMESTAMP", direction: "ASC" }, groupBy: ["MODEL"], groups: 1 }],
    ["the dearest first", { first: 2, orderBy: { field: "COST", direction: "DESC" }, groupBy: ["KEY"] }],
    ["the longest last", { last: 2, orderBy: { field: "TOKENS", direction: "ASC" } }],
    ["the quickest last", { last: 1, orderBy: { field: "RESPONSE_TIME", direction: "DESC" }, groupBy: ["HOUR"] }],
    ["charged usage", { filter: { minCost: "0.000000002" }, groupBy: ["STATUS"] }],
    ["a search", { filter: { search: "pictures" } }],
    ["of other keys", { filter: { apiKeyIds: [NOBODY] } }],
    ["what there is not", { filter: { minCost: "1" } }],
  ])("is the same in a list of keys and alone: %s", async (_what, variables) => {
    const keys = ok(await execute(app, UsageOfKeysDocument, variables)).me.apiKeys?.nodes ?? [];

    expect(keys.length).toBeGreaterThan(2);
    for (const one of keys) {
      const id = toGlobalId("ApiKey", one.restId);
      expect(ok(await execute(app, UsageOfKeyDocument, { id, ...variables })).node).toEqual(one);
    }
  });

  it("contains the fields that each place of a document selects", async () => {
    const [row] = ok(await execute(app, UsageOfKeyTwiceDocument, { id: key.id })).me.usage?.nodes ?? [];

    expect(row).toEqual({
      short: { usage: { nodes: [{ restId: ids[0] }] } },
      long: {
        usage: {
          nodes: [
            {
              cost: "0.000000003",
              name: { name: "Lists" },
              terms: { start: key.key.slice(0, 10), spent: "0", permissions: ["USAGE"] },
            },
          ],
        },
      },
    });
  });

  it("is shown to the key itself, without the other keys beside it", async () => {
    const payer = await createPayer(app, { permissions: ["keys"] });
    const asked = await execute({ ...app, key: payer.key }, CreateApiKeyDocument, { input: { name: "made" } });
    const made = ok(asked).createApiKey.apiKey.restId;

    const answer = await execute({ ...app, key: payer.key }, UsageOfKeysDocument);

    expect(answer.data?.me?.apiKeys?.nodes.map((one) => [one.restId, one.usage?.totalCount, one.usageSummary?.[0]?.requests])).toEqual([
      [made, undefined, undefined],
      [payer.apiKeyId, 0, 0],
    ]);
    expect(codes(answer)).toEqual(["FORBIDDEN", "FORBIDDEN"]);
  });

  it("leads to the key itself, and to no other without a permission", async () => {
    const answer = await execute({ ...app, key: key.key }, UsageSummaryDocument, { filter: ofBoth(), groupBy: ["KEY"] });

    expect(answer.data?.me?.usageSummary?.map(({ apiKeyId, apiKey }) => [apiKeyId, apiKey?.name])).toEqual([
      [key.id, "Lists"],
      [other.id, undefined],
    ]);
    expect(codes(answer)).toEqual(["FORBIDDEN"]);
  });

  it("is the only field that a key without a permission may read", async () => {
    const asked = await execute({ ...app, key: other.key }, UsageOfCurrentKeyDocument);
    const refused = await execute({ ...app, key: other.key }, UsageSummaryDocument);

    expect(ok(asked).me.currentApiKey).toEqual({ usage: { nodes: [{ restId: ids[3] }] }, usageSummary: [{ requests: 1 }] });
    expect(codes(refused)).toEqual(["FORBIDDEN"]);
  });
});
