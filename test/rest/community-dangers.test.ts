/** Registered models whose upstreams lie, fail or lead in circles (decisions "What is billed", "Errors", "Generation"). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/store/database.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, type RegisteredFields, registerModel } from "../support/community-models.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { responseObject, responseStream, textItem } from "../support/responses-bodies.js";
import { errorReply, json, type Reply, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, expectEnvelope } from "./client.js";

const TOKEN = "token-of-the-owner-0123";
/** In picocredits. */
const PRICES = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };

let app: TestApp;
let owner: Member;
let other: Member;
let client: Client;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  [owner, other] = await Promise.all([createMember(app), createMember(app)]);
  client = createClient(app.baseUrl, other.key);
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(async () => {
  const { pool } = Reflect.get(app.services.accounts, "database") as Database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
});

async function register(fields: RegisteredFields = {}): Promise<string> {
  return (await registerModel(app, owner, { visibility: "public", bearerToken: TOKEN, ...PRICES, ...fields })).modelId;
}

interface Row {
  readonly cost_usd: number;
  readonly usage_source: string;
  readonly input_text_tokens: number;
  readonly output_text_tokens: number;
}

async function rowOf(answer: Answer): Promise<Row | undefined> {
  const { usage } = (await client.get("/account/usage")).json<{ usage: (Row & { request_id: string })[] }>();
  return usage.find(({ request_id: id }) => id === answer.headers.get("x-generation-id"));
}

function chat(model: string, body: object = {}): Promise<Answer> {
  return client.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hello" }], max_tokens: 100, ...body });
}

const HELD = `mutation Held($input: CreateChatCompletionInput!) { createChatCompletion(input: $input) { receipt { held cost } } }`;

/** What a question like `chat`'s has set aside for it, in credits. */
async function heldFor(model: string, more: object = { maxTokens: 100 }): Promise<number> {
  app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(0, 0) })));
  const input = { model, messages: [{ role: "USER", content: "Hello" }], ...more };
  const answer = await client.post("/graphql", { query: HELD, variables: { input } });
  return Number(answer.json<{ data: { createChatCompletion: { receipt: { held: string } } } }>().data.createChatCompletion.receipt.held);
}

const pieces = ["Hello, ", "world."];
function streamed(usage: object | null, texts: readonly string[] = pieces): Reply {
  const chunks = texts.map((content) => chatChunk({ role: "assistant", content }));
  return sse([...chunks, chatChunk({}, "stop"), ...(usage === null ? [] : [usageChunk(usage as never)])]);
}

function responseUsageOf(usage: object | null): object | null {
  if (usage === null) return null;
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usage as Record<string, unknown>;
  return { input_tokens: input, output_tokens: output, total_tokens: total };
}

const FORMATS = [
  {
    how: "whole",
    api: "chat_completions",
    isStreamed: false,
    reply: (usage: object | null) => json({ ...chatCompletion({ usage: null }), ...(usage && { usage }) }),
  },
  { how: "streamed", api: "chat_completions", isStreamed: true, reply: (usage: object | null) => streamed(usage) },
  {
    how: "whole, as a response",
    api: "responses",
    isStreamed: false,
    reply: (usage: object | null) => json(responseObject([textItem("Hello, world.")], { usage: responseUsageOf(usage) })),
  },
  {
    how: "streamed, as a response",
    api: "responses",
    isStreamed: true,
    reply: (usage: object | null) => responseStream(responseObject([textItem("Hello, world.")], { usage: responseUsageOf(usage) })),
  },
] as const;

describe("usage that an upstream reports", () => {
  it.each(FORMATS)("is believed as far as the hold goes, $how", async ({ api, isStreamed, reply }) => {
    const model = await register({ api });
    const held = await heldFor(await register());
    const ask = async (usage: object | null) => {
      app.upstream.replyNext(reply(usage));
      const answer = await chat(model, { stream: isStreamed });
      expect(answer.status).toBe(200);
      return rowOf(answer);
    };

    const honest = await ask(wireUsage(10, 4));
    const nothing = await ask(wireUsage(0, 0));
    const lies = [
      await ask(wireUsage(1_000_000, 1_000_000)),
      await ask(wireUsage(5, 2_000_000_000)),
      await ask(wireUsage(2_000_000_000, 0)),
    ];
    const absurd = [await ask(null), await ask(wireUsage(-5, 4)), await ask(wireUsage(1e12, 1e12)), await ask(wireUsage(1.5, 2))];

    expect(honest).toMatchObject({ cost_usd: 0.00004, usage_source: "provider", input_text_tokens: 10, output_text_tokens: 4 });
    expect(nothing).toMatchObject({ cost_usd: 0, usage_source: "provider", input_text_tokens: 0, output_text_tokens: 0 });
    for (const row of lies) {
      expect(row?.usage_source).toBe("estimated");
      expect(row?.cost_usd).toBeGreaterThan(0);
      expect(row?.cost_usd).toBeLessThanOrEqual(held);
    }
    for (const row of absurd) {
      expect(row?.usage_source).toBe("estimated");
      expect(row?.cost_usd).toBeGreaterThan(0);
      expect(row?.cost_usd).toBeLessThan(held / 4);
    }
  });

  it.each([false, true])("is shown to the caller as what was charged for (streamed: %s)", async (isStreamed) => {
    const model = await register();
    app.upstream.replyNext(
      isStreamed ? streamed(wireUsage(1_000_000, 1_000_000)) : json(chatCompletion({ usage: wireUsage(1_000_000, 1_000_000) })),
    );

    const answer = await chat(model, { stream: isStreamed });

    const row = await rowOf(answer);
    expect(answer.text).toContain(`"prompt_tokens":${row?.input_text_tokens},"completion_tokens":${row?.output_text_tokens}`);
    expect(answer.text).not.toContain("1000000");
  });

  it("does not raise what the next answers are expected to cost", async () => {
    const model = await register();
    for (const isStreamed of [false, true]) {
      const usage = wireUsage(10, 2_000_000_000);
      app.upstream.replyNext(isStreamed ? streamed(usage) : json(chatCompletion({ usage })));
      await chat(model, { stream: isStreamed });
    }
    // Four tokens and a few of the prompt.
    expect(await heldFor(model, {})).toBeLessThan(0.0001);
  });
});

describe("an answer longer than was reckoned with", () => {
  /** Some two tokens each. */
  const long = Array.from({ length: 1_500 }, (_, index) => ` heron ${index}`);
  const text = long.join("");

  it.each([false, true])("is paid for what was delivered when the caller set no limit (streamed: %s)", async (isStreamed) => {
    const model = await register();
    const usage = wireUsage(10, 4_000);
    app.upstream.replyNext(isStreamed ? streamed(usage, long) : json(chatCompletion({ content: text, usage })));

    const row = await rowOf(await chat(model, { stream: isStreamed, max_tokens: undefined }));

    expect(row).toMatchObject({ cost_usd: 0.02002, usage_source: "provider", output_text_tokens: 4_000 });
  });

  it.each([
    ["whole, and counted", false, null],
    ["whole", false, wireUsage(10, 4_000)],
    ["streamed, and counted", true, null],
    ["streamed", true, wireUsage(10, 4_000)],
  ])("is not paid beyond the caller's limit (%s)", async (_, isStreamed, usage) => {
    const model = await register();
    const held = await heldFor(model);
    app.upstream.replyNext(isStreamed ? streamed(usage, long) : json(chatCompletion({ content: text, usage })));

    const answer = await chat(model, { stream: isStreamed });

    const row = await rowOf(answer);
    expect(answer.text).toContain("heron 1499");
    expect(row?.cost_usd).toBeGreaterThan(held / 2);
    expect(row?.cost_usd).toBeLessThanOrEqual(held);
  });
});

describe("an upstream that fails", () => {
  it.each([401, 402, 403, 404, 409, 429, 500, 503])("with %i is answered 502, after its fallbacks were tried", async (status) => {
    const fallback = await register();
    const model = await register({ fallbacks: [fallback] });
    const seen = app.upstream.requests.length;
    app.upstream.replyNext(errorReply(status, `no, Bearer ${TOKEN}`), errorReply(status, `no, ${TOKEN}`));

    const answer = await chat(model);

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect(answer.text).not.toContain(TOKEN);
    expect(app.upstream.requests.length - seen).toBe(2);
    expect(await rowOf(answer)).toBeUndefined();
  });

  it.each([
    [400, 400, "BAD_REQUEST"],
    [413, 413, "PAYLOAD_TOO_LARGE"],
    [415, 415, "UNSUPPORTED_MEDIA_TYPE"],
    [422, 400, "BAD_REQUEST"],
  ])("with %i is answered %i at once, without its credential", async (status, expected, code) => {
    const url = `${app.upstream.baseUrl}/chat?tenant=tenant%20of-the-owner`;
    const model = await register({ url, fallbacks: [await register()] });
    const seen = app.upstream.requests.length;
    app.upstream.replyNext(errorReply(status, `too much for ${TOKEN} at ${url} of tenant of-the-owner`));

    const answer = await chat(model);

    expectEnvelope(answer, expected, code);
    expect(answer.text).toContain("too much for [redacted] at");
    expect(answer.text).not.toContain("of-the-owner");
    expect(app.upstream.requests.length - seen).toBe(1);
  });

  it("is not asked beyond its limit for each account, and its fallbacks are not either", async () => {
    const model = await register({ perUserRpm: 0.5, fallbacks: [await register()] });
    await chat(model);
    const seen = app.upstream.requests.length;

    const answer = await chat(model);

    expectEnvelope(answer, 429, "RATE_LIMITED");
    expect(app.upstream.requests.length).toBe(seen);
  });

  it.each([
    "https://10.0.0.1/v1",
    "http://localhost:1/v1",
    "https://user@example.com/",
    "https://example.com:22/",
    "ftp://example.com/",
    "nonsense",
  ])("because its address is %s, which no registration would have let pass, is answered 502", async (url) => {
    const answers = [await chat(await register({ url }))];
    const picture = await register({ url, modality: "image", api: null });
    answers.push(await client.post("/v1/images/generations", { model: picture, prompt: "A heron" }));
    for (const answer of answers) expectEnvelope(answer, 502, "UPSTREAM_ERROR");
  });
});

describe("a model that leads back to the gateway", () => {
  const ENDPOINTS = { chat_completions: "/v1/chat/completions", responses: "/v1/responses" } as const;

  it.each(["chat_completions", "responses"] as const)("over %s ends in a clear error and costs nothing", async (api) => {
    const name = `loop-${api}`;
    const model = await register({
      name,
      api,
      url: app.baseUrl + ENDPOINTS[api],
      bearerToken: owner.key,
      upstreamModel: `community/${owner.handle}/${name}`,
    });
    const balances = async () =>
      Promise.all([other, owner].map(({ key }) => client.get("/account/balance", { key }).then(({ text }) => text)));
    const before = await balances();

    for (const isStreamed of [false, true]) {
      const answer = await chat(model, { stream: isStreamed });
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.text).toContain("more than 3 gateways");
      expect(await rowOf(answer)).toBeUndefined();
    }

    expect(await balances()).toEqual(before);
  });

  it.each(["4", "999999999", "-1", "many", "1e3"])("is not called for a request that has come through %s gateways", async (hops) => {
    const model = await register();
    const seen = app.upstream.requests.length;

    const rest = await client.request("POST", "/v1/chat/completions", {
      body: { model, messages: [{ role: "user", content: "Hello" }] },
      headers: { "x-sluice-hops": hops },
    });
    const query = `mutation { createChatCompletion(input: { model: "${model}", messages: [{ role: USER, content: "Hi" }] }) { receipt { cost } } }`;
    const graph = await client.post("/graphql", { query }, { headers: { "x-sluice-hops": hops } });

    expectEnvelope(rest, 400, "BAD_REQUEST");
    expect(graph.text).toContain("more than 3 gateways");
    expect(app.upstream.requests.length).toBe(seen);
  });
});
