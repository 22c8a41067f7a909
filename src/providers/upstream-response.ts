import type { IncomingHttpHeaders } from "node:http";
import { ProviderError } from "../formats/upstream-error.js";
import { append } from "../lib/collections.js";

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

/** As `readAll`, by reading piece after piece. `who` gives the answer: "upstream", "agent". */
export async function readPieces(answer: Pick<UpstreamResponse, "read" | "destroy">, bytesMax: number, who: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (let read = await answer.read(); read !== null; read = await answer.read()) {
    append(parts, read);
    bytes += read.reduce((sum, part) => sum + part.length, 0);
    if (bytes > bytesMax) {
      answer.destroy();
      throw new ProviderError("invalid-response", `The ${who}'s answer is larger than ${bytesMax} bytes.`);
    }
  }
  return Buffer.concat(parts);
}
