/** What a generation would cost, on each route that generates (docs/spec/quotes.md). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CREDIT, closeBooks, createPayer, expectNothingHeld, type Payer } from "../e2e/money.js";
import { executeText } from "../graphql/client.js";
import { createOperationsApp, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import type { Kind } from "../support/operations.js";
import { recording } from "../support/recordings.js";
import { type Client, createClient } from "./client.js";

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
