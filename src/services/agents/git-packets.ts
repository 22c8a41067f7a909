/** Git's pkt-lines: four hexadecimal digits that count themselves and what follows; `0000` is a flush (gitprotocol-common). */
import { RepositoryError } from "./repository-error.js";

const HEADER_BYTES = 4;
const PACKET_BYTES_MAX = 65_520;
const LENGTH = /^[0-9a-f]{4}$/i;

export function packet(line: string): string {
  return (Buffer.byteLength(line) + HEADER_BYTES).toString(16).padStart(HEADER_BYTES, "0") + line;
}

export const FLUSH = "0000";

/** What each packet holds; null is a flush. Throws a RepositoryError for anything else. */
export async function* readPackets(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES) {
      const length = lengthOf(rest);
      if (length === 0) {
        yield null;
        rest = rest.subarray(HEADER_BYTES);
        continue;
      }
      if (rest.length < length) break;
      yield rest.subarray(HEADER_BYTES, length);
      rest = rest.subarray(length);
    }
  }
  if (rest.length > 0) throw malformed();
}

/** The other short lengths belong to versions of the protocol that were not asked for. */
function lengthOf(bytes: Buffer): number {
  const digits = bytes.toString("latin1", 0, HEADER_BYTES);
  const length = LENGTH.test(digits) ? Number.parseInt(digits, 16) : -1;
  if (length === 0 || (length >= HEADER_BYTES && length <= PACKET_BYTES_MAX)) return length;
  throw malformed();
}

function malformed(): RepositoryError {
  return new RepositoryError("host", "The repository's host does not speak git's protocol.");
}
