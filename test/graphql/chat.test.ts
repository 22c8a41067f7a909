import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { expectNothingHeld } from "../e2e/money.js";
import {
  type ChatCompletionInput,
  ChatInFullDocument,
  ChatTwiceDocument,
  CreateApiKeyDocument,
  MyUsageChargesDocument,
  StreamChatInFullDocument,
  type StreamChatInFullSubscription,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunk, chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, gated, hang, json, sse } from "../support/upstream-replies.js";
import {
  type Answer,
  authorization,
  codes,
  connect,
  execute,
  ok,
  type Subscribe,
  subscribeSse,
  subscribeWith,
  TRANSPORTS,
} from "./client.js";

const PART = { raw: { type: "text", text: "Today?", cache_control: { type: "ephemeral" } } };
const HI: ChatCompletionInput = { model: "acme/chat", messages: [{ role: "USER", content: "Hi" }] };

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

beforeEach(() => {
  app.upstream.replyAlways(null);
});

function events(answers: readonly Answer<StreamChatInFullSubscription>[]) {
  return answers.map((answer) => ok(answer).chatCompletion);
}

interface RestError {
  readonly error: { readonly code: string; readonly param: string | null; readonly details?: unknown; readonly message: string };
}

async function restChat(body: object): Promise<RestError["error"]> {
  const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...authorization(app) },
    body: JSON.stringify(body),
  });
  return ((await response.json()) as RestError).error;
}

async function usageOf(generationId: string | undefined) {
  const { usage } = ok(await execute(app, MyUsageChargesDocument)).me;
  return usage?.nodes.find(({ restId }) => restId === generationId);
}

describe("createChatCompletion", () => {
  it("answers the conversation with its receipt, which is its usage row", async () => {
    app.upstream.replyNext(
      json(
        chatCompletion({
          id: "chatcmpl-1",
          content: "Hello.",
          usage: wireUsage(100, 20, { prompt_tokens_details: { cached_tokens: 40 } }),
        }),
      ),
    );

    const payload = ok(await execute(app, ChatInFullDocument, { input: HI })).createChatCompletion;

    expect(payload.completion).toEqual({
      id: "chatcmpl-1",
      created: "2023-11-14T22:13:20.000Z",
      modelId: "acme/chat",
      model: { restId: "acme/chat" },
      choices: [{ index: 0, finishReason: "STOP", message: { role: "ASSISTANT", content: "Hello.", toolCalls: null } }],
    });
    // 60 x 0.000001 + 40 x 0.0000005 + 20 x 0.000002
    expect(payload.receipt).toMatchObject({
      modelId: "acme/chat",
      model: { restId: "acme/chat" },
      modelUsedId: "acme/chat",
      cost: "0.00012",
      status: "OK",
      usageSource: "PROVIDER",
      meterSource: "PACK",
      usage: { inputTextTokens: 60, inputCachedTokens: 40, outputTextTokens: 20, outputReasoningTokens: 0 },
    });
    expect(payload.raw).toMatchObject({ object: "chat.completion", usage: { prompt_tokens: 100 } });
    expect(await usageOf(payload.receipt.generationId)).toMatchObject({ status: "OK", cost: "0.00012" });
  });

  it("passes a field called then of the upstream's JSON on", async () => {
    const completion = JSON.stringify(chatCompletion({ content: "Hello.", usage: wireUsage(100, 20) }));
    app.upstream.replyNext(json(completion.replace("{", '{"then":"a word",')));

    const payload = ok(await execute(app, ChatInFullDocument, { input: HI })).createChatCompletion;

    expect(Object.entries(payload.raw as object)).toContainEqual(["then", "a word"]);
    expect(payload.receipt).toMatchObject({ status: "OK", cost: "0.00014" });
  });

  it("sends every typed parameter to the upstream under its wire name, and extra as it is", async () => {
    const answer = await execute(app, ChatInFullDocument, {
      input: {
        model: "chat",
        messages: [
          { role: "SYSTEM", content: "Be brief." },
          {
            role: "USER",
            parts: [{ text: "Weather?" }, { image: { url: "data:image/png;base64,AA==", detail: "LOW" } }, PART],
            name: "ann",
          },
          { role: "ASSISTANT", toolCalls: [{ id: "call_1", function: { name: "weather", arguments: "{}" } }] },
          { role: "TOOL", content: "sunny", toolCallId: "call_1" },
        ],
        temperature: 0.5,
        topP: 0.9,
        seed: 7,
        n: 1,
        maxTokens: 50,
        stop: ["END"],
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        hasLogprobs: true,
        topLogprobs: 2,
        reasoningEffort: "LOW",
        tools: [{ function: { name: "weather", parameters: { type: "object" }, isStrict: true } }],
        toolChoice: "auto",
        hasParallelToolCalls: false,
        responseFormat: { type: "JSON_SCHEMA", jsonSchema: { name: "answer", schema: { type: "object" } } },
        extra: { user: "u-1", metadata: { trip: "2" } },
      },
    });

    expect(codes(answer)).toEqual([]);
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } };
    expect(app.upstream.requests.at(-1)?.json).toEqual({
      model: "upstream-chat",
      stream: false,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Weather?" }, picture, PART.raw], name: "ann" },
        { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } }] },
        { role: "tool", content: "sunny", tool_call_id: "call_1" },
      ],
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      n: 1,
      max_tokens: 50,
      stop: ["END"],
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      logprobs: true,
      top_logprobs: 2,
      reasoning_effort: "low",
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object" }, strict: true } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } },
      user: "u-1",
      metadata: { trip: "2" },
    });
  });

  it("shows the tool calls of a model", async () => {
    app.upstream.replyNext(
      json(chatCompletion({ content: null, toolCalls: [{ id: "call_9", name: "weather", arguments: '{"city":"Oslo"}' }] })),
    );

    const payload = ok(await execute(app, ChatInFullDocument, { input: HI })).createChatCompletion;

    expect(payload.completion.choices[0]).toMatchObject({
      finishReason: "TOOL_CALLS",
      message: {
        content: null,
        toolCalls: [{ id: "call_9", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
      },
    });
  });

  it.each<[string, Partial<ChatCompletionInput>, object]>([
    ["temperature above 2", { temperature: 2.1 }, { temperature: 2.1 }],
    ["no messages", { messages: [] }, { messages: [] }],
    ["an unknown model", { model: "acme/nothing" }, { model: "acme/nothing" }],
    ["a message without content", { messages: [{ role: "USER" }] }, { messages: [{ role: "user" }] }],
  ])("refuses %s with the code, param and details of REST", async (_what, input, body) => {
    const rest = await restChat({ model: "acme/chat", messages: [{ role: "user", content: "Hi" }], ...body });

    const answer = await execute(app, ChatInFullDocument, { input: { ...HI, ...input } });

    const { code, param, details, message } = rest;
    expect(answer.errors).toHaveLength(1);
    expect(answer.errors?.[0]).toMatchObject({ message, extensions: { code, param, details } });
    expect(answer.data).toEqual({ createChatCompletion: null });
  });

  const LOCAL = "http://169.254.169.254/";
  it.each<[string, Partial<ChatCompletionInput>, string, string]>([
    ["a limit", { maxTokens: 0 }, "maxTokens", "maxTokens: "],
    [
      "two limits that differ",
      { maxTokens: 1, maxCompletionTokens: 2 },
      "maxCompletionTokens",
      "maxCompletionTokens: differs from maxTokens: ",
    ],
    ["a number of tokens to tell of", { topLogprobs: 21 }, "topLogprobs", "topLogprobs: "],
    [
      "a part",
      { messages: [{ role: "USER", parts: [{ raw: { type: "text" } }] }] },
      "messages.0.parts.0.text",
      "messages.0.parts.0.text: ",
    ],
    ["a picture", { messages: [{ role: "USER", parts: [{ image: { url: LOCAL } }] }] }, "messages.0.parts.0.image.url", ""],
    ["a field of extra", { extra: { service_tier: "priority" } }, "extra.service_tier", ""],
  ])("names refused input as the schema does: %s", async (_what, input, param, begins) => {
    const asked = { ...HI, ...input };
    const answers = [
      await execute(app, ChatInFullDocument, { input: asked }),
      ...(await subscribeSse(app, StreamChatInFullDocument, { input: asked }).rest()),
    ];

    for (const { errors } of answers) {
      expect(errors?.[0]).toMatchObject({ message: expect.stringContaining(begins), extensions: { code: "BAD_REQUEST", param } });
      expect(errors?.[0]?.extensions.details).toMatchObject({ fieldErrors: { [param]: expect.any(Array) } });
    }
    expect(answers).toHaveLength(2);
  });

  it.each([400, 401, 429, 500])("reports an upstream's %i with the code of REST", async (status) => {
    app.upstream.replyNext(errorReply(status), errorReply(status));
    const rest = await restChat({ model: "acme/chat", messages: [{ role: "user", content: "Hi" }] });

    const answer = await execute(app, ChatInFullDocument, { input: HI });

    expect(codes(answer)).toEqual([rest.code]);
  });

  it.each([
    ["a field that has a name of its own in the schema", { temperature: 0.1 }, "extra.temperature"],
    ["the choice between one answer and a stream", { stream: true }, "extra.stream"],
    ["something that is no object", [1], "extra"],
  ])("refuses extra that holds %s", async (_what, extra, param) => {
    const answer = await execute(app, ChatInFullDocument, { input: { ...HI, temperature: 1, extra } });

    expect(answer.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param });
  });

  it("refuses a message that has both content and parts", async () => {
    const answer = await execute(app, ChatInFullDocument, { input: { ...HI, messages: [{ role: "USER", content: "a", parts: [] }] } });

    expect(answer.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "messages.0.parts" });
  });

  it("keeps the cost of one completion when the one beside it fails", async () => {
    const answer = await execute(app, ChatTwiceDocument, { good: HI, bad: { ...HI, model: "acme/nothing" } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.data).toEqual({ good: { receipt: { cost: expect.any(String) } }, bad: null });
  });

  it("answers KEY_BUDGET_EXHAUSTED when the key's budget does not cover it", async () => {
    const { key } = ok(await execute(app, CreateApiKeyDocument, { input: { name: "poor", creditBudget: "0.5" } })).createApiKey;

    const answer = await execute({ ...app, key }, ChatInFullDocument, { input: { ...HI, model: "acme/dear", maxTokens: 5 } });

    expect(codes(answer)).toEqual(["KEY_BUDGET_EXHAUSTED"]);
  });

  it("answers UNAUTHORIZED without a key", async () => {
    expect(codes(await execute({ ...app, key: null }, ChatInFullDocument, { input: HI }))).toEqual(["UNAUTHORIZED"]);
  });

  it("is finished and charged when its client on a WebSocket completes the operation", async () => {
    const late = gated(chatCompletion({ content: "Too late.", usage: wireUsage(0, 5) }));
    app.upstream.replyNext(late.reply);
    const client = connect(app);
    const seen = app.upstream.requests.length;

    const live = subscribeWith(client, ChatInFullDocument, { input: HI });
    const request = await requestNumber(seen);
    live.leave();
    await client.dispose();
    late.open();

    await request.answered;
    await expectNothingHeld(app);
  });
});

/** The upstream's request after the first `count` ones. */
async function requestNumber(count: number) {
  for (;;) {
    const request = await app.upstream.nextRequest();
    if (app.upstream.requests.indexOf(request) >= count) return request;
  }
}

describe.each(TRANSPORTS)("chatCompletion over %s", (_name, subscribe: Subscribe) => {
  it("streams the deltas and ends with the receipt of its usage row", async () => {
    app.upstream.replyNext(sse(chatChunks(["Hel", "lo"], { usage: wireUsage(10, 2) })));

    const all = events(await subscribe(app, StreamChatInFullDocument, { input: HI }).rest());

    const deltas = all.flatMap((event) => (event.__typename === "ChatCompletionDelta" ? [event] : []));
    expect(deltas.map((delta) => delta.content).join("")).toBe("Hello");
    expect(deltas.at(-1)).toMatchObject({ index: 0, finishReason: "STOP" });
    const end = all.at(-1);
    const generationId = end?.generationId;
    // 10 x 0.000001 + 2 x 0.000002
    expect(end).toMatchObject({ receipt: { generationId, cost: "0.000014", status: "OK", usageSource: "PROVIDER" } });
    expect(new Set(all.map((event) => event.generationId))).toEqual(new Set([generationId]));
    expect(await usageOf(generationId)).toMatchObject({ status: "OK", cost: "0.000014" });
  });

  it("streams the pieces of a tool call", async () => {
    const call = (more: object) => chatChunk({ tool_calls: [{ index: 0, ...more }] });
    app.upstream.replyNext(
      sse([
        call({ id: "call_1", function: { name: "weather", arguments: "" } }),
        call({ function: { arguments: "{}" } }),
        chatChunk({}, "tool_calls"),
      ]),
    );

    const all = events(await subscribe(app, StreamChatInFullDocument, { input: HI }).rest());

    expect(all.flatMap((event) => (event.__typename === "ChatCompletionDelta" ? (event.toolCalls ?? []) : []))).toEqual([
      { index: 0, id: "call_1", function: { name: "weather", arguments: "" } },
      { index: 0, id: null, function: { name: null, arguments: "{}" } },
    ]);
  });

  it("closes the upstream when it is left, and charges the delivered part", async () => {
    app.upstream.replyNext(sse([chatChunk({ content: "One " }), chatChunk({ content: "two" })], { end: "hang" }));
    const seen = app.upstream.requests.length;

    const live = subscribe(app, StreamChatInFullDocument, { input: HI });
    const first = ok(await live.next()).chatCompletion;
    live.leave();

    const request = await requestNumber(seen);
    await expect(request.closedByClient).resolves.toBeGreaterThan(0);
    const { usage, ...row } = await settledUsage(first.generationId);
    expect(row).toMatchObject({ status: "CANCELLED", usageSource: "PARTIAL" });
    expect(usage.outputTextTokens).toBeGreaterThan(0);
  });

  it("closes the upstream when it is left before the answer", async () => {
    app.upstream.replyNext(hang());
    const seen = app.upstream.requests.length;

    const live = subscribe(app, StreamChatInFullDocument, { input: HI });
    const waiting = live.next().catch(() => null);
    const request = await requestNumber(seen);
    live.leave();

    await expect(request.closedByClient).resolves.toBeGreaterThan(0);
    await waiting;
  });

  it("reports the cost of a stream that the upstream cuts, without the upstream's words", async () => {
    app.upstream.replyNext(sse([chatChunk({ content: "One" })], { end: "cut" }));

    const answers = await subscribe(app, StreamChatInFullDocument, { input: HI }).rest();

    const last = answers.at(-1);
    expect(last?.errors?.map(({ extensions }) => extensions.code)).toEqual(["UPSTREAM_ERROR"]);
    expect(answers.at(-2)?.data?.chatCompletion).toMatchObject({
      __typename: "ChatCompletionEnd",
      receipt: { status: "CANCELLED", usageSource: "PARTIAL" },
    });
    expect(JSON.stringify(last)).not.toMatch(/ECONN|socket|stack|127\.0\.0\.1/);
  });

  it("refuses the same input as createChatCompletion", async () => {
    const answers = await subscribe(app, StreamChatInFullDocument, { input: { ...HI, temperature: 3 } }).rest();

    expect(answers.flatMap(codes)).toEqual(["BAD_REQUEST"]);
    expect(answers[0]?.errors?.[0]?.extensions).toMatchObject({
      param: "temperature",
      details: { fieldErrors: { temperature: expect.any(Array) } },
    });
  });

  it("answers UNAUTHORIZED without a key", async () => {
    const answers = await subscribe({ ...app, key: null }, StreamChatInFullDocument, { input: HI }).rest();

    expect(answers.flatMap(codes)).toEqual(["UNAUTHORIZED"]);
  });

  it("reports an upstream that refuses before the first byte", async () => {
    app.upstream.replyNext(errorReply(500));

    const answers = await subscribe(app, StreamChatInFullDocument, { input: HI }).rest();

    expect(answers.flatMap(codes)).toEqual(["UPSTREAM_ERROR"]);
  });
});

/** The row is written after the client has left; the live subscription says when. */
async function settledUsage(generationId: string) {
  for (;;) {
    const row = await usageOf(generationId);
    if (row !== undefined) return row;
  }
}
