/** Answers in another form than the requested one, or under a wrong label: read by their first bytes. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { OpenAiClient } from "../../../src/providers/openai/client.js";
import { ResponsesChatProvider } from "../../../src/providers/openai/responses.js";
import type { ChatProvider } from "../../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../../support/openai-bodies.js";
import { createOpenAiChatProvider } from "../../support/openai-chat.js";
import { responseEvents, responseObject, textItem } from "../../support/responses-bodies.js";
import { bytes, event, type Reply, raw, sse } from "../../support/upstream-replies.js";

const TIMEOUTS = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };
const POOL = { connectionsMax: 4, waitingMax: 4, keepAliveMs: 1_000 };
/** Of a whole answer, in bytes. */
const ANSWER_BYTES_MAX = 20_000;

let upstream: FakeUpstream;
let chat: ChatProvider & { close(): Promise<void> };
let responses: { readonly provider: ChatProvider; readonly client: OpenAiClient };
beforeEach(async () => {
  upstream = await startFakeUpstream();
  const bounds = { pool: POOL, answerBytesMax: ANSWER_BYTES_MAX, streamBytesMax: 1_000_000 };
  chat = createOpenAiChatProvider({ baseUrl: upstream.baseUrl, apiKey: null, timeouts: TIMEOUTS, bounds });
  const client = new OpenAiClient({ baseUrl: `${upstream.baseUrl}/responses`, isExact: true, apiKey: null, timeouts: TIMEOUTS });
  responses = { client, provider: new ResponsesChatProvider(client) };
});
afterEach(async () => {
  await upstream.close();
  await Promise.all([chat.close(), responses.client.close()]);
});

const call = () => ({ upstreamModel: "m", body: { messages: [{ role: "user", content: "Hi" }] }, signal: new AbortController().signal });

async function streamed(provider: ChatProvider, reply: Reply): Promise<ChatChunk[]> {
  upstream.replyNext(reply);
  const chunks: ChatChunk[] = [];
  for await (const batch of await provider.stream(call())) chunks.push(...batch);
  return chunks;
}

function whole(provider: ChatProvider, reply: Reply) {
  upstream.replyNext(reply);
  return provider.complete(call());
}

function textIn(chunks: readonly ChatChunk[]): string {
  return chunks.map(({ object }) => object.choices?.[0]?.delta?.content ?? "").join("");
}

function eventText(documents: readonly object[]): string {
  return [...documents.map((document) => JSON.stringify(document)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
}

function labelled(body: string, type: string | null): Reply {
  return raw(body, { headers: type === null ? {} : { "content-type": type } });
}

const LABELS = ["text/event-stream", "application/json", "text/plain; charset=utf-8", "application/octet-stream", null];
const STREAM = eventText(chatChunks(["Hel", "lo"], { usage: wireUsage(7, 3) }));
const DOCUMENT = JSON.stringify(chatCompletion({ content: "Hello", usage: wireUsage(7, 3) }));
const RESPONSE = responseObject([textItem("Hello")]);
const RESPONSE_STREAM = responseEvents(RESPONSE)
  .map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`)
  .join("");

describe.each(LABELS)("an answer labelled %s", (type) => {
  it.each([
    ["a stream", STREAM],
    ["a stream behind a comment", `: hello\n\n${STREAM}`],
    ["a stream behind empty lines", `\r\n\n${STREAM}`],
    ["JSON", DOCUMENT],
    ["JSON behind blanks", `\n  ${DOCUMENT}\n`],
  ])("is read by its first bytes: %s", async (_what, body) => {
    const chunks = await streamed(chat, labelled(body, type));
    const answer = await whole(chat, labelled(body, type));

    expect(textIn(chunks)).toBe("Hello");
    expect(chunks.at(-1)?.usage).toMatchObject({ inputTextTokens: 7, outputTextTokens: 3 });
    expect(answer.completion).toMatchObject({
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: wireUsage(7, 3),
    });
    expect(answer.usage).toMatchObject({ inputTextTokens: 7, outputTextTokens: 3 });
    expect(JSON.parse(Buffer.from(answer.bytes).toString())).toEqual(answer.completion);
  });

  it.each([
    ["a stream", RESPONSE_STREAM],
    ["JSON", JSON.stringify(RESPONSE)],
  ])("of the Responses format is read by its first bytes: %s", async (_what, body) => {
    const chunks = await streamed(responses.provider, labelled(body, type));
    const answer = await whole(responses.provider, labelled(body, type));

    expect(textIn(chunks)).toBe("Hello");
    expect(answer.completion.choices?.[0]).toMatchObject({ message: { content: "Hello" }, finish_reason: "stop" });
    expect(answer.usage).not.toBeNull();
    expect(chunks.at(-1)?.usage).toEqual(answer.usage);
  });
});

describe("an answer in pieces", () => {
  it.each([
    ["a stream", STREAM],
    ["a stream with a byte order mark", `\uFEFF${STREAM}`],
    ["JSON", DOCUMENT],
  ])("of one byte is read by its first bytes: %s", async (_what, body) => {
    const reply = () => sse([bytes(body)], { writeBytes: 1, done: false });

    expect(textIn(await streamed(chat, reply()))).toBe("Hello");
    expect((await whole(chat, reply())).completion.choices?.[0]?.message?.content).toBe("Hello");
  });
});

describe("a stream where JSON was asked for", () => {
  it("is put together with everything that was said", async () => {
    const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "m", service_tier: "default" };
    const say = (delta: object, more: object = {}, index = 0) => ({ ...head, choices: [{ index, delta, finish_reason: null, ...more }] });
    const cited = (url: string) => ({ annotations: [{ type: "url_citation", url_citation: { url } }] });
    const logprobs = (token: string) => ({
      logprobs: { content: [{ token, logprob: -0.1, bytes: null, top_logprobs: [] }], refusal: null },
    });
    const sent = [
      say({ role: "assistant", content: "" }),
      say({ content: [{ type: "thinking", thinking: [{ type: "text", text: "h" }] }] }),
      say({ reasoning_content: "mm", reasoning_details: [{ type: "reasoning.text", index: 0, text: "h" }] }),
      say({ reasoning_details: [{ type: "reasoning.text", index: 0, text: "mm", signature: "s" }] }),
      say({ content: "Hel" }, logprobs("Hel")),
      say({ content: "lo" }, logprobs("lo")),
      say(cited("https://a.example")),
      say(cited("https://b.example")),
      say({ tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "one", arguments: '{"a"' } }] }),
      say({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
      say({ tool_calls: [{ index: 0, id: "call_b", function: { name: "two", arguments: { b: 2 } } }] }),
      say({ refusal: "I " }, {}, 1),
      say({ refusal: "cannot." }, { finish_reason: "content_filter" }, 1),
      say({ audio: { id: "a", data: "AA", transcript: "x" } }, { finish_reason: null }, 2),
      say({ audio: { data: "BB", transcript: "y", expires_at: 5 } }, { finish_reason: "stop" }, 2),
      say({}, { finish_reason: "tool_calls" }),
      { ...usageChunk(wireUsage(10, 1)), choices: [] },
      { ...usageChunk(wireUsage(10, 40)), choices: [] },
    ];

    const { completion, usage } = await whole(chat, sse(sent));

    expect(usage).toMatchObject({ inputTextTokens: 10, outputTextTokens: 40 });
    expect(completion).toEqual({
      id: "chatcmpl-fake",
      object: "chat.completion",
      created: 1_700_000_000,
      model: "gpt-mock",
      service_tier: "default",
      usage: wireUsage(10, 40),
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hello",
            reasoning_content: "hmm",
            reasoning_details: [{ type: "reasoning.text", index: 0, text: "hmm", signature: "s" }],
            annotations: [...cited("https://a.example").annotations, ...cited("https://b.example").annotations],
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "one", arguments: '{"a":1}' } },
              { id: "call_b", type: "function", function: { name: "two", arguments: '{"b":2}' } },
            ],
          },
          logprobs: { content: [...logprobs("Hel").logprobs.content, ...logprobs("lo").logprobs.content], refusal: null },
          finish_reason: "tool_calls",
        },
        { index: 1, message: { role: "assistant", content: "", refusal: "I cannot." }, logprobs: null, finish_reason: "content_filter" },
        {
          index: 2,
          message: { role: "assistant", content: "", audio: { id: "a", data: "AABB", transcript: "xy", expires_at: 5 } },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
    });
  });

  it("has content null with calls alone", async () => {
    const calls = [{ index: 0, id: "call_a", type: "function", function: { name: "one", arguments: "{}" } }];

    const { completion } = await whole(chat, sse([chatChunk({ role: "assistant", tool_calls: calls }), chatChunk({}, "tool_calls")]));

    expect(completion.choices?.[0]?.message).toMatchObject({ content: null, tool_calls: [{ id: "call_a" }] });
  });

  it("fails as a stream does: cut, with an error in it, without an end", async () => {
    const begun = [chatChunk({ content: "a" })];

    await expect(whole(chat, sse(begun, { done: false }))).rejects.toMatchObject({ kind: "cut" });
    await expect(whole(chat, sse(begun, { end: "cut" }))).rejects.toMatchObject({ kind: "cut" });
    await expect(whole(chat, sse([...begun, event({ error: { code: 429, message: "x" } })]))).rejects.toMatchObject({ status: 429 });
    await expect(whole(chat, labelled(eventText(begun), "application/json"))).resolves.toMatchObject({
      completion: { choices: [{ message: { content: "a" }, finish_reason: "stop" }] },
    });
  });

  it("ends at [DONE], though the connection stays open", async () => {
    const { completion } = await whole(chat, sse([chatChunk({ content: "a" }, "stop"), event("[DONE]")], { end: "hang" }));

    expect(completion.choices?.[0]?.message?.content).toBe("a");
    await (await upstream.nextRequest()).closedByClient;
  });

  it("is bounded as a whole answer is", async () => {
    const pieces = (count: number) => sse(chatChunks(Array.from({ length: count }, () => "x".repeat(1_000))), { end: "complete" });

    const answer = await whole(chat, pieces(19));
    expect(String(answer.completion.choices?.[0]?.message?.content)).toHaveLength(19_000);
    await expect(whole(chat, pieces(20))).rejects.toMatchObject({
      kind: "invalid-response",
      message: `The upstream's answer is larger than ${ANSWER_BYTES_MAX} bytes.`,
    });
  });

  it("is bounded where JSON comes for a stream", async () => {
    const document = (length: number) => JSON.stringify(chatCompletion({ content: "x".repeat(length) }));
    const room = ANSWER_BYTES_MAX - document(0).length;

    expect(textIn(await streamed(chat, labelled(document(room), "text/event-stream")))).toHaveLength(room);
    await expect(streamed(chat, labelled(document(room + 1), "text/event-stream"))).rejects.toMatchObject({
      message: `The upstream's answer is larger than ${ANSWER_BYTES_MAX} bytes.`,
    });
  });
});
