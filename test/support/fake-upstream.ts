/**
 * An upstream that speaks OpenAI's wire format over a real socket, and follows its script: answers, errors, streams in any
 * framing, hangs, cuts, floods. It records every request exactly, and says when the client closed a connection.
 *
 * Replies are made by `upstream-replies.ts`, bodies by `openai-bodies.ts`:
 *
 *     const upstream = await startFakeUpstream();
 *     upstream.replyNext(json(chatCompletion({ content: "Hi" })));      // the next request only, in order
 *     upstream.replyAlways(sse(chatChunks(["a", "b"])));                // every request that has no reply of its own
 *     const request = await upstream.nextRequest();                     // requests in order of arrival, each once
 *     await request.closedByClient;                                     // the client let go before the answer was whole
 *     await upstream.close();
 *
 * Without a scripted reply, POST .../chat/completions answers `upstream.answer` (streamed when asked), any other path 404.
 */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { inTime } from "./eventually.js";
import { chatChunk, chatCompletion, usageChunk, type WireUsage, wireUsage } from "./openai-bodies.js";
import { errorReply, type Framing, json, type Reply, type StreamStep, sse } from "./upstream-replies.js";

export interface RecordedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values as they came, alternating. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The body parsed, or undefined when it is not JSON. */
  readonly json: unknown;
  /** `performance.now()` when the whole request had arrived. */
  readonly receivedAt: number;
  /** Which connection of the server this came on, from 1: equal numbers are one reused socket. */
  readonly connection: number;
  /** Resolves with `performance.now()` when the client closed the connection before the answer was complete; rejects when it does not. */
  readonly closedByClient: Promise<number>;
  /** Resolves when the answer was written whole and the operating system has it; rejects when that does not come. */
  readonly answered: Promise<void>;
  /** Bytes of the answer, headers included, that the operating system has taken so far. */
  readonly bytesSent: () => number;
}

/** What the default behaviour answers. */
export interface FakeAnswer {
  /** One streamed chunk each; joined for a plain answer. */
  pieces: readonly string[];
  /** Null: none is reported. */
  usage: WireUsage | null;
  /** Before each streamed chunk. */
  paceMs: number;
  /** Before the headers. */
  delayMs: number;
}

export interface FakeUpstream {
  /** `http://127.0.0.1:<port>/v1`, to be used as a base URL. */
  readonly baseUrl: string;
  readonly port: number;
  /** Every request so far, in order. */
  readonly requests: readonly RecordedRequest[];
  /** What an unscripted chat request answers; set its fields at will. */
  readonly answer: FakeAnswer;
  /** Sockets open now, and all that ever were. */
  readonly openConnections: () => number;
  readonly connectionsSeen: () => number;
  /** Queues replies for the next requests, one each. */
  readonly replyNext: (...replies: Reply[]) => void;
  /** Replaces the default behaviour; null restores it. */
  readonly replyAlways: (reply: Reply | null) => void;
  /** The next request in order of arrival that this has not handed out yet. */
  readonly nextRequest: () => Promise<RecordedRequest>;
  /** Closes every idle keep-alive socket, as a server does whose idle time is over. */
  readonly closeIdleConnections: () => void;
  /** Destroys every socket and stops listening. */
  readonly close: () => Promise<void>;
}

/** Responses that this server ended on purpose: their closing is not the client's doing. */
const endedHere = new WeakSet<ServerResponse>();

export async function startFakeUpstream(): Promise<FakeUpstream> {
  const requests: RecordedRequest[] = [];
  const queued: Reply[] = [];
  const waiting: ((request: RecordedRequest) => void)[] = [];
  const sockets = new Map<Socket, number>();
  const answer: FakeAnswer = { pieces: ["Hello", ", ", "world", "."], usage: wireUsage(10, 4), paceMs: 0, delayMs: 0 };
  let handedOut = 0;
  let connectionsSeen = 0;
  let always: Reply | null = null;

  const server = createServer((incoming, response) => {
    response.on("error", () => {});
    void receive(incoming, response, sockets.get(incoming.socket) ?? 0).then((request) => {
      if (request === null) return;
      requests.push(request);
      if (waiting.length > 0 && handedOut === requests.length - 1) {
        handedOut += 1;
        waiting.shift()?.(request);
      }
      const reply = queued.shift() ?? always ?? defaultReply(request, answer);
      return perform(reply, request, response);
    });
  });
  server.keepAliveTimeout = 60_000;
  server.on("connection", (socket) => {
    connectionsSeen += 1;
    sockets.set(socket, connectionsSeen);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    answer,
    openConnections: () => sockets.size,
    connectionsSeen: () => connectionsSeen,
    replyNext: (...replies) => {
      queued.push(...replies);
    },
    replyAlways: (reply) => {
      always = reply;
    },
    nextRequest: () => {
      const request = requests[handedOut];
      if (request !== undefined) {
        handedOut += 1;
        return Promise.resolve(request);
      }
      return inTime(new Promise((resolve) => waiting.push(resolve)), "no further request");
    },
    closeIdleConnections: () => server.closeIdleConnections(),
    close: async () => {
      for (const socket of sockets.keys()) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Reads the whole request; null when the client left before its end. */
async function receive(incoming: IncomingMessage, response: ServerResponse, connection: number): Promise<RecordedRequest | null> {
  const parts: Buffer[] = [];
  try {
    for await (const part of incoming) parts.push(part as Buffer);
  } catch {
    return null;
  }
  const body = Buffer.concat(parts);
  const { socket } = incoming;
  const sentBefore = socket.bytesWritten;
  const closed = new Promise<number>((resolve) => {
    response.once("close", () => {
      if (!response.writableFinished && !endedHere.has(response)) resolve(performance.now());
    });
  });
  const finished = new Promise<void>((resolve) => {
    response.once("finish", resolve);
  });
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    body,
    json: parseJson(body),
    receivedAt: performance.now(),
    connection,
    get closedByClient() {
      return inTime(closed, "the client did not close the connection");
    },
    get answered() {
      return inTime(finished, "the answer was not taken whole");
    },
    bytesSent: () => socket.bytesWritten - sentBefore - socket.writableLength,
  };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function defaultReply(request: RecordedRequest, answer: FakeAnswer): Reply {
  if (request.method !== "POST" || !request.path.split("?")[0]?.endsWith("/chat/completions")) return errorReply(404, "Unknown path.");
  const { pieces, usage, paceMs, delayMs } = answer;
  const body = (request.json ?? {}) as { model?: string; stream?: boolean; stream_options?: { include_usage?: boolean } };
  const model = body.model ?? "gpt-mock";
  if (body.stream !== true) return json(chatCompletion({ model, content: pieces.join(""), usage }), { delayMs });
  const chunks = [chatChunk({ role: "assistant", content: "" }), ...pieces.map((content) => chatChunk({ content })), chatChunk({}, "stop")];
  if (usage !== null && body.stream_options?.include_usage === true) chunks.push(usageChunk(usage));
  return sse(
    chunks.map((chunk) => ({ ...chunk, model })),
    { delayMs, paceMs },
  );
}

async function perform(reply: Reply, request: RecordedRequest, response: ServerResponse): Promise<void> {
  switch (reply.kind) {
    case "body":
      if (reply.delayMs) await sleep(reply.delayMs);
      response.writeHead(reply.status, { "content-length": reply.body.length, ...reply.headers });
      response.end(reply.body);
      return;
    case "stream":
      return performStream(reply, response);
    case "flood":
      return performFlood(reply, response);
    case "hang":
      return;
    case "close":
      endedHere.add(response);
      if (reply.reset) response.socket?.resetAndDestroy();
      else response.socket?.destroy();
      return;
    case "handler":
      return reply.handle(request, response);
  }
}

async function performStream(reply: Extract<Reply, { kind: "stream" }>, response: ServerResponse): Promise<void> {
  if (reply.delayMs) await sleep(reply.delayMs);
  response.writeHead(reply.status, reply.headers);
  response.flushHeaders();
  response.socket?.setNoDelay(true);
  const lineEnd = lineEnds(reply.framing);
  for (const step of reply.steps) {
    if (response.destroyed) return;
    if (step.do === "delay") await sleep(step.ms);
    else if (step.do === "wait") await step.until;
    else {
      if (step.do === "event" && reply.paceMs) await sleep(reply.paceMs);
      await write(response, toBytes(step, lineEnd), reply.writeBytes);
    }
  }
  if (reply.end === "complete") response.end();
  if (reply.end === "cut") {
    endedHere.add(response);
    // The written bytes reach the socket in this turn of the loop and are sent first; then it closes although the body
    // is not whole.
    await new Promise((resolve) => setImmediate(resolve));
    response.socket?.destroySoon();
  }
}

async function performFlood(reply: Extract<Reply, { kind: "flood" }>, response: ServerResponse): Promise<void> {
  response.writeHead(200, reply.headers);
  for (let sent = 0; sent < reply.bytesMax && !response.destroyed; sent += reply.block.length) await write(response, reply.block);
  response.end();
}

/** Writes, and resolves when more may be written or the client has gone. */
async function write(response: ServerResponse, bytes: Uint8Array, pieceBytes = bytes.length): Promise<void> {
  for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) {
    const hasRoom = response.write(bytes.subarray(at, at + pieceBytes));
    // Small pieces are to arrive as reads of their own: the loop turns between them.
    if (pieceBytes < bytes.length) await new Promise((resolve) => setImmediate(resolve));
    if (hasRoom || response.destroyed) continue;
    await new Promise<void>((resolve) => {
      const done = () => {
        response.off("drain", done).off("close", done);
        resolve();
      };
      response.on("drain", done).on("close", done);
    });
  }
}

function lineEnds(framing: Framing): () => string {
  // In this order a lone CR is never followed by a lone LF, which would read as one CRLF.
  const ends = framing === "mixed" ? ["\r\n", "\n", "\r"] : [{ lf: "\n", crlf: "\r\n", cr: "\r" }[framing]];
  let next = 0;
  return () => ends[next++ % ends.length] ?? "\n";
}

function toBytes(step: Exclude<StreamStep, { do: "delay" | "wait" }>, lineEnd: () => string): Uint8Array {
  if (step.do === "raw") return step.bytes;
  if (step.do === "comment") return Buffer.from(`: ${step.text}${lineEnd()}${lineEnd()}`);
  const lines = step.data.split("\n").map((line) => `data: ${line}`);
  if (step.event !== undefined) lines.unshift(`event: ${step.event}`);
  return Buffer.from(`${lines.map((line) => line + lineEnd()).join("")}${lineEnd()}`);
}
