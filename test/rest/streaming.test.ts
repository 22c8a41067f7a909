import { once } from "node:events";
import { connect, type Socket } from "node:net";
import OpenAI, { APIError } from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AppError } from "../../src/errors.js";
import { SLOW_READER_TIMEOUT_MS, SSE_KEEP_ALIVE_MS, STREAM_HEAD_WAIT_MS } from "../../src/limits.js";
import { sendChatStream } from "../../src/rest/streaming.js";
import type { ChatCompletionStream } from "../../src/services/generation/chat/stream.js";
import type { ChatStreamBatch } from "../../src/services/generation/chat/stream-tail.js";
import { serve, type TestServer } from "./serve.js";

const OPENED = { model: "acme/chat", modelUsed: "acme/chat" };

/** What the route streams next, and the signal of the request that it streams to. */
let source: () => ChatCompletionStream;
let lastSignal: AbortSignal;
let server: TestServer;

beforeAll(async () => {
  server = await serve((route, endpoint) => {
    route("/v1/chat/completions", {
      POST: endpoint({
        id: null,
        isPublic: true,
        handler: (ctx, { exchange }) => {
          lastSignal = ctx.signal;
          return sendChatStream(exchange, ctx, source());
        },
      }),
    });
  });
});
afterAll(() => server.close());
afterEach(() => {
  vi.useRealTimers();
});
beforeEach(() => {
  source = () => streamOf(batches("a"));
});

function batch(content: string): ChatStreamBatch {
  const chunk = { id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] };
  return { chunks: [chunk], bytes: Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`) };
}

async function* batches(...contents: string[]): AsyncGenerator<ChatStreamBatch> {
  for (const content of contents) yield batch(content);
}

function streamOf(
  events: AsyncGenerator<ChatStreamBatch>,
  opened: ChatCompletionStream["opened"] = Promise.resolve(OPENED),
): ChatCompletionStream {
  return { generationId: "gen-1", opened, events, receipt: () => null, timing: () => ({ gatewayMs: 1, upstreamMs: 2 }) };
}

/** Fails as its opening does. */
async function* afterOpening(opened: Promise<unknown>, onEnd: () => void = () => {}): AsyncGenerator<ChatStreamBatch> {
  try {
    await opened;
    yield batch("a");
  } finally {
    onEnd();
  }
}

function deferred<Value>() {
  let resolve: (value: Value) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<Value>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  return { promise, resolve, reject };
}

/** Lets the event loop run the callbacks that are due. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What a socket says, up to and including a text. */
function textReader(socket: Socket) {
  let text = "";
  let wake = () => {};
  socket.on("data", (bytes) => {
    text += bytes;
    wake();
  });
  return {
    until: async (mark: string): Promise<string> => {
      while (!text.includes(mark)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const end = text.indexOf(mark) + mark.length;
      const read = text.slice(0, end);
      text = text.slice(end);
      return read;
    },
  };
}

function post(): Promise<Response> {
  return fetch(`${server.baseUrl}/v1/chat/completions`, { method: "POST" });
}

/** Sends the request on a socket that reads nothing by itself. */
async function postRaw(): Promise<Socket> {
  const socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  return socket;
}

function openai() {
  return new OpenAI({ apiKey: "sk_any", baseURL: `${server.baseUrl}/v1`, maxRetries: 0 });
}

function streamedBy(client: OpenAI) {
  return client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }], stream: true });
}

describe("an event stream", () => {
  it("begins with the headers of an event stream and ends with [DONE]", async () => {
    source = () => streamOf(batches("a", "b"));

    const response = await post();

    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "x-generation-id": "gen-1",
      "x-model-used": "acme/chat",
      "access-control-allow-origin": "*",
    });
    expect(response.headers.has("x-fallback")).toBe(false);
    expect(await response.text()).toBe(`${batch("a").bytes}${batch("b").bytes}data: [DONE]\n\n`);
  });

  it("names the fallback that serves", async () => {
    source = () => streamOf(batches("a"), Promise.resolve({ model: "acme/chat", modelUsed: "acme/other" }));

    const response = await post();

    expect(response.headers.get("x-model-used")).toBe("acme/other");
    expect(response.headers.get("x-fallback")).toBe("acme/other");
    await response.text();
  });

  it("sends the head before the first event when that is late", async () => {
    const first = deferred<void>();
    async function* late() {
      await first.promise;
      yield batch("a");
    }
    source = () => streamOf(late());

    const response = await post();
    first.resolve();

    expect(await response.text()).toContain("[DONE]");
  });

  it("sends the last event and [DONE] together", async () => {
    const socket = await postRaw();
    const pieces: string[] = [];
    const held = deferred<void>();
    async function* two() {
      yield batch("first");
      await held.promise;
      yield batch("last");
    }
    source = () => streamOf(two());

    for await (const piece of socket) {
      pieces.push(String(piece));
      if (String(piece).includes("first")) held.resolve();
      if (String(piece).includes("[DONE]")) break;
    }

    expect(pieces.at(-1)).toContain("last");
    expect(pieces.at(-1)).toContain("[DONE]");
  });

  it("sends an event larger than a socket takes at once, whole", async () => {
    const large = "x".repeat(5 * 1024 * 1024);
    source = () => streamOf(batches(large));

    const text = await (await post()).text();

    expect(text).toBe(`${batch(large).bytes}data: [DONE]\n\n`);
  });
});

describe("a stream that fails", () => {
  it("keeps the error's own status when nothing has been sent", async () => {
    source = () => {
      const opened = Promise.reject(new AppError("INSUFFICIENT_BALANCE", "The balance does not cover it."));
      return streamOf(afterOpening(opened), opened);
    };

    const response = await post();

    expect(response.status).toBe(402);
    expect(await response.json()).toMatchObject({ error: { code: "INSUFFICIENT_BALANCE" } });
  });

  it("reports it in an error event and sends no [DONE]", async () => {
    async function* cut() {
      yield batch("a");
      throw new AppError("UPSTREAM_ERROR", "The upstream cut the stream.", { isFinal: true });
    }
    source = () => streamOf(cut());

    const response = await post();
    const text = await response.text();

    expect(text).not.toContain("[DONE]");
    const [, event = ""] = text.split(String(batch("a").bytes));
    expect(event).toMatch(/^data: \{.*\}\n\n$/);
    expect(JSON.parse(event.slice(event.indexOf("{")))).toEqual({
      error: {
        code: "UPSTREAM_ERROR",
        message: "The upstream cut the stream.",
        type: "api_error",
        param: null,
        requestId: response.headers.get("x-request-id"),
        timestamp: expect.any(String),
      },
    });
  });

  it("throws an APIError in the official OpenAI client, after the chunks that came before", async () => {
    async function* cut() {
      yield batch("a");
      throw new AppError("UPSTREAM_ERROR", "The upstream cut the stream.", { isFinal: true });
    }
    source = () => streamOf(cut());
    const contents: unknown[] = [];

    const reading = (async () => {
      for await (const chunk of await streamedBy(openai())) contents.push(chunk.choices[0]?.delta.content);
    })();

    await expect(reading).rejects.toBeInstanceOf(APIError);
    await expect(reading).rejects.toMatchObject({ code: "UPSTREAM_ERROR", message: "The upstream cut the stream.", type: "api_error" });
    expect(contents).toEqual(["a"]);
  });

  it("hides an unknown error, and logs it", async () => {
    async function* broken() {
      yield batch("a");
      throw new Error("hunter2");
    }
    source = () => streamOf(broken());
    const before = server.logged.length;

    const text = await (await post()).text();

    expect(text).toContain("INTERNAL_ERROR");
    expect(text).not.toContain("hunter2");
    expect(server.logged.slice(before)).toMatchObject([{ err: { message: "hunter2" }, route: "/v1/chat/completions" }]);
  });
});

describe("a caller that leaves", () => {
  it("aborts the request's signal and ends the generation at once", async () => {
    const ended = deferred<string>();
    const next = deferred<void>();
    async function* endless() {
      try {
        yield batch("a");
        lastSignal.addEventListener("abort", () => next.resolve());
        await next.promise;
        yield batch("never read");
      } finally {
        ended.resolve("ended");
      }
    }
    source = () => streamOf(endless());

    const stream = await streamedBy(openai());
    for await (const _chunk of stream) break;

    expect(await ended.promise).toBe("ended");
    expect(lastSignal.aborted).toBe(true);
  });

  it("ends a generation that waits for it to read", async () => {
    const ended = deferred<string>();
    async function* flood() {
      try {
        for (;;) yield batch("x".repeat(60_000));
      } finally {
        ended.resolve("ended");
      }
    }
    source = () => streamOf(flood());
    const socket = await postRaw();
    await once(socket, "readable");

    socket.destroy();

    expect(await ended.promise).toBe("ended");
  });

  it("ends a generation that has not opened yet, and logs nothing", async () => {
    const ended = deferred<string>();
    const asked = deferred<void>();
    const before = server.logged.length;
    source = () => {
      const opened = new Promise<never>((_, reject) => {
        lastSignal.addEventListener("abort", () => reject(lastSignal.reason));
      });
      asked.resolve();
      return streamOf(
        afterOpening(opened, () => ended.resolve("ended")),
        opened,
      );
    };
    const socket = await postRaw();
    await asked.promise;

    socket.destroy();

    expect(await ended.promise).toBe("ended");
    expect(server.logged.slice(before)).toEqual([]);
  });
});

describe("a caller that reads slowly", () => {
  it("is not written to faster than it reads, and gets everything", async () => {
    let produced = 0;
    const total = 400;
    async function* counted() {
      for (; produced < total; produced += 1) yield batch("x".repeat(60_000));
    }
    source = () => streamOf(counted());
    const socket = await postRaw();
    await once(socket, "readable");
    const readAhead = produced;

    let bytes = 0;
    let tail = "";
    for await (const piece of socket) {
      bytes += piece.length;
      tail = String(piece.subarray(-100));
      if (tail.includes("[DONE]")) break;
    }

    expect(readAhead).toBeLessThan(total);
    expect(produced).toBe(total);
    expect(bytes).toBeGreaterThan(60_000 * total);
    expect(tail).toContain("data: [DONE]\n\n");
  });

  it("is hung up on when it takes nothing for the time allowed", async () => {
    const ended = deferred<string>();
    async function* flood() {
      try {
        for (;;) yield batch("x".repeat(60_000));
      } finally {
        ended.resolve("ended");
      }
    }
    source = () => streamOf(flood());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const socket = await postRaw();
    socket.pause();
    // One timer for the comment line, the other for the reader's patience.
    while (vi.getTimerCount() < 2) await turn();

    vi.advanceTimersByTime(SLOW_READER_TIMEOUT_MS);

    expect(await ended.promise).toBe("ended");
    expect(lastSignal.aborted).toBe(true);
    socket.destroy();
  });
});

describe("a stream that is silent", () => {
  it("gets a comment line after each time of silence, which a client does not see", async () => {
    const more = deferred<void>();
    async function* pausing() {
      yield batch("a");
      await more.promise;
      yield batch("b");
    }
    source = () => streamOf(pausing());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const socket = await postRaw();
    const reader = textReader(socket);
    await reader.until('"content":"a"');

    vi.advanceTimersByTime(SSE_KEEP_ALIVE_MS);
    await reader.until(": keep-alive\n\n");
    vi.advanceTimersByTime(SSE_KEEP_ALIVE_MS - 1);
    more.resolve();
    const rest = await reader.until("[DONE]");

    expect(rest).not.toContain("keep-alive");
    expect(vi.getTimerCount()).toBe(0);
    socket.destroy();
  });

  it("begins before its model is known when the upstream takes long, and reports a late failure in the stream", async () => {
    const opened = deferred<never>();
    source = () => streamOf(afterOpening(opened.promise), opened.promise);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const socket = await postRaw();
    const reader = textReader(socket);
    while (vi.getTimerCount() < 1) await turn();

    vi.advanceTimersByTime(STREAM_HEAD_WAIT_MS);
    const head = await reader.until("\r\n\r\n");
    opened.reject(new AppError("INSUFFICIENT_BALANCE", "The balance does not cover it."));
    const rest = await reader.until("0\r\n\r\n");

    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    expect(head).toContain("X-Generation-Id: gen-1");
    expect(head).not.toContain("X-Model-Used");
    expect(rest).toMatch(/^[0-9a-f]+\r\ndata: \{"error":/);
    expect(rest).toContain("INSUFFICIENT_BALANCE");
    expect(rest).not.toContain("[DONE]");
    socket.destroy();
  });
});
