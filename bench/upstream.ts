/**
 * The upstream of every benchmark, in a process of its own: answers a POST as OpenAI's API does, a chat as JSON or
 * SSE, a picture, speech, with bytes made once at start. It speaks just enough HTTP/1.1 over `node:net`, because an upstream on `node:http`
 * would take as much CPU as the lightest gateway under test and so hide the difference between gateways.
 *
 * `--chunks` content deltas in a stream, `--pace` milliseconds before each of them (0: each in a turn of the event
 * loop of its own, so that they still arrive one by one), `--delay` milliseconds before an answer begins.
 * Prints `{"port":n}` when it listens.
 */
import { createServer, type Socket } from "node:net";
import { parseArgs } from "node:util";
import { completionDocument, imageDocument, MP3_START, mediaBytes, type StreamDocument, streamDocument } from "./support/documents.js";
import { messageDocument, messageStreamDocument } from "./support/messages.js";

const { values } = parseArgs({
  options: {
    chunks: { type: "string", default: "20" },
    pace: { type: "string", default: "0" },
    delay: { type: "string", default: "0" },
    port: { type: "string", default: "0" },
  },
});
const paceMs = Number(values.pace);
const delayMs = Number(values.delay);

const HEAD_END = Buffer.from("\r\n\r\n");
const CHUNKED_END = Buffer.from("0\r\n\r\n");
const STREAM_FLAG = Buffer.from('"stream":true');

const jsonAnswer = toAnswer(Buffer.from(completionDocument()), "application/json");
const imageAnswer = toAnswer(Buffer.from(imageDocument()), "application/json");
const speechAnswer = toAnswer(mediaBytes(MP3_START), "audio/mpeg");
const streamHead = Buffer.from("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
const messageAnswer = toAnswer(Buffer.from(messageDocument()), "application/json");
const chatWrites = toWrites(streamDocument(Number(values.chunks)));
const messageWrites = toWrites(messageStreamDocument(Number(values.chunks)));

const server = createServer({ noDelay: true }, (socket) => {
  let pending: Buffer = Buffer.alloc(0);
  socket.on("data", (bytes) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    for (;;) {
      const end = requestEnd(pending);
      if (end === -1) return;
      answer(socket, pending.subarray(0, end));
      pending = pending.subarray(end);
    }
  });
  socket.on("error", () => socket.destroy());
});
server.listen(Number(values.port), "127.0.0.1", 4096, () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(JSON.stringify({ port: address.port }));
});
process.on("SIGTERM", () => process.exit(0));

function toAnswer(body: Buffer, type: string): Buffer {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

function toWrites({ deltas, ending }: StreamDocument): readonly Buffer[] {
  return [...deltas.map((event) => toHttpChunk(event)), Buffer.concat([toHttpChunk(ending), CHUNKED_END])];
}

function toHttpChunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

/** Where the first request in `bytes` ends, or -1 while it is incomplete. */
function requestEnd(bytes: Buffer): number {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return -1;
  const bodyStart = headEnd + HEAD_END.length;
  const head = bytes.toString("latin1", 0, bodyStart);
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head);
  if (length) {
    const end = bodyStart + Number(length[1]);
    return bytes.length >= end ? end : -1;
  }
  if (!/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) return bodyStart;
  const chunkedEnd = bytes.indexOf(CHUNKED_END, bodyStart);
  return chunkedEnd === -1 ? -1 : chunkedEnd + CHUNKED_END.length;
}

function answer(socket: Socket, request: Buffer): void {
  const begin = request.includes(STREAM_FLAG)
    ? () => writeStream(socket, isOfMessages(request) ? messageWrites : chatWrites)
    : () => socket.write(answerOf(request));
  if (delayMs === 0) begin();
  else setTimeout(begin, delayMs);
}

/** By the request's path. */
function answerOf(request: Buffer): Buffer {
  const path = request.toString("latin1", 0, 64);
  if (path.includes("/images/")) return imageAnswer;
  if (isOfMessages(request)) return messageAnswer;
  return path.includes("/audio/speech") ? speechAnswer : jsonAnswer;
}

function isOfMessages(request: Buffer): boolean {
  return request.toString("latin1", 0, 64).includes("/v1/messages");
}

function writeStream(socket: Socket, writes: readonly Buffer[]): void {
  socket.write(streamHead);
  let next = 0;
  const writeNext = (): void => {
    const bytes = writes[next++];
    if (bytes === undefined || socket.destroyed) return;
    socket.write(bytes);
    schedule();
  };
  const schedule = (): void => {
    if (paceMs === 0) setImmediate(writeNext);
    else setTimeout(writeNext, paceMs);
  };
  schedule();
}
