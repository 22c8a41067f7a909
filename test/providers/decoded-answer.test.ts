/** Answers that are compressed although `identity` was asked for. */
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatProvider } from "../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { chatChunks, chatCompletion, errorBody, wireUsage } from "../support/openai-bodies.js";
import { createOpenAiChatProvider } from "../support/openai-chat.js";
import { bytes, raw, sse } from "../support/upstream-replies.js";

const ENCODINGS = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
] as const;
const POOL = { connectionsMax: 4, waitingMax: 4, keepAliveMs: 1_000 };
/** Of a whole answer, in bytes. */
const ANSWER_BYTES_MAX = 1_000_000;

let upstream: FakeUpstream;
let chat: ChatProvider & { close(): Promise<void> };
beforeEach(async () => {
  upstream = await startFakeUpstream();
  const bounds = { pool: POOL, answerBytesMax: ANSWER_BYTES_MAX, streamBytesMax: ANSWER_BYTES_MAX };
  const timeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };
  chat = createOpenAiChatProvider({ baseUrl: upstream.baseUrl, apiKey: null, timeouts, bounds });
});
afterEach(async () => {
  await upstream.close();
  await chat.close();
});

const call = () => ({ upstreamModel: "m", body: { messages: [] }, signal: new AbortController().signal });
const headers = (encoding: string, type = "application/json") => ({ "content-type": type, "content-encoding": encoding });

describe.each(ENCODINGS)("in %s", (encoding, compress) => {
  it("a refusal keeps its status and its message", async () => {
    const body = compress(Buffer.from(JSON.stringify(errorBody("Too hot.", { param: "temperature" }))));
    upstream.replyNext(raw(body, { status: 400, headers: headers(encoding) }), raw(body, { status: 400, headers: headers(encoding) }));

    const expected = { kind: "status", status: 400, upstreamMessage: "Too hot.", upstreamParam: "temperature" };
    await expect(chat.complete(call())).rejects.toMatchObject(expected);
    await expect(chat.stream(call())).rejects.toMatchObject(expected);
  });

  it("a whole answer and a stream are read, also byte by byte", async () => {
    const document = compress(Buffer.from(JSON.stringify(chatCompletion({ content: "Hello" }))));
    const events = Buffer.from(
      chatChunks(["Hel", "lo"], { usage: wireUsage(7, 3) })
        .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
        .join(""),
    );
    const stream = sse([bytes(compress(events))], { writeBytes: 1, done: false, headers: headers(encoding, "text/event-stream") });
    upstream.replyNext(raw(document, { headers: headers(encoding) }), stream);

    const { completion } = await chat.complete(call());
    const chunks = [];
    for await (const batch of await chat.stream(call())) chunks.push(...batch);

    expect(completion.choices?.[0]?.message?.content).toBe("Hello");
    expect(chunks.map(({ object }) => object.choices?.[0]?.delta?.content ?? "").join("")).toBe("Hello");
  });

  it("an answer is bounded by its decompressed bytes, and a refusal keeps its status", async () => {
    const bomb = compress(Buffer.alloc(64 * 1024 * 1024, " "));
    const replies = [200, 200, 400].map((status) => raw(bomb, { status, headers: headers(encoding) }));
    upstream.replyNext(...replies);

    await expect(chat.complete(call())).rejects.toMatchObject({
      message: `The upstream's answer is larger than ${ANSWER_BYTES_MAX} bytes.`,
    });
    await expect(chat.stream(call())).rejects.toMatchObject({ kind: "invalid-response" });
    await expect(chat.complete(call())).rejects.toMatchObject({ kind: "status", status: 400, upstreamMessage: undefined });
  });

  it("an answer that is cut is an error, and a refusal keeps its status", async () => {
    const body = compress(Buffer.from(JSON.stringify(chatCompletion({ content: "Hello" })))).subarray(0, 20);
    upstream.replyNext(raw(body, { headers: headers(encoding) }), raw(body, { status: 429, headers: headers(encoding) }));

    await expect(chat.complete(call())).rejects.toMatchObject({ kind: "invalid-response" });
    await expect(chat.complete(call())).rejects.toMatchObject({ kind: "status", status: 429 });
  });
});

describe("in an unknown encoding", () => {
  it("an answer is refused, and a refusal keeps its status", async () => {
    upstream.replyNext(raw("x", { headers: headers("rot13") }), raw("x", { status: 429, headers: headers("rot13") }));

    await expect(chat.complete(call())).rejects.toMatchObject({
      kind: "invalid-response",
      message: expect.stringContaining("cannot be decoded"),
    });
    await expect(chat.complete(call())).rejects.toMatchObject({ kind: "status", status: 429 });
  });
});
