/** Writes event streams at the reader's pace, through proxies, until the reader disconnects. */
import type { ServerResponse } from "node:http";
import { drained } from "../lib/back-pressure.js";
import { SLOW_READER_TIMEOUT_MS, SSE_KEEP_ALIVE_MS } from "../limits.js";

/** Prevents caching, compression and buffering of a stream. */
export const EVENT_STREAM_HEADERS = { "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no" } as const;

const KEEP_ALIVE = Buffer.from(": keep-alive\n\n");
/** Unspecified: an event may be as large as an image, so a slow reader is measured by pieces of it. */
const WRITE_BYTES_MAX = 64 * 1024;

/** Writes an event stream after its head: with back-pressure, a comment line in long silences, and a timeout for slow readers. */
export class EventStreamWriter {
  isEnded = false;
  readonly #res: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;
  readonly #headFlush: NodeJS.Immediate;

  /** `keepAlive` is sent in long silences; readers skip it. */
  constructor(
    res: ServerResponse,
    private readonly keepAlive: Uint8Array = KEEP_ALIVE,
  ) {
    this.#res = res;
    this.#keepAlive = setTimeout(() => this.#writeKeepAlive(), SSE_KEEP_ALIVE_MS);
    // The head is sent with the first batch when that is ready, else alone.
    this.#headFlush = setImmediate(() => {
      if (!res.destroyed) res.flushHeaders();
    });
  }

  /** Undefined when the reader keeps up; else resolves once it does, or has disconnected. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    clearImmediate(this.#headFlush);
    this.#keepAlive.refresh();
    if (this.#res.destroyed) return undefined;
    if (bytes.byteLength > WRITE_BYTES_MAX) return this.#writePieces(bytes);
    return this.#res.write(bytes) ? undefined : drained(this.#res, SLOW_READER_TIMEOUT_MS);
  }

  end(bytes: Uint8Array): undefined {
    this.isEnded = true;
    clearImmediate(this.#headFlush);
    // Node sends everything written in one turn together, so this joins the last batch.
    if (!this.#res.destroyed) this.#res.end(bytes);
  }

  /** Writes the last event and the end, in one write unless large. */
  endWith(last: Uint8Array, bytes: Uint8Array): Promise<void> | undefined {
    if (last.byteLength <= WRITE_BYTES_MAX) return this.end(Buffer.concat([last, bytes]));
    return this.#writePieces(last).then(() => this.end(bytes));
  }

  close(): void {
    clearImmediate(this.#headFlush);
    clearTimeout(this.#keepAlive);
  }

  async #writePieces(bytes: Uint8Array): Promise<void> {
    for (let start = 0; start < bytes.byteLength && !this.#res.destroyed; start += WRITE_BYTES_MAX) {
      if (!this.#res.write(bytes.subarray(start, start + WRITE_BYTES_MAX))) await drained(this.#res, SLOW_READER_TIMEOUT_MS);
    }
  }

  #writeKeepAlive(): void {
    if (this.#res.destroyed) return;
    if (!this.#res.writableNeedDrain) this.#res.write(this.keepAlive);
    this.#keepAlive.refresh();
  }
}

export interface PipeOptions {
  /** Aborting it ends the stream early. */
  readonly ending?: AbortSignal;
  /** Text written at an early end. */
  readonly last?: () => string;
}

/**
 * Writes a body from another source after its head, and cancels it when the reader disconnects. Rejects when the body breaks off, without
 * ending the answer.
 */
export async function pipeBody(res: ServerResponse, body: ReadableStream<Uint8Array>, { ending, last }: PipeOptions = {}): Promise<void> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(ignore);
  res.once("close", leave);
  ending?.addEventListener("abort", leave, { once: true });
  if (ending?.aborted) leave();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || res.closed) break;
      if (!res.write(value)) await drained(res, SLOW_READER_TIMEOUT_MS);
    }
    if (!res.closed) res.end(ending?.aborted ? last?.() : undefined);
  } finally {
    res.off("close", leave);
    ending?.removeEventListener("abort", leave);
  }
}

function ignore(): void {}
