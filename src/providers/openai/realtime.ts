/** Realtime sessions over OpenAI's wire format: a WebSocket to the upstream, with events passed unchanged. */
import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import { toStatusError } from "../../formats/openai-chat/errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { type KeepAlive, keepAlive } from "../../lib/keep-alive.js";
import { TextQueue } from "../../lib/text-queue.js";
import { withoutTrailing } from "../../lib/urls.js";
import {
  REALTIME_CLOSE_MS,
  REALTIME_EVENT_BYTES_MAX,
  REALTIME_PING_MS,
  REALTIME_WAITING_BYTES_MAX,
  SLOW_READER_TIMEOUT_MS,
} from "../../limits.js";
import { stageOf, tookTooLong, toProviderError } from "../http.js";
import type { RealtimeCall, RealtimeConnection, RealtimeProvider } from "../media.js";
import type { OpenAiUpstream } from "./client.js";

/** Close codes that are no failure: normal, going away, and none. */
const ORDERLY_CODES: ReadonlySet<number> = new Set([1000, 1001, 1005]);
const PATIENCE: KeepAlive = { pingMs: REALTIME_PING_MS, stalledMs: SLOW_READER_TIMEOUT_MS };
const ERROR_BODY_BYTES_MAX = 64 * 1024;

export class OpenAiRealtimeProvider implements RealtimeProvider {
  constructor(private readonly upstream: OpenAiUpstream) {}

  connect(call: RealtimeCall): Promise<RealtimeConnection> {
    const { signal } = call;
    if (signal.aborted) return Promise.reject(signal.reason);
    const { apiKey, timeouts } = this.upstream;
    const socket = new WebSocket(toUrl(this.upstream.baseUrl, call), {
      headers: toHeaders(this.upstream, call),
      handshakeTimeout: timeouts.idleMs,
      maxPayload: REALTIME_EVENT_BYTES_MAX,
      perMessageDeflate: false,
    });
    return new Promise((resolve, reject) => {
      const connection = new OpenAiRealtimeConnection(socket, signal);
      const onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      const settle = () => signal.removeEventListener("abort", onAbort);
      socket.once("open", () => {
        settle();
        resolve(connection);
      });
      socket.once("unexpected-response", (_request, response: IncomingMessage) => {
        settle();
        toRefusal(response, apiKey).then(reject, reject);
      });
      socket.once("error", (error) => {
        settle();
        reject(toConnectError(error));
      });
    });
  }
}

class OpenAiRealtimeConnection implements RealtimeConnection {
  readonly events: TextQueue;
  private stopPinging: () => void = () => undefined;
  private readonly onAbort = () => {
    this.events.end(this.signal.reason);
    this.hangUp();
  };

  constructor(
    private readonly socket: WebSocket,
    private readonly signal: AbortSignal,
  ) {
    this.events = new TextQueue(REALTIME_WAITING_BYTES_MAX, { pause: () => socket.pause(), resume: () => socket.resume() });
    socket.once("upgrade", ({ socket: connection }) => {
      this.stopPinging = keepAlive(socket, connection, PATIENCE, () => {
        this.events.end(new ProviderError("timeout", "The upstream does not answer any more.", { hasBegun: true }));
        socket.terminate();
      });
    });
    signal.addEventListener("abort", this.onAbort, { once: true });
    socket.on("message", (data) => this.events.push(String(data)));
    socket.on("error", (error) =>
      this.events.end(new ProviderError("cut", "The session ended early: the connection to the upstream broke.", { cause: error })),
    );
    socket.on("close", (code) => {
      this.stopPinging();
      signal.removeEventListener("abort", this.onAbort);
      this.events.end(
        ORDERLY_CODES.has(code) ? undefined : new ProviderError("cut", `The session ended early: the upstream closed it with ${code}.`),
      );
    });
  }

  send(text: string): Promise<void> {
    if (this.socket.readyState !== WebSocket.OPEN) return Promise.resolve();
    return new Promise((resolve) => {
      // `events` reports a broken connection.
      this.socket.send(text, () => resolve());
    });
  }

  close(): void {
    this.events.end();
    this.hangUp();
  }

  /** At once before the first event, else by a closing handshake with a bounded wait. */
  private hangUp(): void {
    this.stopPinging();
    const { socket } = this;
    if (socket.readyState === WebSocket.CONNECTING) socket.terminate();
    if (socket.readyState !== WebSocket.OPEN) return;
    socket.resume();
    socket.close(1000);
    const timer = setTimeout(() => socket.terminate(), REALTIME_CLOSE_MS);
    socket.once("close", () => clearTimeout(timer));
  }
}

/** Ignores the client's own address, whose parameters could select other kinds of sessions. */
function toUrl(baseUrl: string, { upstreamModel }: RealtimeCall): URL {
  const url = new URL(baseUrl);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.pathname = `${withoutTrailing(url.pathname, "/")}/realtime`;
  url.searchParams.set("model", upstreamModel);
  return url;
}

function toHeaders({ apiKey, headers }: OpenAiUpstream, { isBeta }: RealtimeCall): Record<string, string> {
  return {
    ...(apiKey !== null && { Authorization: `Bearer ${apiKey}` }),
    ...(isBeta && { "OpenAI-Beta": "realtime=v1" }),
    ...headers,
  };
}

/** Translates an answer that is no upgrade. */
async function toRefusal(response: IncomingMessage, apiKey: string | null): Promise<ProviderError> {
  const status = response.statusCode ?? 502;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      chunks.push(chunk);
      if (size >= ERROR_BODY_BYTES_MAX) break;
    }
  } catch {
    // The part of its reason that arrived.
  }
  if (status < 400) return new ProviderError("invalid-response", `The upstream answered ${status} instead of opening a WebSocket.`);
  return toStatusError(status, response.headers, Buffer.concat(chunks).toString(), apiKey);
}

function toConnectError(error: Error): ProviderError {
  if (/handshake has timed out/i.test(error.message)) {
    return tookTooLong("asked", error);
  }
  const isProtocol = /sec-websocket|invalid (?:upgrade )?header|subprotocol/i.test(error.message);
  if (isProtocol) return new ProviderError("invalid-response", "The upstream's answer is no WebSocket.", { cause: error });
  return toProviderError(error, stageOf(error));
}
