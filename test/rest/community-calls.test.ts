/**
 * Registered models over every route that fits them: both formats of an upstream behind both chat routes, media, who sees which
 * credential, and upstreams that lie, fail or lead in circles (docs/spec/credits.md,
 * docs/spec/errors.md#upstream-errors, docs/spec/generation.md).
 */

import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { execute, ok, subscribeSse } from "../graphql/client.js";
import { type ChatCompletionInput, ChatDocument, StreamChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, type RegisteredFields, registerModel } from "../support/community-models.js";
import { type FakeUpstream, type RecordedRequest, startFakeUpstream } from "../support/fake-upstream.js";
import { readClip } from "../support/fake-videos.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { callItem, responseObject, responseStream, textItem } from "../support/responses-bodies.js";
import { errorReply, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, expectEnvelope } from "./client.js";

const TOKEN = "token-of-the-owner-0123";
/** In picocredits: 10 prompt and 4 completion tokens are 0.00004 credits. */
const PRICES = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };

let app: TestApp;
let owner: Member;
let other: Member;
let openai: OpenAI;
let second: FakeUpstream;
let client: Client;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  second = await startFakeUpstream();
  [owner, other] = await Promise.all([createMember(app), createMember(app)]);
  client = createClient(app.baseUrl, other.key);
  openai = new OpenAI({
    apiKey: other.key,
    baseURL: `${app.baseUrl}/v1`,
    maxRetries: 0,
    defaultHeaders: { cookie: "session=of-the-caller" },
  });
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
  await second.close();
});

function origin({ port }: FakeUpstream = app.upstream): string {
  return `http://127.0.0.1:${port}`;
}

async function register(fields: RegisteredFields): Promise<string> {
  return (await registerModel(app, owner, { visibility: "public", bearerToken: TOKEN, upstreamModel: "their-model", ...fields })).modelId;
}

function registerPriced(fields: RegisteredFields = {}): Promise<string> {
  return register({ ...PRICES, ...fields });
}

function lastRequest(upstream = app.upstream): RecordedRequest {
  const request = upstream.requests.at(-1);
  if (!request) throw new Error("The upstream was not called.");
  return request;
}

/** Nothing of the caller's: neither key nor cookie, and the credential is this model's. */
function expectOnlyOwnCredential(request: RecordedRequest, token = TOKEN): void {
  expect(request.headers.authorization).toBe(`Bearer ${token}`);
  expect(request.headers).not.toHaveProperty("cookie");
  expect(JSON.stringify(request.rawHeaders) + request.body.toString("latin1")).not.toContain(other.key);
}

async function costOf(generationId: string | null): Promise<number | undefined> {
  const { usage } = (await client.get("/account/usage")).json<{
    usage: { request_id: string; cost_usd: number }[];
  }>();
  return usage.find((row) => row.request_id === generationId)?.cost_usd;
}

const call = { id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' };
const parameters = { type: "object", properties: { city: { type: "string" } } };
const said = [textItem("Hello, world.")];

/** The same two answers in each format of an upstream, whole and streamed. */
const ANSWERS: Readonly<Record<"chat_completions" | "responses", (what: "text" | "call", isStreamed: boolean) => Reply>> = {
  chat_completions: (what, isStreamed) => {
    if (!isStreamed) return json(what === "text" ? chatCompletion() : chatCompletion({ content: null, toolCalls: [call] }));
    if (what === "text")
      return sse([
        chatChunk({ role: "assistant", content: "Hello, " }),
        chatChunk({ content: "world." }, "stop"),
        usageChunk(wireUsage(10, 4)),
      ]);
    const opening = { index: 0, id: call.id, type: "function", function: { name: call.name, arguments: "" } };
    const pieces = ['{"city":', '"Oslo"}'].map((given) => chatChunk({ tool_calls: [{ index: 0, function: { arguments: given } }] }));
    return sse([
      chatChunk({ role: "assistant", tool_calls: [opening] }),
      ...pieces,
      chatChunk({}, "tool_calls"),
      usageChunk(wireUsage(10, 4)),
    ]);
  },
  responses: (what, isStreamed) => {
    const response = responseObject(what === "text" ? said : [callItem(call.id, call.name, call.arguments)]);
    return isStreamed ? responseStream(response) : json(response);
  },
};

interface Outcome {
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly tokens: readonly [input: number | undefined, output: number | undefined];
  readonly generationId: string | null;
}

async function overChat(model: string, isStreamed: boolean): Promise<Outcome> {
  const body = {
    model,
    messages: [
      { role: "system" as const, content: "Be brief." },
      { role: "user" as const, content: "Hello" },
    ],
    max_tokens: 50,
    tools: [{ type: "function" as const, function: { name: "weather", parameters } }],
  };
  if (isStreamed) {
    const stream = openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    const { choices, usage } = await stream.finalChatCompletion();
    const calls = (choices[0]?.message.tool_calls ?? []).map((made) => ({
      id: made.id,
      name: made.function.name,
      arguments: made.function.arguments,
    }));
    return { text: choices[0]?.message.content ?? "", calls, tokens: [usage?.prompt_tokens, usage?.completion_tokens], generationId: null };
  }
  const { data, response } = await openai.chat.completions.create(body).withResponse();
  const calls = (data.choices[0]?.message.tool_calls ?? []).flatMap((made) =>
    made.type === "function" ? [{ id: made.id, ...made.function }] : [],
  );
  return {
    text: data.choices[0]?.message.content ?? "",
    calls,
    tokens: [data.usage?.prompt_tokens, data.usage?.completion_tokens],
    generationId: response.headers.get("x-generation-id"),
  };
}

async function overResponses(model: string, isStreamed: boolean): Promise<Outcome> {
  const body = {
    model,
    instructions: "Be brief.",
    input: "Hello",
    max_output_tokens: 50,
    tools: [{ type: "function" as const, name: "weather", parameters, strict: false }],
  };
  const response = isStreamed ? await openai.responses.stream(body).finalResponse() : await openai.responses.create(body);
  const calls = response.output.flatMap((item) =>
    item.type === "function_call" ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : [],
  );
  return { text: response.output_text, calls, tokens: [response.usage?.input_tokens, response.usage?.output_tokens], generationId: null };
}

const ROUTES = { "/v1/chat/completions": overChat, "/v1/responses": overResponses } as const;
const CASES = (["chat_completions", "responses"] as const).flatMap((api) =>
  (["/v1/chat/completions", "/v1/responses"] as const).flatMap((route) =>
    [false, true].map((isStreamed) => ({ api, route, isStreamed, how: isStreamed ? "streamed" : "whole" })),
  ),
);

describe("a text model", () => {
  it.each(CASES)("of an upstream of $api is served over $route, $how, tools included", async ({ api, route, isStreamed }) => {
    const model = await register({ api, url: `${origin()}/their/${api}/?version=2`, ...PRICES });
    app.upstream.replyNext(ANSWERS[api]("text", isStreamed), ANSWERS[api]("call", isStreamed));

    const text = await ROUTES[route](model, isStreamed);
    const request = lastRequest();
    const called = await ROUTES[route](model, isStreamed);

    expect(text).toMatchObject({ text: "Hello, world.", calls: [], tokens: [10, 4] });
    expect(called).toMatchObject({ text: "", calls: [call], tokens: [10, 4] });
    if (text.generationId !== null) expect(await costOf(text.generationId)).toBe(0.00004);
    expect(request).toMatchObject({ method: "POST", path: `/their/${api}/?version=2` });
    expect(request.headers["x-sluice-hops"]).toBe("1");
    expectOnlyOwnCredential(request);
    expect(request.json).toMatchObject({ model: "their-model", stream: isStreamed, tools: [{ type: "function" }] });
    expect(request.json).toHaveProperty(api === "responses" ? "input" : "messages");
    expect(request.json).not.toHaveProperty(api === "responses" ? "messages" : "input");
  });

  it("of an upstream that speaks the Responses format has its tools of plain text and its summaries as they are", async () => {
    const model = await register({ api: "responses", url: `${origin()}/their/responses` });
    const patched = { type: "custom_tool_call", id: "ctc_1", call_id: "call_2", name: "apply_patch", input: "*** Begin" };
    const thought = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] };
    const reply = responseObject([thought, patched]);
    app.upstream.replyNext(json(reply), responseStream(reply));
    const format = { type: "grammar" as const, syntax: "lark" as const, definition: "start: LINE+" };
    const body = {
      model,
      input: [
        { type: "custom_tool_call" as const, call_id: "call_1", name: "apply_patch", input: "*** Old" },
        { type: "custom_tool_call_output" as const, call_id: "call_1", output: "ok" },
        { role: "user" as const, content: "Again" },
      ],
      tools: [{ type: "custom" as const, name: "apply_patch", format }, { type: "web_search" as const }],
      reasoning: { effort: "low" as const, summary: "auto" as const },
    };
    const { data, response } = await openai.responses.create(body).withResponse();
    const request = lastRequest().json;
    const streamed = await openai.responses.stream(body).finalResponse();

    expect(request).toMatchObject({
      input: [{ type: "custom_tool_call", input: "*** Old" }, { type: "custom_tool_call_output" }, {}],
      tools: [{ type: "custom", name: "apply_patch", format }],
      reasoning: { effort: "low", summary: "auto" },
    });
    expect(response.headers.get("x-warnings")).toContain("web_search");
    for (const { output } of [data, streamed]) {
      expect(output).toMatchObject([
        { type: "reasoning", summary: [{ text: "Hm." }] },
        { type: "custom_tool_call", call_id: "call_2", name: "apply_patch", input: "*** Begin" },
      ]);
    }
  });

  it("answers GET /text and a GraphQL client too", async () => {
    const model = await register({ api: "responses", url: `${origin()}/their/responses` });
    app.upstream.replyAlways(json(responseObject(said)));

    const text = await client.get(`/text/hello?model=${encodeURIComponent(model)}`);
    const hopping = { ...app, key: other.key, headers: { "x-sluice-hops": "2" } };
    const graph = ok(await execute(hopping, ChatDocument, { input: { model, messages: GREETING } })).createChatCompletion;

    expect(text.text).toBe("Hello, world.");
    expect(graph.completion?.choices[0]?.message?.content).toBe("Hello, world.");
    expect(lastRequest().headers["x-sluice-hops"]).toBe("3");
  });

  it("is streamed by a GraphQL subscription, and billed", async () => {
    const model = await register({ api: "responses", url: `${origin()}/their/responses`, ...PRICES });
    app.upstream.replyNext(ANSWERS.responses("text", true));

    const events = (
      await subscribeSse({ ...app, key: other.key }, StreamChatDocument, { input: { model, messages: GREETING } }).rest()
    ).map((answer) => ok(answer).chatCompletion);

    expect(events).toContainEqual(expect.objectContaining({ content: "world." }));
    expect(events.at(-1)).toMatchObject({ receipt: { cost: "0.00004" } });
    expectOnlyOwnCredential(lastRequest());
  });
});

describe("fallbacks", () => {
  it("are sent their own credential, each at its own upstream", async () => {
    const fallback = await register({ url: `${origin(second)}/second`, bearerToken: "second-token-0123", ...PRICES });
    const model = await register({ fallbacks: [fallback], ...PRICES });
    app.upstream.replyNext(errorReply(503));
    second.replyNext(json(chatCompletion({ content: "From the second" })));

    const { data, response } = await openai.chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] }).withResponse();

    expect(data.choices[0]?.message.content).toBe("From the second");
    expect(response.headers.get("x-fallback")).toBe(fallback);
    expectOnlyOwnCredential(lastRequest());
    expectOnlyOwnCredential(lastRequest(second), "second-token-0123");
  });

  it("in a circle are tried once each", async () => {
    const handle = owner.handle;
    const names = ["circle-a", "circle-b"] as const;
    const [model] = await Promise.all(
      names.map((name) => register({ name, fallbacks: names.filter((one) => one !== name).map((one) => `community/${handle}/${one}`) })),
    );
    app.upstream.replyAlways(errorReply(503));
    const seen = app.upstream.requests.length;

    const failed = openai.chat.completions.create({ model: model ?? "", messages: [{ role: "user", content: "Hi" }] });

    await expect(failed).rejects.toMatchObject({ status: 502 });
    expect(app.upstream.requests.length - seen).toBe(2);
  });
});

describe("media", () => {
  const media = (modality: "image" | "video" | "speech" | "transcription" | "embedding", path: string, more: RegisteredFields = {}) =>
    register({ modality, api: null, url: `${origin()}${path}`, ...more });

  it("pictures are made at the registered base URL", async () => {
    const model = await media("image", "/v9/images/generations?tenant=a", { completionImagePrice: 40_000_000_000n });
    app.upstream.replyNext(json(imagesObject([await picture()])));

    const { data, response } = await openai.images.generate({ model, prompt: "A heron" }).withResponse();

    expect(data.data?.[0]?.b64_json).toBeTruthy();
    expect(response.headers.get("x-cost")).toBe("0.04");
    expect(lastRequest().path).toBe("/v9/images/generations?tenant=a");
    expectOnlyOwnCredential(lastRequest());
  });

  it("a picture that is named and not public is not fetched", async () => {
    const model = await media("image", "/v9");
    app.upstream.replyNext(json(imagesObject(["https://10.0.0.1/a.png"])));
    await expect(openai.images.generate({ model, prompt: "A heron" })).rejects.toMatchObject({ status: 502 });
  });

  it("speech is read out", async () => {
    const model = await media("speech", "/v9/audio/speech", { completionAudioPrice: 1_000_000_000n });
    app.upstream.replyNext(raw("sound", { headers: { "content-type": "audio/mpeg" } }));

    const spoken = await openai.audio.speech.create({ model, input: "Hello", voice: "alloy" });

    expect(await spoken.text()).toBe("sound");
    expect(lastRequest().path).toBe("/v9/audio/speech");
    expectOnlyOwnCredential(lastRequest());
  });

  it("recordings are transcribed, and billed by their own length, not the upstream's report", async () => {
    const model = await media("transcription", "/v9", { promptAudioPrice: 1_000_000_000n });
    app.upstream.replyNext(json({ text: "Hello", duration: 3_600 }));

    const file = await toFile(recording(2), "a.wav");
    const { data, response } = await openai.audio.transcriptions.create({ model, file }).withResponse();

    expect(data.text).toBe("Hello");
    expect(response.headers.get("x-cost")).toBe("0.002");
    expect(lastRequest().path).toBe("/v9/audio/transcriptions");
    expectOnlyOwnCredential(lastRequest());
  });

  it("embeddings are believed as far as they were held", async () => {
    const model = await media("embedding", "/v9/embeddings", { promptTextPrice: 1_000_000_000n });
    const vectors = { object: "list", model: "x", data: [{ object: "embedding", index: 0, embedding: [0.5, 1] }] };
    app.upstream.replyNext(
      json({ ...vectors, usage: { prompt_tokens: 1_000_000, total_tokens: 1_000_000 } }),
      json({ ...vectors, usage: { prompt_tokens: 0, total_tokens: 0 } }),
    );
    const ask = () => openai.embeddings.create({ model, input: "hello world", encoding_format: "float" }).withResponse();

    const [lied, silent] = [await ask(), await ask()];

    expect(lied.data.usage.prompt_tokens).toBe(2);
    expect(lied.response.headers.get("x-cost")).toBe("0.002");
    expect(silent.response.headers.get("x-cost")).toBe("0.002");
    expect(silent.data.data[0]?.embedding).toEqual([0.5, 1]);
    expectOnlyOwnCredential(lastRequest());
  });

  it("videos take one call of the exact address, and cost at most the requested seconds", async () => {
    const model = await media("video", "/make?tier=1", { completionVideoPrice: 100_000_000_000n });
    const clip = await readClip(10);
    app.upstream.replyNext(raw(clip, { headers: { "content-type": "video/mp4" } }));

    const answer = await client.get(`/video/heron?duration=3&model=${encodeURIComponent(model)}`);

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-cost")).toBe("0.3");
    expect(lastRequest()).toMatchObject({ method: "POST", path: "/make?tier=1" });
    expect(lastRequest().json).toMatchObject({ model: "their-model", prompt: "heron", duration: 3, seconds: "3" });
    expectOnlyOwnCredential(lastRequest());
  });
});

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

const GREETING: ChatCompletionInput["messages"] = [{ role: "USER", content: "Hi" }];

/** What a question like `chat`'s has set aside for it, in credits. */
async function heldFor(model: string, more: Partial<ChatCompletionInput> = { maxTokens: 100 }): Promise<number> {
  app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(0, 0) })));
  const input: ChatCompletionInput = { model, messages: [{ role: "USER", content: "Hello" }], ...more };
  return Number(ok(await execute({ ...app, key: other.key }, ChatDocument, { input })).createChatCompletion.receipt.held);
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

describe("reported usage", () => {
  it.each(FORMATS)("is trusted up to the hold, $how", async ({ api, isStreamed, reply }) => {
    const model = await registerPriced({ api });
    const held = await heldFor(await registerPriced());
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
    expect(nothing).toMatchObject({ cost_usd: 0.000036, usage_source: "estimated", input_text_tokens: 8, output_text_tokens: 4 });
    for (const row of lies) {
      expect(row?.usage_source).toBe("bounded");
      expect(row?.cost_usd).toBeGreaterThan(0);
      expect(row?.cost_usd).toBeLessThanOrEqual(held);
    }
    for (const row of absurd) {
      expect(row?.usage_source).toBe("estimated");
      expect(row?.cost_usd).toBeGreaterThan(0);
      expect(row?.cost_usd).toBeLessThan(held / 4);
    }
  });

  it.each([false, true])("is shown to the caller as it was charged (streamed: %s)", async (isStreamed) => {
    const model = await registerPriced();
    app.upstream.replyNext(
      isStreamed ? streamed(wireUsage(1_000_000, 1_000_000)) : json(chatCompletion({ usage: wireUsage(1_000_000, 1_000_000) })),
    );

    const answer = await chat(model, { stream: isStreamed });

    const row = await rowOf(answer);
    expect(answer.text).toContain(`"prompt_tokens":${row?.input_text_tokens},"completion_tokens":${row?.output_text_tokens}`);
    expect(answer.text).not.toContain("1000000");
  });

  it("does not raise the estimate of the next answers", async () => {
    const model = await registerPriced();
    for (const isStreamed of [false, true]) {
      const usage = wireUsage(10, 2_000_000_000);
      app.upstream.replyNext(isStreamed ? streamed(usage) : json(chatCompletion({ usage })));
      await chat(model, { stream: isStreamed });
    }
    // A tenth of the caller's balance. Four answers of the claimed length would be 40,000 credits.
    expect(await heldFor(model, {})).toBeLessThan(1);
  });
});

describe("an answer longer than its estimate", () => {
  /** Some two tokens each. */
  const long = Array.from({ length: 1_500 }, (_, index) => ` heron ${index}`);
  const text = long.join("");

  it.each([false, true])("is paid as far as it was delivered when the caller set no limit (streamed: %s)", async (isStreamed) => {
    const model = await registerPriced();
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
  ])("is neither paid nor passed on beyond the caller's limit (%s)", async (_, isStreamed, usage) => {
    const model = await registerPriced();
    const held = await heldFor(model);
    app.upstream.replyNext(isStreamed ? streamed(usage, long) : json(chatCompletion({ content: text, usage })));

    const answer = await chat(model, { stream: isStreamed });

    const row = await rowOf(answer);
    expect(answer.text).not.toContain("heron 1499");
    expect(answer.text).toContain('"finish_reason":"length"');
    expect(row?.cost_usd).toBeGreaterThan(held / 2);
    expect(row?.cost_usd).toBeLessThanOrEqual(held);
  });
});

describe("an upstream that fails", () => {
  it.each([401, 402, 403, 404, 409, 429, 500, 503])("with %i is answered 502, after its fallbacks were tried", async (status) => {
    const fallback = await registerPriced();
    const model = await registerPriced({ fallbacks: [fallback] });
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
    const model = await registerPriced({ url, fallbacks: [await registerPriced()] });
    const seen = app.upstream.requests.length;
    app.upstream.replyNext(errorReply(status, `too much for ${TOKEN} at ${url} of tenant of-the-owner`));

    const answer = await chat(model);

    expectEnvelope(answer, expected, code);
    expect(answer.text).toContain("too much for [redacted] at");
    expect(answer.text).not.toContain("of-the-owner");
    expect(app.upstream.requests.length - seen).toBe(1);
  });

  it("is not called beyond its limit for each account, nor are its fallbacks", async () => {
    const model = await registerPriced({ perUserRpm: 0.5, fallbacks: [await registerPriced()] });
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
    const answers = [await chat(await registerPriced({ url }))];
    const picture = await registerPriced({ url, modality: "image", api: null });
    answers.push(await client.post("/v1/images/generations", { model: picture, prompt: "A heron" }));
    for (const answer of answers) expectEnvelope(answer, 502, "UPSTREAM_ERROR");
  });
});

describe("a model that leads back to the gateway", () => {
  const ENDPOINTS = { chat_completions: "/v1/chat/completions", responses: "/v1/responses" } as const;

  it.each(["chat_completions", "responses"] as const)("over %s ends in a clear error and costs nothing", async (api) => {
    const name = `loop-${api}`;
    const model = await registerPriced({
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
    const model = await registerPriced();
    const seen = app.upstream.requests.length;

    const rest = await client.request("POST", "/v1/chat/completions", {
      body: { model, messages: [{ role: "user", content: "Hello" }] },
      headers: { "x-sluice-hops": hops },
    });
    const hopping = { ...app, key: other.key, headers: { "x-sluice-hops": hops } };
    const graph = await execute(hopping, ChatDocument, { input: { model, messages: GREETING } });

    expectEnvelope(rest, 400, "BAD_REQUEST");
    expect(graph.errors?.[0]?.message).toContain("more than 3 gateways");
    expect(app.upstream.requests.length).toBe(seen);
  });
});
