/**
 * Limits open connections for live data: WebSockets and subscriptions over server-sent events, counted together by key or session and by
 * client address. Streams that end by themselves and are paid for, such as a chat, do not count.
 */
import type { Caller } from "../../context.js";
import { type AppError, rateLimited } from "../../errors.js";
import { BoundedCounter } from "../../lib/bounded.js";
import { addressGroupOf } from "../../lib/client-address.js";
import { LIVE_CONNECTIONS_PER_ADDRESS_MAX, LIVE_CONNECTIONS_PER_KEY_MAX } from "./limits.js";

export class LiveConnections {
  private readonly perHolder = new BoundedCounter(LIVE_CONNECTIONS_PER_KEY_MAX);
  private readonly perAddress = new BoundedCounter(LIVE_CONNECTIONS_PER_ADDRESS_MAX);

  /** Counts a connection until the returned function is called. Throws RATE_LIMITED. */
  openAt(clientAddress: string): () => void {
    const group = addressGroupOf(clientAddress);
    if (!this.perAddress.add(group)) throw tooMany(LIVE_CONNECTIONS_PER_ADDRESS_MAX, "from one address");
    return () => this.perAddress.remove(group);
  }

  /** As `openAt`, for the key or session; does nothing for an anonymous caller. */
  openFor(caller: Caller): () => void {
    if (caller.kind === "anonymous") return () => undefined;
    const holder = caller.kind === "key" ? caller.apiKeyId : caller.sessionId;
    if (!this.perHolder.add(holder)) throw tooMany(LIVE_CONNECTIONS_PER_KEY_MAX, caller.kind === "key" ? "with one key" : "in one session");
    return () => this.perHolder.remove(holder);
  }
}

const RETRY_AFTER_SECONDS = 1;

function tooMany(max: number, whose: string): AppError {
  return rateLimited(
    `At most ${max} connections are open at once ${whose}, WebSockets and subscriptions over server-sent events together: close one, or run up to ten operations on one WebSocket.`,
    RETRY_AFTER_SECONDS,
  );
}
