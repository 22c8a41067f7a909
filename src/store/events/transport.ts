/** The transport of messages between processes. It reconnects until it is closed. */

export interface EventTransport {
  /** Resolves when all are sent, in order; rejects within seconds otherwise, and at once while disconnected. */
  send(messages: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface TransportListener {
  /** From now on every message is received and `send` works. */
  onUp(): void;
  /** The connection ended, or an attempt failed. */
  onDown(error: unknown): void;
  /** The server has just answered: everything sent before `askedAt`, of `performance.now()`, was received. */
  onAlive(sentAt: number): void;
  /** A message of any process, this one included. */
  onMessage(text: string): void;
}

/** Returns at once and calls the listener later. */
export type OpenTransport = (listener: TransportListener) => EventTransport;

const RECONNECT_FIRST_MS = 50;
const RECONNECT_LAST_MS = 2_000;

/** Delay before the `attempt`-th attempt to connect, from 1; randomized, so that processes do not reconnect in step. */
export function reconnectDelayMs(attempt: number): number {
  const delay = Math.min(RECONNECT_LAST_MS, RECONNECT_FIRST_MS * 2 ** Math.min(attempt - 1, 10));
  return delay * (0.75 + Math.random() / 2);
}

/** Interval of pings: messages before an answer were received. */
export const HEARTBEAT_MS = 250;
/** How long a server may take to answer. */
export const ANSWER_TIMEOUT_MS = 2_000;
