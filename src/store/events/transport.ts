/** What carries messages between processes. It connects by itself, again and again, until it is closed. */

export interface EventTransport {
  /** Resolves when all of them are out, in order; rejects within seconds otherwise, and at once while it is not connected. */
  send(messages: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface TransportListener {
  /** From now on every message is heard and `send` works. */
  onUp(): void;
  /** That has ended, or an attempt at it failed. */
  onDown(error: unknown): void;
  /** The server has just answered: whatever was said before `askedAt`, of `performance.now()`, has been heard. */
  onAlive(askedAt: number): void;
  /** A message of any process, this one included. */
  onMessage(text: string): void;
}

/** Returns at once and calls the listener later. */
export type OpenTransport = (listener: TransportListener) => EventTransport;

const RECONNECT_FIRST_MS = 50;
const RECONNECT_LAST_MS = 2_000;

/** How long to wait before the `attempt`-th attempt to connect, from 1; processes that lost one server do not return in step. */
export function reconnectDelayMs(attempt: number): number {
  const delay = Math.min(RECONNECT_LAST_MS, RECONNECT_FIRST_MS * 2 ** Math.min(attempt - 1, 10));
  return delay * (0.75 + Math.random() / 2);
}

/** How often a connection is asked whether it still stands: what was said before it answers has been heard. */
export const HEARTBEAT_MS = 250;
/** How long a server may take to answer. */
export const ANSWER_TIMEOUT_MS = 2_000;
