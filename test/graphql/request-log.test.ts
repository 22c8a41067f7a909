/** The request log: each refused or failed request is found by its request id, beside the generations that were charged. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { GENERATION_MUTATIONS } from "../../src/graphql/plugins/use-idempotency.js";
import { GENERATION_SUBSCRIPTIONS } from "../../src/graphql/plugins/use-request-note.js";
import {
  AccountRequestLogDocument,
  AllRequestsDocument,
  AnyLoggedRequestDocument,
  ChatBesideAnotherDocument,
  MyLoggedRequestDocument,
  MyRequestLogDocument,
  type MyRequestLogQueryVariables,
  RequestLogChangedDocument,
  RequestLoggedDocument,
  SeveralFieldsDocument,
  StartImageDocument,
  StreamChatDocument,
} from "../operations/generated/graphql.js";
import { type Answer, type Client, createClient, createKey } from "../rest/client.js";
import { refuseRealtime } from "../rest/realtime-client.js";
import { createFailures, createStranger, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createTestDataDir } from "../support/database.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { chatChunks } from "../support/openai-bodies.js";
import { errorReply, sse } from "../support/upstream-replies.js";
import { codes, execute, executeText, ok, subscribeWebSocket, TRANSPORTS } from "./client.js";

const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "A secret prompt" }] };
const CREATE_CHAT = "mutation Ask($input: ChatCompletionInput!) { createChatCompletion(input: $input) { receipt { generationId } } }";

let app: TestApp;
let client: Client;
beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(() => app.close());

const target = (key: string) => ({ ...app, key });

async function list(variables: MyRequestLogQueryVariables = {}, key = app.key) {
  const { requestLog } = ok(await execute(target(key), MyRequestLogDocument, variables)).me;
  if (!requestLog) throw new Error("There is no log.");
  return { ...requestLog, nodes: requestLog.edges.map(({ node }) => node) };
}

/** The entries with this request id: failures are written a moment after their answer. */
async function logged(requestId: string, key = app.key) {
  await expect.poll(async () => (await list({ filter: { requestId } }, key)).nodes.length, { timeout: 20_000 }).toBeGreaterThan(0);
  return (await list({ filter: { requestId } }, key)).nodes;
}

const idOf = ({ headers }: Answer): string => headers.get("x-request-id") ?? "";

describe("A refused or failed request", () => {
  it("is found by its request id, with its status, code, key, model and route", async () => {
    const poor = await createKey(app, { name: "poor", creditBudget: 0.000001 });
    const bound = await createKey(app, { name: "bound", allowedModels: ["acme/chat-b"] });
    const upstreamFails = async () => {
      app.upstream.replyNext(errorReply(500));
      return client.post("/v1/chat/completions", CHAT);
    };
    const upstreamRefuses = async () => {
      app.upstream.replyNext(errorReply(400, "A secret prompt is not allowed."));
      return client.post("/v1/chat/completions", CHAT);
    };
    const chat = { route: "/v1/chat/completions", modelId: "acme/chat", cost: "0", usageRecord: null };
    const cases = [
      [await client.post("/v1/chat/completions", { messages: "A secret prompt" }), { status: 400, code: "BAD_REQUEST", modelId: null }],
      [
        await client.post("/v1/chat/completions", { ...CHAT, model: "acme/none" }),
        { status: 400, code: "BAD_REQUEST", modelId: "acme/none" },
      ],
      [
        await client.post("/v1/chat/completions", CHAT, { key: poor.key }),
        { ...chat, status: 402, code: "KEY_BUDGET_EXHAUSTED", apiKeyId: poor.id, apiKeyName: "poor" },
      ],
      [
        await client.post("/v1/chat/completions", CHAT, { key: bound.key }),
        { status: 403, code: "FORBIDDEN", modelId: "acme/chat", apiKeyId: bound.id },
      ],
      [await upstreamRefuses(), { ...chat, status: 400, code: "BAD_REQUEST" }],
      [await upstreamFails(), { ...chat, status: 502, code: "UPSTREAM_ERROR", generationId: expect.any(String) }],
      [await client.get("/text/A%20secret%20prompt?model=acme%2Fnone"), { status: 400, route: "/text/{prompt}", modelId: "acme/none" }],
    ] as const;
    for (const [answer, expected] of cases) {
      const entries = await logged(idOf(answer));
      expect(entries).toHaveLength(1);
      expect(entries[0]).toMatchObject({ requestId: idOf(answer), leftOut: 0, ...expected });
      expect(answer.status).toBe(expected.status);
    }
    const rows = await app.database.prisma.failedRequest.findMany();
    expect(JSON.stringify(rows)).not.toContain("secret");
  });

  it.each<[string, () => Promise<Answer>, string]>([
    [
      "a parameter that is a part of the prompt",
      () => client.get("/text/What%20is%20wrong?My%20secret%20is%20hunter2"),
      "A field or parameter is not known here.",
    ],
    ["a voice", () => client.post("/v1/audio/speech", { input: "Hi", voice: 'a "secret' }), "acme/speech has no voice …"],
    ["a safety feature", () => client.post("/v1/chat/completions", { ...CHAT, safe: "secret" }), "There is no safety feature …"],
    ["a model", () => client.post("/v1/chat/completions", { ...CHAT, model: "hidden" }), "There is no model …"],
  ])("keeps no words of the request in its message: %s", async (_what, ask, message) => {
    const [entry] = await logged(idOf(await ask()));

    expect(entry?.message ?? "").toEqual(message);
  });

  it("names the field and the problem of a bad request", async () => {
    const [entry] = await logged(idOf(await client.post("/v1/chat/completions", { ...CHAT, temperature: 9 })));

    expect(entry?.message).toBe("temperature: must be from 0 to 2");
  });

  it("is logged once with what a broken stream has cost", async () => {
    app.upstream.replyNext(sse(chatChunks(["a", "b"], { finishReason: null, usage: null }), { end: "cut" }));
    const broken = await client.post("/v1/chat/completions", { ...CHAT, stream: true });

    const [entry, ...others] = await logged(idOf(broken));
    const generationId = broken.headers.get("x-generation-id");
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      status: 502,
      code: "UPSTREAM_ERROR",
      generationId,
      usageRecord: { restId: generationId, status: "CANCELLED" },
    });
    expect(entry?.cost).toBe(entry?.usageRecord?.cost);
    const ofGeneration = (await list({ filter: { requestId: generationId } })).nodes;
    expect(ofGeneration.map(({ id }) => id)).toEqual([entry?.id]);
    expect(ok(await execute(app, MyLoggedRequestDocument, { id: generationId ?? "" })).me.loggedRequest?.id).toBe(entry?.id);
  });

  it("is logged when a publishable key is limited", async () => {
    const { key } = await createKey(app, { type: "publishable" });
    let answer = await client.post("/v1/chat/completions", CHAT, { key });
    while (answer.status === 200) answer = await client.post("/v1/chat/completions", CHAT, { key });
    expect(answer.status).toBe(429);
    expect(await logged(idOf(answer))).toMatchObject([{ status: 429, code: "RATE_LIMITED" }]);
  });

  it("is logged over GraphQL, and no query or other mutation is", async () => {
    const input = { model: "acme/none", messages: [{ role: "USER", content: "A secret prompt" }] };
    const refused = await executeText(app, { query: CREATE_CHAT, variables: { input } });
    const invalid = await executeText(app, { query: CREATE_CHAT, variables: { input: { ...input, messages: "A secret prompt" } } });
    const misspelt = await executeText(app, { query: CREATE_CHAT.replace("generationId", "nothing"), variables: { input } });
    const other = await executeText(app, {
      query: 'mutation { revokeApiKey(input: { id: "00000000-0000-4000-8000-000000000000" }) { apiKey { id } } }',
    });
    const requestId = (answer: typeof refused) => answer.errors?.[0]?.extensions.requestId ?? "";

    expect(await logged(requestId(refused))).toMatchObject([
      { status: 400, code: "BAD_REQUEST", route: "/graphql", operation: "Ask", modelId: "acme/none" },
    ]);
    expect(await logged(requestId(invalid))).toMatchObject([{ status: 400, code: "BAD_REQUEST" }]);
    expect(await logged(requestId(misspelt))).toMatchObject([{ status: 400, code: "BAD_REQUEST" }]);
    expect((await list({ filter: { requestId: requestId(other) } })).nodes).toEqual([]);
    expect(JSON.stringify(await app.database.prisma.failedRequest.findMany())).not.toContain("secret");
  });

  it.each(TRANSPORTS)("is logged over %s when a stream breaks", async (_name, subscribe) => {
    const { key, keyId } = await createStranger(app);
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const grant = `mutation { grantCredits(input: { accountId: "${accountId}", bucket: PACK, credits: "1" }) { account { id } } }`;
    expect((await executeText(app, { query: grant })).errors).toBeUndefined();
    app.upstream.replyNext(sse(chatChunks(["a"], { finishReason: null, usage: null }), { end: "cut" }));
    const input = { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hi" }] };
    const stream = subscribe(target(key), StreamChatDocument, { input });
    for (let answer = await stream.next(); answer?.data; answer = await stream.next());

    await expect
      .poll(async () => (await list({ filter: { outcomes: ["FAILED"] } }, key)).nodes)
      .toMatchObject([{ status: 502, code: "UPSTREAM_ERROR", route: "/graphql", usageRecord: { status: "CANCELLED" } }]);
    expect((await list({}, key)).nodes).toHaveLength(1);
  });

  it("is logged by generation when a request has several", async () => {
    app.upstream.replyNext(errorReply(500));
    const chat = (model: string) => ({ model, messages: [{ role: "USER" as const, content: "Hi" }] });
    const models = { broken: chat("acme/chat-b"), good: chat("acme/chat"), refused: chat("acme/none") };
    const answer = await execute(app, SeveralFieldsDocument, { ...models, keyId: randomUUID() });
    const requestId = answer.errors?.[0]?.extensions.requestId ?? "";

    expect(answer.errors).toHaveLength(3);
    await expect.poll(async () => (await list({ filter: { requestId } })).nodes.length, { timeout: 20_000 }).toBe(2);
    const entries = (await list({ filter: { requestId } })).nodes;
    const failure = { requestId, operation: "SeveralFields", cost: "0", usageRecord: null };
    expect(entries.toSorted((a, b) => a.status - b.status)).toMatchObject([
      { ...failure, status: 400, code: "BAD_REQUEST", modelId: "acme/none", generationId: null },
      { ...failure, status: 502, code: "UPSTREAM_ERROR", modelId: "acme/chat-b", generationId: expect.any(String) },
    ]);
    for (const good of [answer.data?.first, answer.data?.last]) {
      const generationId = good?.receipt.generationId ?? "";
      expect((await list({ filter: { requestId: generationId } })).nodes).toMatchObject([{ status: 200, code: null, generationId }]);
    }
  });

  it("is not logged for a generation when another field of its request fails", async () => {
    const input = { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hi" }] };
    const answer = await execute(app, ChatBesideAnotherDocument, { input, keyId: randomUUID() });
    const generationId = answer.data?.createChatCompletion?.receipt.generationId ?? "";
    const last = await client.post("/v1/chat/completions", {});

    await logged(idOf(last));
    expect((await list({ filter: { requestId: generationId } })).nodes).toMatchObject([{ status: 200, code: null }]);
    expect((await list({ filter: { requestId: answer.errors?.[0]?.extensions.requestId ?? "" } })).nodes).toEqual([]);
  });

  it.each([
    [
      "a video, which its upstream accepts and fails",
      "/v1/videos",
      { model: "acme/video", prompt: "A secret prompt", seconds: "4" },
      { route: "/v1/videos", modelId: "acme/video", status: 502, code: "UPSTREAM_ERROR" },
    ],
  ])("is logged when it is a job that was accepted: %s", async (_what, path, body, expected) => {
    const videos = createFakeVideos({ clip: await readClip(1), error: { code: "server_error", message: "A secret prompt" } });
    app.upstream.replyAlways(videos.reply);
    const { key, id: apiKeyId } = await createKey(app, { name: "films" });
    const accepted = await client.post(path, body, { key });
    const generationId = accepted.json<{ id: string }>().id;

    expect(accepted.status).toBe(200);
    expect(await logged(idOf(accepted))).toMatchObject([
      { ...expected, generationId, apiKeyId, apiKeyName: "films", cost: "0", usageRecord: null },
    ]);
    expect((await list({ filter: { requestId: generationId } })).nodes).toHaveLength(1);
    expect(JSON.stringify(await app.database.prisma.failedRequest.findMany())).not.toContain("secret");
  });

  it("is logged when it is a job that was started over GraphQL", async () => {
    app.upstream.replyAlways(errorReply(500));
    const accepted = await execute(app, StartImageDocument, { input: { model: "acme/image", prompt: "A secret prompt" } });
    const generationId = ok(accepted).startImage.job.restId;

    await expect
      .poll(async () => (await list({ filter: { requestId: generationId } })).nodes, { timeout: 20_000 })
      .toMatchObject([
        { status: 502, code: "UPSTREAM_ERROR", route: "/graphql", operation: "StartImage", modelId: "acme/image", generationId },
      ]);
  });

  it("is not logged when it is a job that its caller cancels", async () => {
    const videos = createFakeVideos({ clip: await readClip(1), gate: new Promise(() => undefined) });
    app.upstream.replyAlways(videos.reply);
    const accepted = await client.post("/v1/videos", { model: "acme/video", prompt: "Hi", seconds: "4" });
    const generationId = accepted.json<{ id: string }>().id;
    expect((await client.request("DELETE", `/v1/videos/${generationId}`, {})).status).toBe(200);
    const last = await client.post("/v1/chat/completions", {});

    await logged(idOf(last));
    expect((await list({ filter: { requestId: generationId } })).nodes.filter(({ code }) => code !== null)).toEqual([]);
  });

  it("is logged for the tools of /mcp that generate", async () => {
    const requestId = randomUUID();
    const call = (name: string, args: object) =>
      client.post(
        "/mcp",
        { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
        { headers: { accept: "application/json, text/event-stream", "x-request-id": requestId } },
      );
    await call("generate_text", { prompt: "Hi", model: "acme/none" });
    expect(await logged(requestId)).toMatchObject([{ code: "BAD_REQUEST", route: "/mcp", modelId: "acme/none" }]);
  });

  it("is logged for each route and operation that generates", async () => {
    const { paths } = (await client.get("/openapi.json")).json<{
      paths: Record<string, Record<string, { parameters?: { name: string }[] }>>;
    }>();
    const has = (operation: { parameters?: { name: string }[] }, name: string) =>
      operation.parameters?.some((parameter) => parameter.name === name) ?? false;
    const sent = new Map<string, string>();
    const send = async (method: string, path: string, body: unknown) => {
      const requestId = randomUUID();
      const address = path.replaceAll(/\{\w+\}/g, "prompt");
      const answer = await client.request(method, address, { headers: { "x-request-id": requestId }, ...(body !== null && { body }) });
      expect([path, Math.floor(answer.status / 100)]).toEqual([path, 4]);
      sent.set(requestId, path);
    };
    for (const [path, { get, post }] of Object.entries(paths)) {
      // An approval of a run takes the header too, and generates nothing.
      if (post && has(post, "Idempotency-Key") && path !== "/v1/runs/{id}/approve") await send("POST", path, { max_cost: "none" });
      if (get && has(get, "max_cost") && path !== "/v1/realtime") await send("GET", `${path}?max_cost=none`, null);
    }
    expect(sent.size).toBeGreaterThan(12);
    for (const [kind, names] of [
      ["mutation", GENERATION_MUTATIONS],
      ["subscription", GENERATION_SUBSCRIPTIONS],
    ] as const) {
      for (const name of names) {
        const answer = await executeText(app, { query: `${kind} { ${name} { __typename } }` });
        sent.set(answer.errors?.[0]?.extensions.requestId ?? "", name);
      }
    }
    const realtime = randomUUID();
    await refuseRealtime(app, "?model=acme/none", { headers: { "x-request-id": realtime } });
    sent.set(realtime, "/v1/realtime");

    const loggedIds = async () => {
      const rows = await app.database.prisma.failedRequest.findMany({ where: { requestId: { in: [...sent.keys()] } } });
      return new Set(rows.map(({ requestId }) => requestId));
    };
    const missing = async () => {
      const ids = await loggedIds();
      return [...sent].filter(([id]) => !ids.has(id)).map(([, name]) => name);
    };
    await expect.poll(missing, { timeout: 20_000 }).toEqual([]);
  });

  it("is written before the gateway stops", async () => {
    const { dataDir, remove } = await createTestDataDir();
    const first = await createTestApp({ dataDir });
    const answer = await createClient(first.baseUrl, first.key).post("/v1/chat/completions", {});
    await first.close();
    const second = await createTestApp({ dataDir });
    const { edges } = ok(await execute(second, MyRequestLogDocument, { filter: { requestId: idOf(answer) } })).me.requestLog ?? {
      edges: [],
    };
    expect(edges).toHaveLength(1);
    await second.close();
    await remove();
  });

  it("is not logged without a valid key, for other routes, or when it succeeds", async () => {
    const count = () => app.database.prisma.failedRequest.count();
    await client.post("/v1/chat/completions", CHAT, { key: null });
    await client.post("/v1/chat/completions", CHAT, { key: "sk_wrong" });
    await client.get("/account/usage?limit=0");
    const good = await client.post("/v1/chat/completions", CHAT);
    const last = await client.post("/v1/chat/completions", {});
    await logged(idOf(last));
    const ids = (await app.database.prisma.failedRequest.findMany({ orderBy: { id: "desc" }, take: 2 })).map(({ requestId }) => requestId);
    expect(ids[0]).toBe(idOf(last));
    expect(await count()).toBeGreaterThan(0);
    expect(await app.database.prisma.failedRequest.count({ where: { requestId: idOf(good) } })).toBe(0);
    expect(await app.database.prisma.failedRequest.count({ where: { code: "UNAUTHORIZED" } })).toBe(0);
    expect(await app.database.prisma.failedRequest.count({ where: { route: "/account/usage" } })).toBe(0);
  });
});

describe("The list", () => {
  it("has charged generations and failures in one order, page by page in both directions", async () => {
    const { key, keyId } = await createStranger(app);
    const now = new Date(Math.floor(Date.now() / 1000) * 1000);
    const usage = await createUsage(app, keyId, 5, now);
    // At the same times as the first three rows: the id decides.
    const failures = await createFailures(app, keyId, 3, now);
    const all = (await list({ first: 100 }, key)).nodes;
    const sorted = [...all].sort((a, b) => String(b.timestamp).localeCompare(String(a.timestamp)) || b.restId.localeCompare(a.restId));
    expect(all.map(({ restId }) => restId)).toEqual(sorted.map(({ restId }) => restId));
    expect(new Set(all.map(({ restId }) => restId))).toEqual(new Set([...usage, ...failures]));

    const forwards: string[] = [];
    for (let after: string | null | undefined = null; ; ) {
      const page = await list({ first: 3, after: after ?? null }, key);
      expect(page.totalCount).toBe(8);
      forwards.push(...page.nodes.map(({ restId }) => restId));
      after = page.pageInfo.endCursor;
      if (!page.pageInfo.hasNextPage) break;
    }
    expect(forwards).toEqual(all.map(({ restId }) => restId));
    const backwards: string[] = [];
    for (let before: string | null | undefined = null; ; ) {
      const page = await list({ last: 3, before: before ?? null }, key);
      backwards.unshift(...page.nodes.map(({ restId }) => restId));
      before = page.pageInfo.startCursor;
      if (!page.pageInfo.hasPreviousPage) break;
    }
    expect(backwards).toEqual(forwards);
  });

  it("is filtered by outcome, status, code, key, model, time and id", async () => {
    const { key, keyId } = await createStranger(app);
    const now = new Date();
    const [paid = ""] = await createUsage(app, keyId, 1, now, { model: "acme/chat-b" });
    const at = new Date(now.getTime() - 60_000);
    const [refused = ""] = await createFailures(app, keyId, 1, at, { status: 402, code: "INSUFFICIENT_BALANCE" });
    const [broken = ""] = await createFailures(app, keyId, 1, at, { status: 502, code: "UPSTREAM_ERROR", requestId: "req_12345678" });
    const found = async (filter: MyRequestLogQueryVariables["filter"]) => {
      const page = await list({ filter }, key);
      expect(page.totalCount).toBe(page.nodes.length);
      return page.nodes.map(({ restId }) => restId).sort();
    };
    const both = [refused, broken].sort();
    expect(await found({ outcomes: ["OK"] })).toEqual([paid]);
    expect(await found({ outcomes: ["FAILED"] })).toEqual(both);
    expect(await found({ outcomes: ["CLIENT_ERROR"] })).toEqual([refused]);
    expect(await found({ outcomes: ["SERVER_ERROR"] })).toEqual([broken]);
    expect(await found({ outcomes: ["OK"], statuses: [402] })).toEqual([paid, refused].sort());
    expect(await found({ statuses: [200] })).toEqual([paid]);
    expect(await found({ statuses: [429] })).toEqual([]);
    expect(await found({ codes: ["UPSTREAM_ERROR"] })).toEqual([broken]);
    expect(await found({ apiKeyIds: [keyId] })).toEqual([paid, ...both].sort());
    expect(await found({ apiKeyIds: [randomUUID()] })).toEqual([]);
    expect(await found({ modelIds: ["acme/chat-b"] })).toEqual([paid]);
    expect(await found({ to: new Date(now.getTime() - 30_000).toISOString() })).toEqual(both);
    expect(await found({ from: new Date(now.getTime() - 30_000).toISOString() })).toEqual([paid]);
    expect(await found({ requestId: "req_12345678" })).toEqual([broken]);
    expect(await found({ requestId: "req_1234" })).toEqual([broken]);
    expect(await found({ requestId: "req_123" })).toEqual([]);
    expect(await found({ requestId: "req%1234" })).toEqual([]);
    expect(await found({ requestId: paid })).toEqual([paid]);
    expect(await found({ requestId: paid.slice(0, 13) })).toEqual([paid]);
  });

  it("refuses filters beyond their limits with the field named", async () => {
    const values = (count: number) => Array.from({ length: count }, () => "acme/chat");
    const refusals = [
      [{ requestId: "a".repeat(129) }, "filter.requestId"],
      [{ requestId: " " }, "filter.requestId"],
      [{ statuses: [199] }, "filter.statuses.0"],
      [{ statuses: [600] }, "filter.statuses.0"],
      [{ codes: [] }, "filter.codes"],
      [{ modelIds: values(101) }, "filter.modelIds"],
      [{ from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" }, "filter.from"],
    ] as const;
    for (const [filter, param] of refusals) {
      const answer = await execute(app, MyRequestLogDocument, { filter: filter as MyRequestLogQueryVariables["filter"] });
      expect(answer.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST" });
      expect(answer.errors?.[0]?.extensions.param).toBe(param.replace("filter.", ""));
    }
    for (const filter of [{ requestId: "a".repeat(128) }, { statuses: [201, 599] }, { modelIds: values(100).map((id) => `${id}-none`) }]) {
      expect((await list({ filter })).nodes).toEqual([]);
    }
  });

  it("needs the permission USAGE, and shows an account nothing of another", async () => {
    const { key } = await createKey(app, { name: "plain" });
    expect(codes(await execute(target(key), MyRequestLogDocument))).toEqual(["FORBIDDEN"]);
    const stranger = await createStranger(app);
    const answer = await client.post("/v1/chat/completions", {});
    const [entry] = await logged(idOf(answer));
    expect((await list({ filter: { requestId: idOf(answer) } }, stranger.key)).nodes).toEqual([]);
    expect(codes(await execute(target(stranger.key), MyLoggedRequestDocument, { id: entry?.id ?? "" }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(target(stranger.key), MyLoggedRequestDocument, { id: randomUUID() }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(target(stranger.key), AllRequestsDocument))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute(target(stranger.key), AnyLoggedRequestDocument, { id: entry?.id ?? "" }))).toEqual(["FORBIDDEN"]);
  });

  it("shows operators the requests of any account, and of all", async () => {
    const { key, keyId } = await createStranger(app);
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const answer = await client.post("/v1/chat/completions", {}, { key });
    const [entry] = await logged(idOf(answer), key);
    const ofAccount = ok(await execute(app, AccountRequestLogDocument, { id: accountId })).account.requestLog;
    expect(ofAccount?.edges.map(({ node }) => node.requestId)).toEqual([idOf(answer)]);
    const all = ok(await execute(app, AllRequestsDocument, { filter: { requestId: idOf(answer) } })).requestLog;
    expect(all.edges.map(({ node }) => node)).toEqual([{ accountId, requestId: idOf(answer), code: "BAD_REQUEST" }]);
    expect(ok(await execute(app, AllRequestsDocument, { accountId })).requestLog.edges).toHaveLength(1);
    expect(ok(await execute(app, AnyLoggedRequestDocument, { id: entry?.id ?? "" })).loggedRequest.id).toBe(entry?.id);
  });
});

describe("GET /account/requests", () => {
  it("lists the same with the same filters, page by page", async () => {
    const { key, keyId } = await createStranger(app);
    const stranger = createClient(app.baseUrl, key);
    const now = new Date();
    const [paid = ""] = await createUsage(app, keyId, 1, now);
    const failures = await createFailures(app, keyId, 4, now, { status: 402, code: "INSUFFICIENT_BALANCE" });
    const ids = async (query: string) => {
      const { requests, ...more } = (await stranger.get(`/account/requests${query}`)).json<{
        requests: { id: string }[];
        next_before: string;
      }>();
      return { ids: requests.map(({ id }) => id), ...more };
    };
    const all = await ids("");
    expect(new Set(all.ids)).toEqual(new Set([paid, ...failures]));
    const paged: string[] = [];
    for (let query = "?limit=2"; ; ) {
      const page = (await stranger.get(`/account/requests${query}`)).json<{
        requests: { id: string }[];
        next_before: string | null;
        next_before_id: string;
      }>();
      paged.push(...page.requests.map(({ id }) => id));
      if (page.next_before === null) break;
      query = `?limit=2&before=${page.next_before}&before_id=${page.next_before_id}`;
    }
    expect(paged).toEqual(all.ids);
    expect((await ids("?outcomes=ok")).ids).toEqual([paid]);
    expect((await ids("?statuses=402,502")).ids).toHaveLength(4);
    expect((await ids("?codes=INSUFFICIENT_BALANCE&outcomes=client_error")).ids).toHaveLength(4);
    expect((await ids(`?request_id=${paid}`)).ids).toEqual([paid]);
    expect((await stranger.get(`/account/requests/${failures[0]}`)).json()).toMatchObject({
      id: failures[0],
      status: 402,
      is_charged: false,
    });
    expect((await client.get(`/account/requests/${failures[0]}`)).status).toBe(404);
    for (const [query, param] of [
      ["outcomes=good", "outcomes.0"],
      ["statuses=99", "statuses.0"],
      ["status=400", "status"],
      ["from=0000-01-01T00:00:00Z", "from"],
      ["before=0000-01-01T00:00:00Z", "before"],
      ["codes=NONE", "codes.0"],
      [`request_id=${"a".repeat(129)}`, "request_id"],
      ["limit=101", "limit"],
      ["from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"],
      ["before_id=00000000-0000-4000-8000-000000000000", "before_id"],
    ]) {
      const answer = await stranger.get(`/account/requests?${query}`);
      expect([query, answer.status, answer.json<{ error: { param: string } }>().error.param]).toEqual([query, 400, param]);
    }
  });
});

describe("requestLogged", () => {
  it("yields charged generations and failures of the account, and operators may follow any", async () => {
    const { key, keyId } = await createStranger(app);
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const own = subscribeWebSocket(target(key), RequestLoggedDocument);
    const followed = subscribeWebSocket(app, RequestLoggedDocument, { accountId });
    const nexts = [own.next(), followed.next()];
    let isOver = false;
    const entries = Promise.all(nexts).finally(() => {
      isOver = true;
    });
    while (!isOver) await client.post("/v1/chat/completions", {}, { key });
    for (const entry of await entries) expect(ok(entry).requestLogged).toMatchObject({ code: "BAD_REQUEST", accountId });
    own.leave();
    followed.leave();
    const foreign = subscribeWebSocket(target(key), RequestLoggedDocument, { accountId: randomUUID() });
    expect(codes((await foreign.next()) ?? {})).toEqual(["FORBIDDEN"]);
  });
});

describe("requestLogChanged", () => {
  it("announces requests of any account to operators, and to no other caller", async () => {
    const { key } = await createStranger(app);
    const live = subscribeWebSocket(app, RequestLogChangedDocument);
    let isOver = false;
    const announced = live.next().finally(() => {
      isOver = true;
    });
    while (!isOver) await client.post("/v1/chat/completions", {}, { key });
    expect(ok(await announced).requestLogChanged).toMatch(/^20/);
    live.leave();
    const foreign = subscribeWebSocket(target(key), RequestLogChangedDocument);
    expect(codes((await foreign.next()) ?? {})).toEqual(["FORBIDDEN"]);
  });
});
