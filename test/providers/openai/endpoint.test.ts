import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ChatBody } from "../../../src/formats/openai-chat/schema.js";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { OutboundError } from "../../../src/lib/outbound-guard.js";
import type { ImageCall, VideoCall } from "../../../src/providers/media.js";
import { type FetchFile, OpenAiClient } from "../../../src/providers/openai/client.js";
import { type OpenAiEndpoint, toBaseUrl, toEndpointAbilities, toEndpointAddress } from "../../../src/providers/openai/endpoint.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { readClip } from "../../support/fake-videos.js";
import { chatCompletion } from "../../support/openai-bodies.js";
import { callItem, responseEvents, responseObject, responseStream, responseUsage, textItem } from "../../support/responses-bodies.js";
import { errorReply, event, json, raw, sse } from "../../support/upstream-replies.js";

const TOKEN = "owner-token-0123456789";

let upstream: FakeUpstream;
let origin: string;
const clients: OpenAiClient[] = [];

beforeAll(async () => {
  upstream = await startFakeUpstream();
  origin = `http://127.0.0.1:${upstream.port}`;
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await upstream.close();
});
beforeEach(() => upstream.replyAlways(null));

const refuseFiles: FetchFile = () => Promise.reject(new OutboundError("host", "no files here"));

function connect(endpoint: Partial<OpenAiEndpoint> & { path?: string } = {}, fetchFile = refuseFiles) {
  const { path = "/exact/chat/?v=2", modality = "text", api = "chat_completions" } = endpoint;
  const registered = { url: `${origin}${path}`, modality, api };
  const timeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };
  const client = new OpenAiClient({ ...toEndpointAddress(registered), apiKey: TOKEN, timeouts });
  clients.push(client);
  return toEndpointAbilities(registered, client, fetchFile);
}

function chatOf(api: "chat_completions" | "responses") {
  const { chat } = connect({ api });
  if (!chat) throw new Error("no chat");
  return chat;
}

function call(body: ChatBody = { messages: [{ role: "user", content: "Hi" }] }) {
  return { upstreamModel: "their-model", body, signal: new AbortController().signal };
}

function lastRequest() {
  const request = upstream.requests.at(-1);
  if (!request) throw new Error("The upstream was not called.");
  return request;
}

async function collect(stream: AsyncIterable<readonly ChatChunk[]>): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = [];
  for await (const batch of stream) chunks.push(...batch);
  return chunks;
}

/** What a client puts together from the chunks. */
function joined(chunks: readonly ChatChunk[]) {
  const deltas = chunks.flatMap(({ object }) => object.choices ?? []).map(({ delta }) => delta ?? {});
  const calls: { id?: string | undefined; name: string; arguments: string }[] = [];
  for (const { tool_calls: pieces } of deltas) {
    for (const piece of (pieces ?? []) as { index: number; id?: string; function?: { name?: string; arguments?: string } }[]) {
      const known = calls[piece.index] ?? { id: piece.id, name: piece.function?.name ?? "", arguments: "" };
      calls[piece.index] = { ...known, arguments: known.arguments + (piece.function?.arguments ?? "") };
    }
  }
  const text = (name: string) => deltas.map((delta) => delta[name] ?? "").join("");
  return {
    content: text("content"),
    refusal: text("refusal"),
    reasoning: text("reasoning_content"),
    calls,
    finish: chunks.flatMap(({ object }) => object.choices ?? []).findLast(({ finish_reason: reason }) => reason)?.finish_reason,
    usage: chunks.findLast(({ usage }) => usage)?.usage,
  };
}

async function failureOf(work: Promise<unknown>): Promise<ProviderError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
}

describe("an address", () => {
  it("is called exactly as it was registered, slash and query included", async () => {
    upstream.replyNext(json(chatCompletion({ content: "Hello" })));

    const { completion } = await chatOf("chat_completions").complete(call());

    const request = lastRequest();
    expect(completion.choices?.[0]?.message?.content).toBe("Hello");
    expect(request).toMatchObject({ method: "POST", path: "/exact/chat/?v=2", headers: { authorization: `Bearer ${TOKEN}` } });
    expect(request.json).toMatchObject({ model: "their-model", stream: false });
  });

  it.each([
    ["image", "/v1/images/generations?v=2", "/v1?v=2"],
    ["image", "/v1/images/edits/", "/v1"],
    ["speech", "/openai/Audio/Speech", "/openai"],
    ["transcription", "/v1/audio/transcriptions", "/v1"],
    ["embedding", "/embeddings?key=a%2Fb", "/?key=a%2Fb"],
    ["embedding", "/v1/", "/v1"],
    ["image", "/v1/embeddings", "/v1/embeddings"],
  ])("of %s may be %s: its base is %s", (modality, given, base) => {
    expect(toBaseUrl(`https://media.example${given}`, modality)).toBe(`https://media.example${base}`);
  });

  it("offers its registered operation alone", () => {
    expect(Object.keys(connect())).toEqual(["chat"]);
    for (const modality of ["image", "video", "speech", "transcription", "embedding"]) {
      expect(Object.keys(connect({ modality, api: null }))).toEqual([modality]);
    }
    expect(connect({ modality: "realtime", api: null })).toEqual({});
  });
});

describe("a chat as a request of the Responses format", () => {
  async function sent(body: ChatBody) {
    upstream.replyNext(json(responseObject([textItem("ok")])));
    const { warnings } = await chatOf("responses").complete(call(body));
    return { fields: lastRequest().json as Record<string, unknown>, warnings };
  }

  it("has the system's words as instructions, and every other message as an item", async () => {
    const { fields } = await sent({
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image_url", image_url: { url: "https://img.example/a.png", detail: "low" } },
            { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
            { type: "file", file: { file_data: "data:application/pdf;base64,AAAA", filename: "a.pdf" } },
          ],
        },
        {
          role: "assistant",
          content: "Looking.",
          tool_calls: [{ id: "c1", type: "function", function: { name: "see", arguments: "{}" } }],
        },
        {
          role: "tool",
          tool_call_id: "c1",
          content: [
            { type: "text", text: "a " },
            { type: "text", text: "bird" },
          ],
        },
        { role: "developer", content: "Answer in French." },
      ],
    });

    expect(fields).toEqual({
      model: "their-model",
      instructions: "Be brief.",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "Look" },
            { type: "input_image", image_url: "https://img.example/a.png", detail: "low" },
            { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
            { type: "input_file", file_data: "data:application/pdf;base64,AAAA", filename: "a.pdf" },
          ],
        },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "Looking." }] },
        { type: "function_call", call_id: "c1", name: "see", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "a bird" },
        { role: "developer", content: "Answer in French." },
      ],
      store: false,
      stream: false,
    });
  });

  it("has its options by their other names, and unknown fields unchanged", async () => {
    const schema = { type: "object", properties: {} };
    const { fields, warnings } = await sent({
      messages: [{ role: "system", content: "Alone" }],
      max_completion_tokens: 99,
      temperature: 0.5,
      top_p: 0.9,
      reasoning_effort: "low",
      verbosity: "high",
      response_format: { type: "json_schema", json_schema: { name: "bird", schema, strict: true } },
      tools: [
        { type: "function", function: { name: "see", description: "d", parameters: schema } },
        { type: "function", function: { name: "fly", strict: true } },
        { type: "web_search" },
      ],
      tool_choice: { type: "function", function: { name: "see" } },
      parallel_tool_calls: false,
      logprobs: true,
      top_logprobs: 2,
      metadata: { a: "b" },
      their_own: 1,
      stop: ["x"],
      n: 2,
      presence_penalty: 0,
    });

    expect(fields).toMatchObject({
      input: [{ role: "system", content: "Alone" }],
      max_output_tokens: 99,
      temperature: 0.5,
      top_p: 0.9,
      reasoning: { effort: "low" },
      text: { format: { type: "json_schema", name: "bird", schema, strict: true }, verbosity: "high" },
      tools: [
        { type: "function", name: "see", description: "d", parameters: schema, strict: false },
        { type: "function", name: "fly", parameters: schema, strict: true },
        { type: "web_search" },
      ],
      tool_choice: { type: "function", name: "see" },
      parallel_tool_calls: false,
      include: ["message.output_text.logprobs"],
      top_logprobs: 2,
      metadata: { a: "b" },
      their_own: 1,
    });
    for (const absent of ["messages", "instructions", "stop", "n", "presence_penalty", "max_completion_tokens", "logprobs"]) {
      expect(fields).not.toHaveProperty(absent);
    }
    expect(warnings).toEqual(["n: this upstream gives one choice.", "stop: this upstream has no such option."]);
  });

  it("is refused for a part that no item can hold, as an upstream would refuse it", async () => {
    const body = { messages: [{ role: "user", content: [{ type: "video_url", video_url: { url: "https://v.example" } }] }] };

    const error = await failureOf(chatOf("responses").complete(call(body)));

    expect(error).toMatchObject({ kind: "status", status: 400, upstreamParam: "messages.0.content.0.type" });
  });
});

const ANSWERS = [
  {
    name: "text",
    response: responseObject([textItem("Hello, world.")], { usage: responseUsage({ input: 12, output: 7, cached: 5, reasoning: 2 }) }),
    said: { content: "Hello, world.", finish: "stop" },
    usage: { inputTextTokens: 7, inputCachedTokens: 5, outputTextTokens: 5, outputReasoningTokens: 2 },
  },
  {
    name: "calls",
    response: responseObject([callItem("c1", "see", '{"at":"dawn"}'), callItem("c2", "fly", "{}")]),
    said: {
      content: "",
      finish: "tool_calls",
      calls: [
        { id: "c1", name: "see", arguments: '{"at":"dawn"}' },
        { id: "c2", name: "fly", arguments: "{}" },
      ],
    },
    usage: { inputTextTokens: 10, outputTextTokens: 4 },
  },
  {
    name: "thoughts and an answer that was cut",
    response: responseObject(
      [
        {
          type: "reasoning",
          id: "rs_1",
          summary: [
            { type: "summary_text", text: "First" },
            { type: "summary_text", text: "Then" },
          ],
        },
        { type: "web_search_call", id: "ws_1", status: "completed", content: [] },
        textItem("Half an ans"),
      ],
      { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    ),
    said: { content: "Half an ans", reasoning: "First\n\nThen", finish: "length" },
    usage: { outputTextTokens: 4 },
  },
  {
    name: "a refusal",
    response: responseObject([{ type: "message", id: "m", role: "assistant", content: [{ type: "refusal", refusal: "I won't." }] }]),
    said: { content: "", refusal: "I won't.", finish: "stop" },
    usage: { outputTextTokens: 4 },
  },
];

describe("a field that an upstream of the Responses format refuses", () => {
  const refusal = (name: string) => json({ error: { message: `Unknown parameter: '${name}'.`, param: name } }, { status: 400 });
  const sent = () => upstream.requests.map((request) => request.json as Record<string, unknown>);

  it("is left out of a second request and of later ones, without a warning where the gateway added it", async () => {
    const chat = chatOf("responses");
    const before = upstream.requests.length;
    upstream.replyNext(refusal("store"));
    upstream.replyNext(json(responseObject([textItem("Yes.")])));

    const answer = await chat.complete(call());

    expect(answer).toMatchObject({ completion: { choices: [{ message: { content: "Yes." } }] }, warnings: [] });
    upstream.replyNext(responseStream(responseObject([textItem("Yes.")])));
    await collect(await chat.stream(call()));
    const stores = sent()
      .slice(before)
      .map((body) => Object.hasOwn(body, "store"));
    expect(stores).toEqual([true, false, false]);
  });

  it("is named in a warning where the caller sent it", async () => {
    upstream.replyNext(refusal("prompt_cache_key"));
    upstream.replyNext(json(responseObject([textItem("Yes.")])));

    const { warnings } = await chatOf("responses").complete(call({ messages: [{ role: "user", content: "Hi" }], prompt_cache_key: "k" }));

    expect(warnings).toEqual(["prompt_cache_key has no effect on this model."]);
  });

  it("fails the request where its loss would change the answer", async () => {
    upstream.replyNext(refusal("temperature"));

    expect(await failureOf(chatOf("responses").complete(call()))).toMatchObject({ status: 400 });
  });
});

describe("an answer of the Responses format", () => {
  it.each(ANSWERS)("of $name is a chat completion", async ({ response, said, usage }) => {
    upstream.replyNext(json(response));

    const answer = await chatOf("responses").complete(call());

    const [choice] = answer.completion.choices ?? [];
    const { content, refusal, reasoning_content: reasoning, tool_calls: calls } = choice?.message ?? {};
    const flat = (calls as { id: string; function: object }[] | undefined)?.map(({ id, function: called }) => ({ id, ...called }));
    expect({
      content: content ?? "",
      refusal: refusal ?? "",
      reasoning: reasoning ?? "",
      calls: flat ?? [],
      finish: choice?.finish_reason,
    }).toEqual({ refusal: "", reasoning: "", calls: [], ...said });
    expect(answer.usage).toMatchObject(usage);
    expect(answer.completion).toMatchObject({ id: "resp_fake", object: "chat.completion", created: 1_700_000_000, model: "gpt-mock" });
    expect(JSON.parse(Buffer.from(answer.bytes).toString())).toEqual(answer.completion);
  });

  it.each(ANSWERS)("of $name is streamed as the chunks of a chat", async ({ response, said, usage }) => {
    upstream.replyNext(responseStream(response));

    const chunks = await collect(await chatOf("responses").stream(call({ messages: [{ role: "user", content: "Hi" }], seed: 3 })));

    expect(joined(chunks)).toMatchObject({ refusal: "", reasoning: "", calls: [], ...said, usage });
    expect(chunks[0]?.object).toMatchObject({
      id: "resp_fake",
      object: "chat.completion.chunk",
      choices: [{ delta: { role: "assistant" } }],
    });
    expect(chunks[0]?.warnings).toEqual(["seed: this upstream has no such option."]);
    expect(chunks.filter(({ object }) => object.choices?.[0]?.finish_reason)).toHaveLength(1);
    expect((lastRequest().json as Record<string, unknown>).stream).toBe(true);
  });

  it.each(ANSWERS)("of $name that comes whole in its last event is streamed all the same", async ({ response, said, usage }) => {
    upstream.replyNext(sse([{ type: `response.${response.status}`, response }], { done: false }));

    expect(joined(await collect(await chatOf("responses").stream(call())))).toMatchObject({ ...said, usage });
  });

  it("is a stream of one piece when the upstream ignores the request for a stream", async () => {
    upstream.replyNext(json(ANSWERS[1]?.response));

    expect(joined(await collect(await chatOf("responses").stream(call())))).toMatchObject(ANSWERS[1]?.said ?? {});
  });

  it("reports no usage when the upstream reports none, or an implausible one", async () => {
    for (const usage of [null, undefined, { input_tokens: -5, output_tokens: 1 }, { input_tokens: 1e12, output_tokens: 1 }]) {
      upstream.replyNext(json(responseObject([textItem("ok")], { usage })));
      expect((await chatOf("responses").complete(call())).usage).toBeNull();
    }
  });

  const broken = { error: { code: "rate_limit_exceeded", message: `slow down, Bearer ${TOKEN}` } };
  it.each([
    [
      "fails",
      responseObject([], { status: "failed", ...broken }),
      { kind: "status", status: 429, upstreamMessage: "slow down, [redacted]" },
    ],
    ["is still running", responseObject([], { status: "queued" }), { kind: "invalid-response" }],
    ["is no response", { object: "response" }, { kind: "invalid-response" }],
    ["is an error", { error: { message: "no", code: "invalid_prompt" } }, { kind: "status", status: 400 }],
  ])("is a failure when it %s", async (_, body, expected) => {
    upstream.replyNext(json(body));
    expect(await failureOf(chatOf("responses").complete(call()))).toMatchObject(expected);
  });

  const grown = responseEvents(responseObject([textItem("Hello, world.")])).slice(0, 5);
  it.each([
    [
      "ends in a failure",
      [...grown, { type: "response.failed", response: responseObject([], { status: "failed", ...broken }) }],
      { kind: "status", status: 429 },
    ],
    [
      "holds an error event",
      [...grown, { type: "error", code: "server_error", message: "oh" }],
      { kind: "status", status: 502, upstreamMessage: "oh" },
    ],
    ["holds an error with a name", [...grown, event("broken", "error")], { kind: "status" }],
    ["ends before its last event", grown, { kind: "cut" }],
    ["ends with [DONE] alone", [...grown, event("[DONE]")], { kind: "cut" }],
    ["is not JSON", [...grown, event("nonsense")], { kind: "invalid-response" }],
    [
      "goes on with a call that never began",
      [{ type: "response.function_call_arguments.delta", output_index: 3, delta: "{" }],
      { kind: "invalid-response" },
    ],
  ])("is a failure when its stream %s", async (_, events, expected) => {
    upstream.replyNext(sse(events, { done: false }));
    const chunks = await chatOf("responses").stream(call());
    expect(await failureOf(collect(chunks))).toMatchObject(expected);
  });

  it("skips events of another name in a stream", async () => {
    upstream.replyNext(sse([event("tick", "ping"), ...responseEvents(responseObject([textItem("Hello, world.")])), event("[1]", "stats")]));

    const chunks = await collect(await chatOf("responses").stream(call()));

    expect(joined(chunks)).toMatchObject({ content: "Hello, world.", finish: "stop" });
  });

  it("is a failure by its status, the credential redacted", async () => {
    upstream.replyNext(errorReply(422, `bad token ${TOKEN}`, "input"));
    expect(await failureOf(chatOf("responses").stream(call()))).toMatchObject({
      status: 422,
      upstreamMessage: "bad token [redacted]",
      upstreamParam: "input",
    });
  });
});

describe("a video of one call", () => {
  const asked: VideoCall = {
    upstreamModel: "their-video",
    prompt: "A heron lands",
    size: { width: 1280, height: 720 },
    aspectRatio: "16:9",
    seconds: 3,
    hasAudio: true,
    seed: 7,
    negativePrompt: "boats",
    images: [{ bytes: Buffer.from("png"), contentType: "image/png", name: "a.png" }],
    extra: { style: "calm" },
    onProgress: () => undefined,
    signal: new AbortController().signal,
  };
  const fetched: string[] = [];
  const troubles: Error[] = [];
  const fetchFile: FetchFile = async (url) => {
    fetched.push(url);
    const trouble = troubles.shift();
    if (trouble) throw trouble;
    if (url.includes("private")) throw new OutboundError("host", "not public");
    return { bytes: await readClip(3), contentType: "video/mp4" };
  };

  function generate() {
    const { video } = connect({ modality: "video", api: null, path: "/make-video?tier=1" }, fetchFile);
    if (!video) throw new Error("no video");
    return video.generate(asked);
  }

  it("that lies elsewhere is fetched again after passing trouble, and made once", async () => {
    const before = upstream.requests.length;
    troubles.push(new OutboundError("answer", "busy", undefined, 503), new OutboundError("answer", "not yet", undefined, 404));
    upstream.replyNext(json({ url: "https://files.example/late.mp4", status: "dozing", error: {} }));

    await expect(generate()).resolves.toMatchObject({ contentType: "video/mp4" });

    expect(fetched.splice(0)).toEqual(Array(3).fill("https://files.example/late.mp4"));
    expect(upstream.requests.length - before).toBe(1);
  });

  it("is requested with the caller's fields, at the exact address", async () => {
    upstream.replyNext(raw(await readClip(3), { headers: { "content-type": "video/webm; x=y" } }));

    const answer = await generate();

    const request = lastRequest();
    expect(answer).toMatchObject({ contentType: "video/webm", durationMs: null, usage: null });
    expect(request).toMatchObject({ method: "POST", path: "/make-video?tier=1" });
    expect(request.json).toEqual({
      model: "their-video",
      prompt: "A heron lands",
      seconds: "3",
      duration: 3,
      size: "1280x720",
      aspect_ratio: "16:9",
      audio: true,
      seed: 7,
      negative_prompt: "boats",
      image: `data:image/png;base64,${Buffer.from("png").toString("base64")}`,
      style: "calm",
    });
  });

  it.each([
    ["base64", (clip: Buffer) => ({ b64_json: clip.toString("base64") })],
    ["base64 in a list", (clip: Buffer) => ({ data: [{ b64_json: clip.toString("base64") }] })],
    ["a data URL", (clip: Buffer) => ({ data: [{ url: `data:video/mp4;base64,${clip.toString("base64")}` }] })],
    ["a URL", () => ({ url: "https://files.example/a.mp4" })],
    ["a URL in a list", () => ({ data: [{ url: "https://files.example/a.mp4" }] })],
  ])("comes as %s", async (_, toBody) => {
    const clip = await readClip(3);
    upstream.replyNext(json(toBody(clip)));

    const answer = await generate();

    expect(Buffer.from(answer.bytes).equals(clip)).toBe(true);
    expect(answer.contentType).toBe("video/mp4");
  });

  it.each([
    ["nothing", json({})],
    ["an empty list", json({ data: [] })],
    ["no base64", json({ b64_json: "!!!" })],
    ["an empty body", raw("", { headers: { "content-type": "video/mp4" } })],
    ["a URL that may not be fetched", json({ url: "https://private.example/" })],
    ["broken JSON", json("{")],
  ])("is a failure when the upstream answers %s", async (_, reply) => {
    upstream.replyNext(reply);
    expect(await failureOf(generate())).toMatchObject({ kind: "invalid-response" });
  });
});

it("sends requests for pictures at a registered base to both of its endpoints", async () => {
  const { image } = connect({ modality: "image", api: null, path: "/v1/images/edits?v=2" });
  const asked: ImageCall = {
    upstreamModel: "their-image",
    prompt: "A heron",
    size: null,
    count: 1,
    seed: null,
    negativePrompt: null,
    quality: null,
    isTransparent: false,
    format: null,
    reasoning: null,
    images: [],
    mask: null,
    extra: {},
    signal: new AbortController().signal,
  };
  upstream.replyAlways(errorReply(503));
  const seen = upstream.requests.length;

  await failureOf(image?.generate(asked) ?? Promise.resolve());
  await failureOf(
    image?.generate({ ...asked, images: [{ bytes: Buffer.from("x"), contentType: "image/png", name: "a.png" }] }) ?? Promise.resolve(),
  );

  expect(upstream.requests.slice(seen).map(({ path }) => path)).toEqual(["/v1/images/generations?v=2", "/v1/images/edits?v=2"]);
});
