/** Registered models over every route that fits them: both formats of an upstream behind both chat routes, media, and who sees which credential. */
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/store/database.js";
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
import { createClient } from "./client.js";

const TOKEN = "token-of-the-owner-0123";
/** In picocredits: 10 prompt and 4 completion tokens are 0.00004 credits. */
const PRICES = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };

let app: TestApp;
let owner: Member;
let other: Member;
let openai: OpenAI;
let second: FakeUpstream;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  second = await startFakeUpstream();
  [owner, other] = await Promise.all([createMember(app), createMember(app)]);
  openai = new OpenAI({
    apiKey: other.key,
    baseURL: `${app.baseUrl}/v1`,
    maxRetries: 0,
    defaultHeaders: { cookie: "session=of-the-caller" },
  });
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(async () => {
  const { pool } = Reflect.get(app.services.accounts, "database") as Database;
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
  const { usage } = (await createClient(app.baseUrl, other.key).get("/account/usage")).json<{
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

  it("answers GET /text and a GraphQL client too", async () => {
    const model = await register({ api: "responses", url: `${origin()}/their/responses` });
    app.upstream.replyAlways(json(responseObject(said)));
    const client = createClient(app.baseUrl, other.key);

    const text = await client.get(`/text/hello?model=${encodeURIComponent(model)}`);
    const query = `mutation { createChatCompletion(input: { model: "${model}", messages: [{ role: USER, content: "Hi" }] }) { completion { choices { message { content } } } } }`;
    const answer = await client.post("/graphql", { query }, { headers: { "x-sluice-hops": "2" } });

    expect(text.text).toBe("Hello, world.");
    expect(answer.text).toContain("Hello, world.");
    expect(lastRequest().headers["x-sluice-hops"]).toBe("3");
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

  it("pictures are made at the base of what was registered", async () => {
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

  it("recordings are written down, and billed as long as they are, whatever the upstream heard", async () => {
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

    const [lied, free] = [await ask(), await ask()];

    expect(lied.data.usage.prompt_tokens).toBe(2);
    expect(lied.response.headers.get("x-cost")).toBe("0.002");
    expect(free.response.headers.get("x-cost")).toBe("0");
    expect(free.data.data[0]?.embedding).toEqual([0.5, 1]);
    expectOnlyOwnCredential(lastRequest());
  });

  it("videos come of one call of the exact address, and cost no more than the seconds that were asked for", async () => {
    const model = await media("video", "/make?tier=1", { completionVideoPrice: 100_000_000_000n });
    const clip = await readClip(10);
    app.upstream.replyNext(raw(clip, { headers: { "content-type": "video/mp4" } }));
    const client = createClient(app.baseUrl, other.key);

    const answer = await client.get(`/video/heron?duration=3&model=${encodeURIComponent(model)}`);

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-cost")).toBe("0.3");
    expect(lastRequest()).toMatchObject({ method: "POST", path: "/make?tier=1" });
    expect(lastRequest().json).toMatchObject({ model: "their-model", prompt: "heron", duration: 3, seconds: "3" });
    expectOnlyOwnCredential(lastRequest());
  });
});
