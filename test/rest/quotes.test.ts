/** What a generation would cost, on each route that generates (docs/spec/quotes.md). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CREDIT, closeBooks, createPayer, expectNothingHeld, type Payer } from "../e2e/money.js";
import { executeText } from "../graphql/client.js";
import { PROMPT_AGENT } from "../support/agents.js";
import { createMember } from "../support/community-models.js";
import { createOperationsApp, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import type { Kind } from "../support/operations.js";
import { recording } from "../support/recordings.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

let app: OperationsApp;
let payer: Payer;
let client: Client;

beforeAll(async () => {
  app = await createOperationsApp();
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: 1_000n * CREDIT });
  client = createClient(app.baseUrl, payer.key);
});
afterEach(() => {
  app.upstream.replyAlways(null);
});
afterAll(() => app.close());

interface Quote {
  readonly least: string;
  readonly expected: string;
  readonly most: string;
  readonly currency: string;
  readonly model: string;
  readonly routes: readonly Record<string, string>[];
  readonly notes: readonly string[];
}

const messages = [{ role: "user", content: "Hello" }];
const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
const content = { parts: [{ text: "Hello" }] };
const voice = `data:audio/wav;base64,${Buffer.from(recording(1)).toString("base64")}`;

/** Each generating route with a body: null for a GET. */
const ROUTES: readonly (readonly [string, Kind, object | null])[] = [
  ["/v1/chat/completions", "text", { messages }],
  ["/v1/chat/completions", "text", { messages, stream: true, max_tokens: 100 }],
  ["/v1/completions", "text", { prompt: "Hello" }],
  ["/v1/responses", "text", { input: "Hello" }],
  ["/v1/responses", "text", { input: "Hello", stream: true }],
  ["/v1/responses/compact", "text", { input: "Hello" }],
  ["/v1/messages", "text", { messages, max_tokens: 100 }],
  ["/v1/messages", "text", { messages, max_tokens: 100, stream: true }],
  ["/v1beta/models/acme/chat:generateContent", "text", { contents }],
  ["/v1/models/acme/chat:generateContent", "text", { contents }],
  ["/v1beta/models/acme/chat:streamGenerateContent", "text", { contents }],
  ["/v1beta/models/acme%2Fembedding:embedContent", "embedding", { content }],
  ["/v1beta/models/acme/embedding:batchEmbedContents", "embedding", { requests: [{ content }, { content }] }],
  ["/text", "text", { messages }],
  ["/text/Hello%20you", "text", null],
  ["/v1/embeddings", "embedding", { input: "Hello" }],
  ["/v1/rerank", "rerank", { query: "A fox", documents: ["A fox", "The sea"] }],
  ["/v2/rerank", "rerank", { query: "A fox", documents: ["A fox", "The sea"] }],
  ["/v1/moderations", "moderation", { input: "Hello" }],
  ["/v1/images/generations", "image", { prompt: "A fox" }],
  ["/image/A%20fox/or%20two", "image", null],
  ["/video/A%20fox", "video", null],
  ["/v1/videos", "video", { prompt: "A fox", seconds: "2" }],
  ["/v1/audio/speech", "speech", { input: "Hello" }],
  ["/audio/Hello", "speech", null],
  ["/audio/A%20tune", "music", null],
  ["/v1/audio/transcriptions", "transcription", { file: voice }],
  ["/v1/audio/translations", "transcription", { file: voice }],
];

const isNamedInPath = (path: string) => path.includes("/models/");

function requestOf([path, kind, body]: (typeof ROUTES)[number]): { readonly path: string; readonly body?: object } {
  const model = modelOf(kind);
  if (body === null) return { path: `${path}?model=${model}` };
  return { path, body: isNamedInPath(path) ? body : { model, ...body } };
}

function expectQuote(quote: Quote, kind: Kind): void {
  expect(quote).toMatchObject({ currency: "credits", model: modelOf(kind), notes: expect.any(Array) });
  expect(quote.routes).toEqual([{ upstream: "acme", least: quote.least, expected: quote.expected, most: quote.most }]);
  const [least, expected, most] = [quote.least, quote.expected, quote.most].map(Number) as [number, number, number];
  expect(least).toBeGreaterThan(0);
  expect(expected).toBeGreaterThanOrEqual(least);
  expect(most).toBeGreaterThanOrEqual(expected);
}

describe("a quote", () => {
  it.each(ROUTES)("is answered without a charge: %s, %s", async (...route) => {
    const [path, kind] = route;
    const { path: target, body } = requestOf(route);
    const before = app.upstream.requests.length;

    const asked = await client.post("/v1/quote", { path: target, ...(body && { body }) });
    expect(asked.status, asked.text).toBe(200);
    const quote = asked.json<Quote>();
    expectQuote(quote, kind);

    const input = { path: target, ...(body && { body }) };
    const query =
      "query ($input: QuoteInput!) { quote(input: $input) { least expected most currency modelId routes { upstream most } notes } }";
    const { data } = await executeText({ ...app, key: payer.key }, { query, variables: { input } });
    const { least, expected, most, notes } = quote;
    const routes = [{ upstream: "acme", most }];
    expect(data).toEqual({ quote: { least, expected, most, currency: "CREDITS", modelId: quote.model, routes, notes } });

    if (kind !== "transcription") {
      const own = `${target}${target.includes("?") ? "&" : "?"}quote=true`;
      const sent = body ? await client.post(own, body) : await client.get(own);
      expect(sent.status, sent.text).toBe(200);
      expect(sent.json()).toEqual(quote);
      expect([sent.headers.get("x-cost"), sent.headers.get("x-generation-id")]).toEqual([null, null]);
    }
    expect(app.upstream.requests.length, path).toBe(before);
    await expectNothingHeld(app, 2);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });
});

const CHAT = "/v1/chat/completions";
const chatBody = { model: modelOf("text"), messages };

describe("a quote is checked as its generation", () => {
  const quote = (path: string, body?: object) => client.post("/v1/quote", { path, ...(body && { body }) });

  it("is refused without credentials", async () => {
    const answers = [
      await client.post("/v1/quote", { path: CHAT, body: chatBody }, { key: null }),
      await client.post(`${CHAT}?quote=true`, chatBody, { key: null }),
    ];

    for (const answer of answers) expectEnvelope(answer, 401, "UNAUTHORIZED");
  });

  it("is refused for a model that the key may not use", async () => {
    const bound = await createPayer(app, { pack: CREDIT, allowedModels: ["acme/chat-b"] });
    const other = createClient(app.baseUrl, bound.key);

    expectEnvelope(await other.post("/v1/quote", { path: CHAT, body: chatBody }), 403, "FORBIDDEN");
    expectEnvelope(await other.post(`${CHAT}?quote=true`, chatBody), 403, "FORBIDDEN");
  });

  it.each([
    ["a wrong field", CHAT, { ...chatBody, temperature: 9 }, "temperature"],
    ["an unknown model", CHAT, { ...chatBody, model: "nobody/nothing" }, "model"],
    ["a billed field", CHAT, { ...chatBody, service_tier: "priority" }, "service_tier"],
    ["a wish about money", CHAT, { ...chatBody, dry_run: true }, "dry_run"],
    ["a negative limit", CHAT, { ...chatBody, max_cost: "-1" }, "max_cost"],
    ["an infinite limit", CHAT, { ...chatBody, max_cost: "Infinity" }, "max_cost"],
    ["a limit below a nanocredit", CHAT, { ...chatBody, max_cost: "0.0000000001" }, "max_cost"],
    ["no body", CHAT, undefined, "messages"],
    ["no recording", "/v1/audio/transcriptions", { model: modelOf("transcription") }, "file"],
    ["a recording that is none", "/v1/audio/transcriptions", { file: "data:audio/wav;base64,AAAA" }, "file"],
    ["a broken escape", "/text/%zz", undefined, "path"],
    ["a path that generates nothing", "/account/keys", undefined, "path"],
    ["a realtime session", "/v1/realtime?model=live/realtime", undefined, "path"],
  ])("is refused with %s", async (_, path, body, param) => {
    const answer = await quote(path, body);

    expect([answer.status, answer.json<{ error: { param: string } }>().error.param]).toEqual([400, param]);
  });

  it("is refused on a route with another word than true", async () => {
    expectEnvelope(await client.post(`${CHAT}?quote=perhaps`, chatBody), 400, "BAD_REQUEST");
    expectEnvelope(await client.get("/v1/realtime?quote=true"), 400, "BAD_REQUEST");
    expectEnvelope(await client.post(CHAT, { ...chatBody, quote: true }), 400, "BAD_REQUEST");
    expect((await client.post(`${CHAT}?quote=false`, chatBody)).headers.get("x-cost")).not.toBeNull();
  });

  it("is answered to a caller without credits", async () => {
    const poor = createClient(app.baseUrl, (await createPayer(app)).key);

    const answer = await poor.post("/v1/quote", { path: CHAT, body: chatBody });

    expect(answer.status).toBe(200);
    expectEnvelope(await poor.post(CHAT, chatBody), 402, "INSUFFICIENT_BALANCE");
  });

  it("is lowered by max_cost, and says when the generation would be refused", async () => {
    const shortened = (await quote(CHAT, { ...chatBody, max_cost: "0.001" })).json<Quote>();
    const refused = (await quote(CHAT, { ...chatBody, max_cost: "0.000001" })).json<Quote>();
    const byHeader = await client.post(`${CHAT}?quote=true`, chatBody, { headers: { "X-Max-Cost": "0.001" } });

    expect([shortened.most, shortened.notes.at(-1)]).toEqual(["0.001", "The answer is cut where it reaches max_cost."]);
    expect(byHeader.json()).toEqual(shortened);
    expect(refused.notes.at(-1)).toMatch(/max_cost is 0.000001: the request would be refused/);
  });

  it("ignores quote=true in its path", async () => {
    const asked = await quote("/text/Hello%20again?model=sandbox/text-paid&quote=true");

    expect([asked.status, asked.json<Quote>().model]).toEqual([200, "sandbox/text-paid"]);
  });

  it("is 0 for a free model, and for an answer in the content cache", async () => {
    const free = (await quote(CHAT, { ...chatBody, model: "sandbox/text" })).json<Quote>();
    const path = "/text/Hello%20cache?model=sandbox/text-paid&seed=4";
    const before = (await quote(path)).json<Quote>();
    await client.get(path);
    const after = (await quote(path)).json<Quote>();

    expect([free.least, free.expected, free.most]).toEqual(["0", "0", "0"]);
    expect(Number(before.expected)).toBeGreaterThan(0);
    expect([after.least, after.most, after.notes]).toEqual(["0", "0", [expect.stringContaining("content cache")]]);
  });

  it("includes the chat that rewrites a prompt", async () => {
    const body = { model: "sandbox/image-paid", prompt: "A fox" };
    const plain = (await quote("/v1/images/generations", body)).json<Quote>();
    const enhanced = (await quote("/v1/images/generations", { ...body, enhance: true })).json<Quote>();

    expect(Number(enhanced.most)).toBeGreaterThan(Number(plain.most));
    expect(enhanced.notes).toContainEqual(expect.stringContaining("enhance"));
  });

  it("includes the generations of an agent, as far as their limit goes", async () => {
    const member = await createMember(app);
    const owner = createClient(app.baseUrl, member.key);
    expect((await owner.post("/account/agents", PROMPT_AGENT)).status).toBe(200);
    const body = { model: `community/${member.handle}/${PROMPT_AGENT.name}`, messages };

    const bounded = await owner.post("/v1/quote", { path: CHAT, body: { ...body, max_cost: "0.25" } });
    const unbounded = await owner.post("/v1/quote", { path: CHAT, body });

    expect(bounded.json<Quote>()).toMatchObject({ least: "0", expected: "0", most: "0.25" });
    const { balance } = (await owner.get("/account/balance")).json<{ balance: number }>();
    expect(Number(unbounded.json<Quote>().most)).toBeCloseTo(balance / 10, 6);
    expect(unbounded.json<Quote>().notes).toContainEqual(expect.stringContaining("agent"));
  });

  it("stores no job and no answer under an Idempotency-Key", async () => {
    const headers = { "Idempotency-Key": "quote-then-chat" };
    const asked = await client.post(`${CHAT}?quote=true`, chatBody, { headers });
    const made = await client.post(CHAT, chatBody, { headers });

    expect([asked.status, asked.json<Quote>().currency]).toEqual([200, "credits"]);
    expect([made.status, made.headers.get("x-idempotent-replay")]).toEqual([200, null]);
  });
});
