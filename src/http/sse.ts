/** Event streams on their way out: at their reader's pace, through every proxy, and no longer than somebody reads. */
import type { ServerResponse } from "node:http";
import { drained } from "../lib/back-pressure.js";
import { SLOW_READER_TIMEOUT_MS, SSE_KEEP_ALIVE_MS } from "../limits.js";

/** Nobody keeps a stream, compresses it or holds its events back. */
export const EVENT_STREAM_HEADERS = { "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no" } as const;

const KEEP_ALIVE = Buffer.from(": keep-alive\n\n");
/** Unspecified: one event may be as large as a picture, and a slow reader is judged by pieces of it, not by the whole. */
const WRITE_BYTES_MAX = 64 * 1024;

/** Writes an event stream after its head: with back-pressure, a comment line in long silences, and a limit to patience. */
export class EventStreamWriter {
  isEnded = false;
  readonly #res: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;
  readonly #headFlush: NodeJS.Immediate;

  constructor(res: ServerResponse) {
    this.#res = res;
    this.#keepAlive = setTimeout(() => this.#writeKeepAlive(), SSE_KEEP_ALIVE_MS);
    // The head travels with the first batch when that is already here, else alone.
    this.#headFlush = setImmediate(() => {
      if (!res.destroyed) res.flushHeaders();
    });
  }

  /** Undefined when the reader keeps up; else resolves once it has, or has gone. */
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
    // Node sends what is written in one turn together, so this leaves with the last batch.
    if (!this.#res.destroyed) this.#res.end(bytes);
  }

  /** The last event and what follows it, in one write unless it is large. */
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
    if (!this.#res.writableNeedDrain) this.#res.write(KEEP_ALIVE);
    this.#keepAlive.refresh();
  }
}

export interface PipeOptions {
  /** Aborted: this side ends the stream, whatever is still to come. */
  readonly ending?: AbortSignal;
  /** What is said then. */
  readonly last?: () => string;
}

/** Writes a body that others make, after its head, and gives it up when its reader leaves. Rejects when the body breaks off; the answer is then not ended. */
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
