import type { IncomingHttpHeaders } from "node:http";

/** An answer with its headers. Read it to its end or destroy it: until then it keeps its connection. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * Resolves with the bytes received since the last call, at least one; null at the end. Rejects with a ProviderError when the connection
   * breaks, falls silent or takes too long, and with the signal's reason when that is aborted.
   */
  read(): Promise<readonly Buffer[] | null>;
  /** Null when `take` has a result now; else resolves when it does. */
  untilReadable(): Promise<void> | null;
  /** As `read`, synchronously; an empty list when nothing has arrived. */
  take(): readonly Buffer[] | null;
  /** The whole body when it is here in one piece of at most `bytesMax`; else null: use `readAll`. */
  atHand(bytesMax: number): Buffer | null;
  /**
   * The whole body. Rejects with a ProviderError `invalid-response` beyond `bytesMax`, as early as possible. The memory of a large one may
   * be given back after use.
   */
  readAll(bytesMax: number): Promise<Buffer>;
  /** Closes the connection at once unless the answer has ended. */
  destroy(): void;
  /** Waits a moment for the last bytes, so that the connection can be reused. */
  finish(): void;
}
