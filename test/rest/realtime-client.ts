/** A WebSocket client of /v1/realtime, and what became of an upgrade that was refused. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import type { TestApp } from "../support/app.js";
import { inTime } from "../support/eventually.js";
import { Mailbox, type RealtimeEvent } from "../support/fake-realtime.js";
import type { Answer } from "./client.js";

export interface RealtimeClient {
  readonly socket: WebSocket;
  /** Of the upgrade's answer. */
  readonly headers: IncomingHttpHeaders;
  readonly received: readonly RealtimeEvent[];
  send(event: RealtimeEvent): void;
  /** The next event of this type that has not been handed out. */
  next(type: string): Promise<RealtimeEvent>;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

export interface ConnectOptions {
  /** Sent as a bearer token; null sends none. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocols?: readonly string[];
  /** Default: `/v1/realtime`. */
  readonly path?: string;
}

/** What the rejection of `connectRealtime` is when the gateway has answered, and refused. */
export class RealtimeRefused extends Error {
  constructor(readonly answer: Answer) {
    super(`refused with ${answer.status}`);
  }
}

type Place = Pick<TestApp, "baseUrl" | "key">;

export function connectRealtime(app: Place, query: string, options: ConnectOptions = {}): Promise<RealtimeClient> {
  return new Promise((resolve, reject) => {
    const socket = open(app, query, options);
    const mailbox = new Mailbox<RealtimeEvent>();
    const received: RealtimeEvent[] = [];
    socket.on("message", (data) => {
      const event = JSON.parse(String(data)) as RealtimeEvent;
      received.push(event);
      mailbox.put(event);
    });
    const closed = new Promise<{ code: number; reason: string }>((settle) => {
      socket.on("close", (code, reason) => settle({ code, reason: String(reason) }));
    });
    socket.on("error", reject);
    socket.on(
      "unexpected-response",
      (_request, response) => void readAnswer(response).then((answer) => reject(new RealtimeRefused(answer)), reject),
    );
    socket.on("upgrade", ({ headers }: IncomingMessage) => {
      socket.on("open", () => {
        const send = (event: RealtimeEvent) => socket.send(JSON.stringify(event));
        resolve({
          socket,
          headers,
          received,
          send,
          next: (type) =>
            inTime(
              mailbox.take((event) => event.type === type),
              `no ${type} came`,
            ),
          closed,
        });
      });
    });
  });
}

/** The answer of an upgrade that is refused. */
export function refuseRealtime(app: Place, query: string, options: ConnectOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = open(app, query, options);
    socket.on("open", () => {
      socket.terminate();
      reject(new Error("The upgrade was accepted."));
    });
    socket.on("error", reject);
    socket.on("unexpected-response", (_request, response) => void readAnswer(response).then(resolve, reject));
  });
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const headers = new Headers(Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)]));
  return { status: response.statusCode ?? 0, headers, text, json: <Body>() => JSON.parse(text) as Body };
}

function open(app: Place, query: string, { key = app.key, headers, protocols = [], path = "/v1/realtime" }: ConnectOptions): WebSocket {
  return new WebSocket(`${app.baseUrl.replace("http", "ws")}${path}${query}`, [...protocols], {
    headers: { ...(key !== null && { Authorization: `Bearer ${key}` }), ...headers },
  });
}
