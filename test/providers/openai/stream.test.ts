import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatChunk, ChatChunkBatch } from "../../../src/formats/openai-chat/stream.js";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { ChatProvider, UpstreamTimeouts } from "../../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../../support/openai-bodies.js";
import { createOpenAiChatProvider } from "../../support/openai-chat.js";
import { bytes, comment, event, flood, json, raw, sse, waitFor } from "../../support/upstream-replies.js";

const TIMEOUTS: UpstreamTimeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };

let upstream: FakeUpstream;
let provider: ChatProvider & { close(): Promise<void> };
beforeEach(async () => {
  upstream = await startFakeUpstream();
  provider = createOpenAiChatProvider({ baseUrl: upstream.baseUrl, apiKey: "vendor-key", timeouts: TIMEOUTS });
});
afterEach(async () => {
  await upstream.close();
  await provider.close();
});

function open(signal = new AbortController().signal, from = provider): Promise<AsyncIterable<ChatChunkBatch>> {
  return from.stream({ upstreamModel: "gpt-mock", body: { messages: [] }, signal });
}

/** The pieces of a stream, and the error at its end. */
async function drain(stream: AsyncIterable<ChatChunkBatch>): Promise<{ chunks: ChatChunk[]; error: unknown }> {
  const chunks: ChatChunk[] = [];
  try {
    for await (const batch of stream) {
      expect(batch.length).toBeGreaterThan(0);
      chunks.push(...batch);
    }
    return { chunks, error: undefined };
  } catch (error) {
    return { chunks, error };
  }
}

function contentOf(chunks: readonly ChatChunk[]): string {
  return chunks.map((chunk) => chunk.object.choices?.[0]?.delta?.content ?? "").join("");
}

function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let openGate = () => {};
  const opened = new Promise<void>((resolve) => {
    openGate = resolve;
  });
  return { open: openGate, opened };
}

describe("a good stream", () => {
  it.each(["lf", "crlf", "cr", "mixed"] as const)("in %s framing is read as chunks with normal bytes", async (framing) => {
    const sent = chatChunks(["Hel", "lo 🎉", " ä"], { usage: wireUsage(7, 3) });
    upstream.replyNext(sse([comment("hello"), ...sent], { framing }));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(chunks.map((chunk) => chunk.object)).toEqual(sent);
    expect(chunks.map((chunk) => Buffer.from(chunk.bytes).toString())).toEqual(sent.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`));
    expect(chunks.at(-1)?.usage).toEqual({ ...NO_USAGE, inputTextTokens: 7, outputTextTokens: 3 });
    expect(chunks.at(-2)?.usage).toBeNull();
  });

  it("is the same when it comes three bytes at a time", async () => {
    const sent = chatChunks(["Hel", "lo 🎉", " ä"]);
    upstream.replyNext(sse(sent, { writeBytes: 3, framing: "crlf" }));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(chunks.map((chunk) => chunk.object)).toEqual(sent);
  });

  it("is handed out as it comes", async () => {
    const second = gate();
    upstream.replyNext(sse([chatChunk({ content: "a" }), waitFor(second.opened), chatChunk({ content: "b" }, "stop")]));

    const iterator = (await open())[Symbol.asyncIterator]();
    const first = await iterator.next();
    second.open();
    const next = await iterator.next();

    expect(contentOf(first.value ?? [])).toBe("a");
    expect(contentOf(next.value ?? [])).toBe("b");
    expect((await iterator.next()).done).toBe(true);
    expect((await iterator.next()).done).toBe(true);
  });

  it("makes one batch of the events that came in one read", async () => {
    const sent = chatChunks(["a", "b", "c"]);
    const all = sent.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
    upstream.replyNext(sse([bytes(`${all}data: [DONE]\n\n`)], { done: false }));

    const iterator = (await open())[Symbol.asyncIterator]();

    expect((await iterator.next()).value).toHaveLength(sent.length);
    expect((await iterator.next()).done).toBe(true);
  });

  it("ends at [DONE] and keeps the connection for the next request", async () => {
    upstream.replyNext(sse([...chatChunks(["a"]), event("[DONE]"), chatChunk({ content: "after the end" })]), sse(chatChunks(["b"])));

    const first = await drain(await open());
    await upstream.requests[0]?.answered;
    // undici takes a connection back a turn of the event loop after its answer has ended; a few turns let that arrive.
    for (let turns = 0; turns < 10; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    const second = await drain(await open());

    expect([contentOf(first.chunks), contentOf(second.chunks)]).toEqual(["a", "b"]);
    expect(upstream.requests.map((request) => request.connection)).toEqual([1, 1]);
  });

  it("may end without [DONE] when every choice was finished", async () => {
    const items = [chatChunk({ content: "a" }), chatChunk({ content: "b" }, null, 1), chatChunk({}, "stop"), chatChunk({}, "length", 1)];
    upstream.replyNext(sse([...items, usageChunk(wireUsage(1, 2))], { done: false }));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(chunks).toHaveLength(5);
  });

  it("may end without the last empty line", async () => {
    upstream.replyNext(sse([chatChunk({ content: "a" }), bytes(`data: ${JSON.stringify(chatChunk({}, "stop"))}`)], { done: false }));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(chunks.at(-1)?.object.choices?.[0]?.finish_reason).toBe("stop");
  });

  it("passes over empty data and objects that are no chunks", async () => {
    upstream.replyNext(sse([event(""), event({ type: "ping" }), event("tick", "ping"), event("[1]", "stats"), ...chatChunks(["a"])]));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(chunks.map((chunk) => chunk.object)).toEqual(chatChunks(["a"]));
  });

  it("writes data that came in several lines as one", async () => {
    const chunk = chatChunk({ role: "assistant", content: "a" }, "stop");
    upstream.replyNext(sse([event(JSON.stringify(chunk, null, 2))]));

    const { chunks } = await drain(await open());

    expect(Buffer.from(chunks[0]?.bytes ?? "").toString()).toBe(`data: ${JSON.stringify(chunk)}\n\n`);
  });

  it("may lack a content type", async () => {
    upstream.replyNext(raw(`data: ${JSON.stringify(chatChunk({ content: "a" }, "stop"))}\n\n`));

    expect(contentOf((await drain(await open())).chunks)).toBe("a");
  });

  it("may hold an event of 20 MB", async () => {
    const content = "x".repeat(20 * 1024 * 1024);
    upstream.replyNext(sse([chatChunk({ content }), chatChunk({}, "stop")]));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(contentOf(chunks) === content).toBe(true);
  });
});

describe("a JSON answer to a stream request", () => {
  it("is read as the chunks of the same answer", async () => {
    const completion = chatCompletion({
      content: null,
      toolCalls: [
        { id: "a", name: "one", arguments: "{}" },
        { id: "b", name: "two", arguments: "{}" },
      ],
      usage: wireUsage(7, 3),
    });
    upstream.replyNext(json(completion));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(chunks.map((chunk) => chunk.object.object)).toEqual(Array(3).fill("chat.completion.chunk"));
    expect(chunks[0]?.object.choices?.[0]).toMatchObject({
      index: 0,
      delta: {
        role: "assistant",
        tool_calls: [
          { index: 0, id: "a" },
          { index: 1, id: "b" },
        ],
      },
      finish_reason: null,
    });
    expect(chunks[1]?.object.choices).toEqual([{ index: 0, delta: {}, finish_reason: "tool_calls" }]);
    expect(chunks[2]).toMatchObject({ object: { choices: [], usage: { prompt_tokens: 7 } }, usage: { inputTextTokens: 7 } });
    for (const chunk of chunks) expect(Buffer.from(chunk.bytes).toString()).toBe(`data: ${JSON.stringify(chunk.object)}\n\n`);
  });

  it("is an error when it holds one, and invalid when it is no completion", async () => {
    upstream.replyNext(json({ error: { code: 503, message: "Busy." } }), json({ choices: "x" }));

    await expect(open()).rejects.toMatchObject({ kind: "status", status: 503 });
    await expect(open()).rejects.toMatchObject({ kind: "invalid-response" });
  });

  it("is invalid when it is a page", async () => {
    upstream.replyNext(raw("<html></html>", { headers: { "content-type": "text/html" } }));

    await expect(open()).rejects.toMatchObject({ kind: "invalid-response" });
  });
});

describe("a broken stream", () => {
  const begun = [chatChunk({ role: "assistant", content: "" }), chatChunk({ content: "a" })];

  it("is cut when it ends without [DONE] and a choice is not finished, or without content", async () => {
    upstream.replyNext(
      sse(begun, { done: false }),
      sse([...begun, chatChunk({}, "stop"), chatChunk({ content: "b" }, null, 1)], { done: false }),
      sse([], { done: false }),
      sse([...begun, bytes('data: {"choices":[{"index":0,"fin')], { done: false }),
    );

    for (const expected of ["a", "ab", "", "a"]) {
      const { chunks, error } = await drain(await open());

      expect(contentOf(chunks)).toBe(expected);
      expect(error).toMatchObject({ kind: "cut" });
    }
  });

  it("has ended early when the connection breaks, after the earlier pieces", async () => {
    upstream.replyNext(sse(begun, { end: "cut" }));

    const { chunks, error } = await drain(await open());

    expect(contentOf(chunks)).toBe("a");
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ kind: "cut", message: expect.stringContaining("the connection broke") });
  });

  it.each([
    ["an error object", event({ error: { code: 429, message: "Slow down, vendor-key." } })],
    [
      "an error beside choices",
      event({ choices: [{ index: 0, delta: {}, finish_reason: "error" }], error: { code: 429, message: "Slow down, vendor-key." } }),
    ],
    ["an error event", event({ error: { code: 429, message: "Slow down, vendor-key." } }, "error")],
    ["an error event with the error itself", event({ code: 429, message: "Slow down, vendor-key." }, "error")],
  ])("is the upstream's error when it holds %s", async (_name, step) => {
    upstream.replyNext(sse([...begun, step, ...chatChunks(["never"])]));

    const { chunks, error } = await drain(await open());

    expect(contentOf(chunks)).toBe("a");
    expect(error).toMatchObject({ kind: "status", status: 429, upstreamMessage: "Slow down, [redacted]." });
  });

  it("is the upstream's error when an error event holds a text", async () => {
    upstream.replyNext(sse([...begun, event("overloaded", "error")]));

    expect((await drain(await open())).error).toMatchObject({ kind: "status", status: 502, upstreamMessage: "overloaded" });
  });

  it.each([
    ["data that is no JSON", event("hello")],
    ["data that is no object", event("[1]")],
    ["choices that are no list", event({ choices: 5 })],
    ["choices that cannot be read", event({ choices: [null] })],
    ["deltas that cannot be read", event({ choices: [{ index: 0, delta: "x" }] })],
    ["tool calls that cannot be read", event({ choices: [{ index: 0, delta: { tool_calls: 5 } }] })],
    ["data nested beyond any answer", event(`{"choices":[],"x":${"[".repeat(500)}${"]".repeat(500)}}`)],
  ])("is invalid when it holds %s, and the connection is closed", async (_name, step) => {
    upstream.replyNext(sse([...begun, step], { end: "hang" }));

    const { chunks, error } = await drain(await open());
    await (await upstream.nextRequest()).closedByClient;

    expect(contentOf(chunks)).toBe("a");
    expect(error).toMatchObject({ kind: "invalid-response" });
  });

  it("is invalid when a line or an event never ends", async () => {
    upstream.replyNext(
      flood("x".repeat(65_536), { headers: { "content-type": "text/event-stream" } }),
      flood(`data: ${"x".repeat(1_000)}\n`.repeat(64), { headers: { "content-type": "text/event-stream" } }),
    );

    for (let reply = 0; reply < 2; reply += 1) {
      const { error } = await drain(await open());
      const request = await upstream.nextRequest();
      await request.closedByClient;

      expect(error).toMatchObject({ kind: "invalid-response" });
      expect(request.bytesSent()).toBeLessThan(128 * 1024 * 1024);
    }
  });

  it.each([
    ["comments", ":\n"],
    ["comments that end in CR", ":\r"],
    ["empty lines", "\n"],
    ["fields without data", "id: 1\n"],
    ["events without a name or data", "event: ping\n\n"],
    ["events without data", "data:\n\n"],
    ["events that are no chunks", 'data: {"type":"ping"}\n\n'],
  ])("is invalid when %s go on and on, after the earlier pieces", async (_what, unit) => {
    const block = unit.repeat(Math.ceil(65_536 / unit.length));
    upstream.replyNext(sse([...begun, ...Array(64).fill(bytes(block))], { end: "hang" }));

    const { chunks, error } = await drain(await open());
    await (await upstream.nextRequest()).closedByClient;

    expect(contentOf(chunks)).toBe("a");
    expect(error).toMatchObject({ kind: "invalid-response", message: expect.stringContaining("1048576 bytes without content") });
  });

  it.each([
    ["chunks without choices", { choices: [] }],
    ["reports of usage alone", { choices: [], usage: wireUsage(10, 0) }],
  ])("is ended when it goes on with %s", async (_what, empty) => {
    const flood = bytes(`data: ${JSON.stringify(empty)}\n\n`.repeat(5_000));
    upstream.replyNext(sse([...begun, flood], { end: "hang" }));

    const { chunks, error } = await drain(await open());
    await (await upstream.nextRequest()).closedByClient;

    expect(contentOf(chunks)).toBe("a");
    expect(error).toMatchObject({ kind: "invalid-response", message: expect.stringContaining("1048576 bytes without content") });
  });

  it("may say nothing for a long time in many comments, as often as it likes", async () => {
    const processing = bytes(": OPENROUTER PROCESSING\n\n".repeat(40_000));
    const sent = chatChunks(["a", "b", "c"]);
    upstream.replyNext(sse(sent.flatMap((chunk) => [processing, event(chunk)])));

    const { chunks, error } = await drain(await open());

    expect(error).toBeUndefined();
    expect(contentOf(chunks)).toBe("abc");
  });

  it("times out when it falls silent, after the earlier pieces", async () => {
    const hasty = createOpenAiChatProvider({ baseUrl: upstream.baseUrl, apiKey: null, timeouts: { ...TIMEOUTS, idleMs: 300 } });
    upstream.replyNext(sse(begun, { end: "hang" }));

    const { chunks, error } = await drain(await open(undefined, hasty));

    expect(contentOf(chunks)).toBe("a");
    expect(error).toMatchObject({ kind: "timeout" });
    await hasty.close();
  });

  it("times out in all although events keep coming", async () => {
    const hasty = createOpenAiChatProvider({ baseUrl: upstream.baseUrl, apiKey: null, timeouts: { ...TIMEOUTS, totalMs: 3_000 } });
    upstream.replyNext(
      sse(
        Array.from({ length: 10_000 }, () => chatChunk({ content: "a" })),
        { paceMs: 1 },
      ),
    );

    const { chunks, error } = await drain(await open(undefined, hasty));

    expect(chunks.length).toBeGreaterThan(0);
    expect(error).toMatchObject({ kind: "timeout" });
    await hasty.close();
  });
});

describe("leaving a stream", () => {
  it("closes the upstream when the loop is left", async () => {
    upstream.replyNext(sse(chatChunks(["a", "b"]), { end: "hang" }));

    for await (const batch of await open()) {
      expect(batch.length).toBeGreaterThan(0);
      break;
    }

    await (await upstream.nextRequest()).closedByClient;
  });

  it("closes the upstream and ends a pull that waits when return is called", async () => {
    upstream.replyNext(sse([chatChunk({ content: "a" })], { end: "hang" }));
    const iterator = (await open())[Symbol.asyncIterator]();
    await iterator.next();

    const waiting = iterator.next();
    await iterator.return?.();

    expect((await waiting).done).toBe(true);
    expect((await iterator.next()).done).toBe(true);
    await (await upstream.nextRequest()).closedByClient;
  });

  it("closes the upstream and throws the signal's reason when that is aborted while a pull waits", async () => {
    const controller = new AbortController();
    const reason = new Error("gone");
    upstream.replyNext(sse([chatChunk({ content: "a" })], { end: "hang" }));
    const iterator = (await open(controller.signal))[Symbol.asyncIterator]();
    await iterator.next();

    const waiting = iterator.next();
    controller.abort(reason);

    await expect(waiting).rejects.toBe(reason);
    await (await upstream.nextRequest()).closedByClient;
  });

  it("closes the upstream when the signal is aborted between reads", async () => {
    const controller = new AbortController();
    upstream.replyNext(sse([chatChunk({ content: "a" })], { end: "hang" }));
    await open(controller.signal);

    const abortedAt = performance.now();
    controller.abort();

    const request = await upstream.nextRequest();
    expect(await request.closedByClient).toBeGreaterThanOrEqual(abortedAt);
  });
});

it("takes only a little from the upstream without a reader", async () => {
  const block = `data: ${JSON.stringify(chatChunk({ content: "x".repeat(1_000) }))}\n\n`.repeat(50);
  upstream.replyNext(flood(block, { headers: { "content-type": "text/event-stream" } }));
  const iterator = (await open())[Symbol.asyncIterator]();
  await iterator.next();
  const request = await upstream.nextRequest();

  // The upstream writes as fast as it can; once nothing more is taken for a while, everything that buffers has filled up.
  let taken = -1;
  while (taken !== request.bytesSent()) {
    taken = request.bytesSent();
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  await iterator.return?.();

  expect(taken).toBeLessThan(32 * 1024 * 1024);
});
