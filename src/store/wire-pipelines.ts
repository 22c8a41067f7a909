/**
 * Cuts a PostgreSQL client's messages into pipelines: runs that the server answers as one. All clients of the embedded database share one
 * session, and one client's Parse must not meet another's Bind, so only whole pipelines reach it.
 */

/** Message types of the PostgreSQL protocol 3.0 ("Message Formats"). */
const QUERY = 0x51;
const SYNC = 0x53;
const FLUSH = 0x48;
const TERMINATE = 0x58;

const TYPE_BYTES = 1;
const LENGTH_BYTES = 4;

/** complete: the server is ready for any client. open: it waits for the rest of this client's. end: the client terminates. */
export interface Pipeline {
  readonly state: "complete" | "open" | "end";
  readonly bytes: Uint8Array;
}

export class PipelineReader {
  #pending: Buffer = Buffer.alloc(0);
  /** Offset up to which `#pending` has complete messages of the current pipeline. */
  #scanned = 0;
  #isStarted = false;

  /** Takes received bytes and returns the pipelines that they complete. */
  push(chunk: Uint8Array): Pipeline[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    const pipelines: Pipeline[] = [];
    for (let type = this.#nextMessage(); type !== null; type = this.#nextMessage()) {
      if (type === "startup" || type === QUERY || type === SYNC) pipelines.push(this.#cut("complete"));
      else if (type === FLUSH) pipelines.push(this.#cut("open"));
      else if (type === TERMINATE) pipelines.push(this.#cut("end"));
    }
    return pipelines;
  }

  /** Skips one complete message and returns its type; null when there is none. */
  #nextMessage(): number | "startup" | null {
    // Only the first message of a connection has no type.
    const typeBytes = this.#isStarted ? TYPE_BYTES : 0;
    const start = this.#scanned;
    if (this.#pending.length < start + typeBytes + LENGTH_BYTES) return null;
    const end = start + typeBytes + this.#pending.readInt32BE(start + typeBytes);
    if (this.#pending.length < end) return null;
    this.#scanned = end;
    if (this.#isStarted) return this.#pending[start] ?? null;
    this.#isStarted = true;
    return "startup";
  }

  #cut(state: Pipeline["state"]): Pipeline {
    const bytes = this.#pending.subarray(0, this.#scanned);
    this.#pending = this.#pending.subarray(this.#scanned);
    this.#scanned = 0;
    return { state, bytes };
  }
}
