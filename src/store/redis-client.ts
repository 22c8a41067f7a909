/** Clients of Redis whose commands are answered within a time or fail: nothing waits for a connection, and nothing is sent again. */
import type { RedisOptions } from "ioredis";
import type { Logger } from "pino";
import { reconnectDelayMs } from "./events/transport.js";

export function promptOptions(connectionName: string, answerTimeoutMs: number) {
  return {
    connectionName,
    connectTimeout: 2_000,
    commandTimeout: answerTimeoutMs,
    retryStrategy: reconnectDelayMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  } as const satisfies RedisOptions;
}

/** Logs an outage once, and its end. */
export class OutageLog {
  isAway = false;
  private isClosed = false;

  constructor(
    private readonly log: Logger,
    /** `back`: null logs no end. */
    private readonly texts: { readonly away: string; readonly back: string | null },
  ) {}

  trouble(error: unknown): void {
    if (this.isAway || this.isClosed) return;
    this.isAway = true;
    this.log.warn({ err: error }, this.texts.away);
  }

  answered(): void {
    if (this.isAway && this.texts.back !== null) this.log.info(this.texts.back);
    this.isAway = false;
  }

  /** Nothing is logged any more. */
  close(): void {
    this.isClosed = true;
  }
}
