/** The WebSockets of one route, from their upgrade to the end of their work: counted, bounded, and drained when the gateway stops. */
import { setMaxListeners } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type ServerOptions, type WebSocket, WebSocketServer } from "ws";
import { rateLimited } from "../errors.js";
import type { BoundedCounter } from "../lib/bounded.js";
import { DRAIN_TIMEOUT_MS } from "../limits.js";

export type SocketOptions = Pick<ServerOptions, "maxPayload" | "skipUTF8Validation" | "handleProtocols">;

export class OpenSockets {
  readonly server: WebSocketServer;
  private readonly running = new Set<Promise<void>>();
  private readonly closing = new AbortController();

  constructor(options: SocketOptions) {
    this.server = new WebSocketServer({ noServer: true, perMessageDeflate: false, ...options });
    // Every connection listens to it.
    setMaxListeners(0, this.closing.signal);
  }

  /** Open or being opened. */
  get count(): number {
    return this.running.size;
  }

  get isClosing(): boolean {
    return this.closing.signal.aborted;
  }

  /** `work` begins with the upgrade, ends when everything of the connection is done, and never rejects. */
  add(work: Promise<void>): void {
    const running = work.finally(() => this.running.delete(running));
    this.running.add(running);
  }

  /** Null when the client disconnected, or its handshake is malformed, which `ws` answers itself. */
  accept(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket | null> {
    return new Promise((resolve) => {
      socket.once("close", () => resolve(null));
      this.server.handleUpgrade(req, socket, head, resolve);
      // It was paused during the handover.
      socket.resume();
    });
  }

  /** Calls the listener when the gateway stops, at once if it does already. The returned function ends the listening. */
  onClosing(listener: () => void): () => void {
    const { signal } = this.closing;
    signal.addEventListener("abort", listener, { once: true });
    if (signal.aborted) listener();
    return () => signal.removeEventListener("abort", listener);
  }

  /** Ends the connections that have not ended by themselves in time. Resolves when all work is done. */
  async close(): Promise<void> {
    this.closing.abort();
    const timer = setTimeout(() => {
      for (const client of this.server.clients) client.terminate();
    }, DRAIN_TIMEOUT_MS);
    await Promise.all(this.running);
    clearTimeout(timer);
    this.server.close();
  }
}

/** Takes a place in each counter; `undo` gives them back. Throws RATE_LIMITED with the message where there is none. */
export function takePlaces(
  places: readonly (readonly [counter: BoundedCounter, name: string])[],
  message: string,
  undo: (() => void)[],
): void {
  for (const [counter, name] of places) {
    if (!counter.add(name)) throw rateLimited(message, 1);
    undo.push(() => counter.remove(name));
  }
}
