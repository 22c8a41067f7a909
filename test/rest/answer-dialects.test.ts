/** Answers of upstreams in their own dialects leave in OpenAI's, whole and streamed, and are charged by their reports. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { booksWith, CREDIT, chat, createPayer, type Payer, parseEvents } from "../e2e/money.js";
import { execute } from "../graphql/client.js";
import { ChatInFullDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { json, type Reply, sse } from "../support/upstream-replies.js";

/** Nanocredits for a token of `acme/chat`. */
const [PROMPT_PRICE, COMPLETION_PRICE] = [1_000n, 2_000n];

let app: TestApp;
let payer: Payer;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

async function ask(reply: Reply, body: object = {}): Promise<Response> {
  payer = await createPayer(app, { pack: CREDIT });
  app.upstream.replyNext(reply);
  return chat(app, payer, { model: "acme/chat", ...body });
}

type Chunk = {
  readonly object?: string;
  readonly choices: readonly { readonly delta: Record<string, unknown>; readonly finish_reason: string | null; readonly usage?: unknown }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly x_groq?: unknown;
};

async function chunksOf(reply: Reply, body: object = {}): Promise<Chunk[]> {
  const events = parseEvents(await (await ask(reply, { stream: true, ...body })).text());
  expect(events.at(-1)?.data).toBe("[DONE]");
  return events.slice(0, -1).map(({ data }) => data as unknown as Chunk);
}

async function messageOf(reply: Reply): Promise<Record<string, unknown>> {
  const answer = (await (await ask(reply)).json()) as { choices: { message: Record<string, unknown> }[] };
  return answer.choices[0]?.message ?? {};
}

function withMessage(message: object): Reply {
  return json({ ...chatCompletion(), choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }] });
}

function stream(...deltas: object[]): Reply {
  const [first, ...rest] = deltas.map((delta) => ({ ...delta }));
  return sse(
    [{ ...first, role: "assistant" }, ...rest]
      .map((delta) => chatChunk(delta))
      .concat(chatChunk({}, "stop"), usageChunk(wireUsage(10, 40))),
  );
}

function said(chunks: readonly Chunk[], field: string): unknown {
  return chunks.map(({ choices }) => choices[0]?.delta[field] ?? "").join("");
}

describe("parallel calls", () => {
  const weather = (more: object) => ({ tool_calls: [{ ...more, function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }] });
  const time = (more: object) => ({ tool_calls: [{ ...more, function: { name: "get_time", arguments: '{"zone":"CET"}' } }] });

  it.each([
    ["all of index 0", [weather({ index: 0, id: "call_a" }), time({ index: 0, id: "call_b" })]],
    ["without an index", [weather({ id: "call_a" }), time({ id: "call_b" })]],
    [
      "with names behind their ids",
      [
        { tool_calls: [{ index: 0, id: "call_a" }] },
        { tool_calls: [{ index: 1, id: "call_b" }] },
        weather({ index: 0 }),
        time({ index: 1 }),
      ],
    ],
  ])("that an upstream streams %s are put together by the official client", async (_, deltas) => {
    payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(stream(...deltas));
    const openai = new OpenAI({ apiKey: payer.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });

    const answer = await openai.chat.completions
      .stream({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }] })
      .finalChatCompletion();

    expect(answer.choices[0]?.message.tool_calls).toMatchObject([
      { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
      { id: "call_b", type: "function", function: { name: "get_time", arguments: '{"zone":"CET"}' } },
    ]);
    await expectCharged(10n, 40n);
  });

  it("of a whole answer get the ids and types that they lack, and streamed they get an index each", async () => {
    const calls = [
      ...weather({ index: 0 }).tool_calls,
      ...time({ index: 0, id: "x" }).tool_calls,
      ...time({ index: 0, id: "x" }).tool_calls,
    ];

    const whole = (await messageOf(withMessage({ content: null, tool_calls: calls }))).tool_calls as { id: string }[];
    const [first] = await chunksOf(withMessage({ content: null, tool_calls: calls }));

    const made = expect.stringMatching(/^call_[0-9a-f]{32}$/);
    const expected = [made, "x", made].map((id, index) => ({ id, type: "function", function: calls[index]?.function }));
    expect(whole).toMatchObject(expected);
    expect(new Set(whole.map(({ id }) => id)).size).toBe(3);
    expect(first?.choices[0]?.delta.tool_calls).toMatchObject(expected.map((call, index) => ({ ...call, index })));
  });

  it("have their arguments as text where an upstream sends an object", async () => {
    const call = { index: 0, id: "call_a", type: "function", function: { name: "get_weather", arguments: { city: "Oslo" } } };
    const expected = [{ id: "call_a", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }];

    expect((await messageOf(withMessage({ content: null, tool_calls: [call] }))).tool_calls).toMatchObject(expected);
    const [, chunk] = await chunksOf(stream({}, { tool_calls: [call] }));
    expect(chunk?.choices[0]?.delta.tool_calls).toMatchObject(expected);
  });

  it("have their arguments as text in GraphQL, too", async () => {
    payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(
      withMessage({ content: null, tool_calls: [{ function: { name: "get_weather", arguments: { city: "Oslo" } } }] }),
    );
    const input = { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hello" }] };

    const { data } = await execute({ ...app, key: payer.key }, ChatInFullDocument, { input });

    expect(data?.createChatCompletion?.completion.choices[0]?.message).toMatchObject({
      toolCalls: [
        { id: expect.stringContaining("call_"), type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
      ],
    });
  });
});

describe("content that is a list", () => {
  const thinking = (text: string) => ({ type: "thinking", thinking: [{ type: "text", text }] });
  const text = (said: string) => ({ type: "text", text: said });

  it.each([
    ["Mistral's thoughts", [thinking("hm"), thinking("m"), text("he"), text("llo")], "hello", "hmm"],
    ["Databricks'", [{ type: "reasoning", summary: [{ type: "summary_text", text: "hmm" }] }, text("hello")], "hello", "hmm"],
    ["a thought that is a text", [{ type: "thinking", thinking: "hmm" }, text("hello")], "hello", "hmm"],
    ["text alone", [text("hello")], "hello", undefined],
    ["strings", ["hel", "lo"], "hello", undefined],
    ["nothing", [], "", undefined],
  ])("is text, with the thoughts beside it, whole: %s", async (_, content, expected, reasoning) => {
    expect(await messageOf(withMessage({ content }))).toEqual({
      role: "assistant",
      content: expected,
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
    });
    await expectCharged(10n, 4n);
  });

  it("is text, with the thoughts beside it, streamed", async () => {
    const chunks = await chunksOf(
      stream({ content: [thinking("h")] }, { content: [thinking("mm")] }, { content: [text("hel")] }, { content: "l" }, { content: "o" }),
    );

    expect([said(chunks, "content"), said(chunks, "reasoning_content")]).toEqual(["hello", "hmm"]);
    for (const { choices } of chunks) expect(typeof (choices[0]?.delta.content ?? "")).toBe("string");
  });

  it("keeps its other parts, without the thoughts", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };

    expect(await messageOf(withMessage({ content: [text("a"), image] }))).toMatchObject({ content: [text("a"), image] });
    expect(await messageOf(withMessage({ content: [thinking("hmm"), text("a"), image] }))).toMatchObject({
      content: [text("a"), image],
      reasoning_content: "hmm",
    });
  });

  it("does not repeat thoughts that stand beside it, and takes the list's where those are empty", async () => {
    const content = [thinking("hmm"), text("hello")];

    expect(await messageOf(withMessage({ content, reasoning_content: "mhm" }))).toMatchObject({
      content: "hello",
      reasoning_content: "mhm",
    });
    expect(await messageOf(withMessage({ content, reasoning_content: "" }))).toMatchObject({ content: "hello", reasoning_content: "hmm" });
  });

  it("is a thought of the Responses format, and of GraphQL", async () => {
    const content = [thinking("hmm"), text("hello")];
    app.upstream.replyNext(withMessage({ content }), withMessage({ content }));
    const openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
    const input = { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hello" }] };

    const response = await openai.responses.create({ model: "acme/chat", input: "Hello" });
    const { data } = await execute({ ...app, key: app.key }, ChatInFullDocument, { input });

    expect(response.output).toMatchObject([
      { type: "reasoning", content: [{ text: "hmm" }] },
      { type: "message", content: [{ text: "hello" }] },
    ]);
    expect(data?.createChatCompletion?.completion.choices[0]?.message?.content).toBe("hello");
  });
});

describe("usage in a stream", () => {
  const [prompt, pieces] = [10, ["a", "b", "c", "d", "e"]];
  const chunk = (content: string, index: number) => ({ ...chatChunk({ content }), usage: wireUsage(prompt, index + 1) });
  const emptied = { ...chatChunk({ content: "" }), usage: wireUsage(prompt, 5) };
  const ofChoice = { ...chatChunk({}, "stop"), choices: [{ index: 0, delta: {}, finish_reason: "stop", usage: wireUsage(prompt, 5) }] };
  const groq = { ...chatChunk({}, "stop"), x_groq: { id: "req_1", usage: wireUsage(prompt, 5) } };

  it.each([
    ["cumulative in every chunk", [...pieces.map(chunk), { ...chatChunk({}, "stop"), usage: wireUsage(prompt, 5) }]],
    ["on an empty choice behind the finish", [...pieces.map(chunk), chatChunk({}, "stop"), emptied]],
    [
      "in the finishing chunk and behind it",
      [...pieces.map(chunk), { ...chatChunk({}, "stop"), usage: wireUsage(prompt, 5) }, usageChunk(wireUsage(prompt, 5))],
    ],
    ["in a choice", [...pieces.map((content) => chatChunk({ content })), ofChoice]],
    ["in Groq's field", [...pieces.map((content) => chatChunk({ content })), groq]],
  ])("leaves in the last chunk alone, and is charged once: %s", async (_, sent) => {
    for (const include_usage of [false, true]) {
      const chunks = await chunksOf(sse(sent), include_usage ? { stream_options: { include_usage } } : {});
      const last = chunks.pop();

      expect(last).toMatchObject({
        choices: include_usage ? [] : [{ finish_reason: "stop" }],
        usage: { prompt_tokens: 10, completion_tokens: 5 },
      });
      expect(JSON.stringify(chunks)).not.toContain("completion_tokens");
      expect(JSON.stringify([last]).split('completion_tokens"')).toHaveLength(2);
      expect(said(chunks, "content")).toBe("abcde");
      await expectCharged(10n, 5n);
    }
  });
});

describe("chunks that are none", () => {
  it("do not leave: Azure's preamble, and choices without a delta", async () => {
    const preamble = {
      object: "",
      id: "",
      created: 0,
      model: "",
      choices: [],
      prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
    };
    const late = { ...chatChunk({}), choices: [{ index: 0, finish_reason: null, content_filter_offsets: {}, content_filter_results: {} }] };

    const chunks = await chunksOf(
      sse([preamble, chatChunk({ role: "assistant", content: "a" }), late, chatChunk({}, "stop"), usageChunk(wireUsage(10, 5))]),
    );

    expect(chunks.map(({ object, choices }) => [object, choices[0]?.delta])).toEqual([
      ["chat.completion.chunk", { role: "assistant", content: "a" }],
      ["chat.completion.chunk", {}],
      ["chat.completion.chunk", {}],
    ]);
  });
});

async function expectCharged(prompt: bigint, completion: bigint): Promise<void> {
  const { rows } = await booksWith(app, payer, 1);
  expect(rows).toMatchObject([{ costNanocredits: prompt * PROMPT_PRICE + completion * COMPLETION_PRICE, usageSource: "provider" }]);
}
