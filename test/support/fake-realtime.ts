/** A realtime upstream on a real WebSocket server, which does what a test tells it. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { inTime } from "./eventually.js";

export type RealtimeEvent = Readonly<Record<string, unknown>>;

/** One session as the upstream sees it. */
export interface FakeRealtimeSession {
  readonly request: IncomingMessage;
  readonly socket: WebSocket;
  /** Every event that has come, parsed. */
  readonly received: readonly RealtimeEvent[];
  /** The next event of this type that has not been handed out; rejects when none comes. */
  next(type: string): Promise<RealtimeEvent>;
  send(event: RealtimeEvent): void;
  /** `response.done` with this usage, in the wire's own words, of an answer of its own unless it is named. */
  sendDone(usage: unknown, responseId?: string): void;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
}

export interface FakeRealtime {
  /** `http://127.0.0.1:<port>/v1`. */
  readonly baseUrl: string;
  /** Every upgrade that was asked for, refused or not. */
  readonly requests: readonly IncomingMessage[];
  /** The next session that has not been handed out. */
  nextSession(): Promise<FakeRealtimeSession>;
  /** Whether a `response.cancel` is answered by itself: with the error that there is no such answer. */
  answersCancels: boolean;
  /** The next upgrades are refused with this status and body; null accepts again. */
  refuseWith(refusal: { readonly status: number; readonly body: string } | "hang" | null): void;
  close(): Promise<void>;
}

export async function startFakeRealtime(): Promise<FakeRealtime> {
  const http = createServer((_req, res) => res.writeHead(404).end());
  const server = new WebSocketServer({ noServer: true });
  const requests: IncomingMessage[] = [];
  const sessions = new Mailbox<FakeRealtimeSession>();
  const fake = { answersCancels: true };
  let refusal: { readonly status: number; readonly body: string } | "hang" | null = null;
  http.on("upgrade", (request, socket, head) => {
    requests.push(request);
    socket.on("error", () => undefined);
    if (refusal === "hang") {
      // Read, or its end would not be noticed.
      socket.resume();
      socket.on("end", () => socket.destroy());
      return;
    }
    if (refusal) {
      const { status, body } = refusal;
      socket.end(`HTTP/1.1 ${status} No\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
      return;
    }
    server.handleUpgrade(request, socket, head, (webSocket) => sessions.put(toSession(request, webSocket, fake)));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  return Object.assign(fake, {
    baseUrl: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`,
    requests,
    nextSession: () => sessions.take(() => true),
    refuseWith: (how: typeof refusal) => {
      refusal = how;
    },
    close: async () => {
      for (const client of server.clients) client.terminate();
      http.close();
      http.closeAllConnections();
    },
  });
}

function toSession(request: IncomingMessage, socket: WebSocket, fake: Pick<FakeRealtime, "answersCancels">): FakeRealtimeSession {
  const received: RealtimeEvent[] = [];
  const mailbox = new Mailbox<RealtimeEvent>();
  socket.on("message", (data) => {
    const event = JSON.parse(String(data)) as RealtimeEvent;
    received.push(event);
    mailbox.put(event);
    if (event.type === "response.cancel" && fake.answersCancels) send({ type: "error", error: { event_id: event.event_id } });
  });
  socket.on("error", () => undefined);
  const send = (event: RealtimeEvent) => socket.send(JSON.stringify(event));
  return {
    request,
    socket,
    received,
    next: (type) =>
      inTime(
        mailbox.take((event) => event.type === type),
        `no ${type} came`,
      ),
    send,
    sendDone: (usage, id = `resp_${randomUUID()}`) => {
      send({ type: "response.done", event_id: `event_${randomUUID()}`, response: { id, status: "completed", usage } });
    },
    closed: new Promise((resolve) => socket.on("close", (code) => resolve(code))),
  };
}

/** Items without a receiver, and receivers that wait for one. */
export class Mailbox<Item> {
  private readonly items: Item[] = [];
  private readonly waiting: { readonly isWanted: (item: Item) => boolean; readonly give: (item: Item) => void }[] = [];

  put(item: Item): void {
    const index = this.waiting.findIndex(({ isWanted }) => isWanted(item));
    const [waiter] = index === -1 ? [] : this.waiting.splice(index, 1);
    if (waiter) waiter.give(item);
    else this.items.push(item);
  }

  take(isWanted: (item: Item) => boolean): Promise<Item> {
    const index = this.items.findIndex(isWanted);
    const [item] = index === -1 ? [] : this.items.splice(index, 1);
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((give) => {
      this.waiting.push({ isWanted, give });
    });
  }
}
