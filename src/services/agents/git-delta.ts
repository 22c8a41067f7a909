/** Objects of a pack that are stored as differences from others (gitformat-pack, "deltified representation"). */
import { RepositoryError } from "./repository-error.js";

/** Enough for any size that passes the bounds. */
const SIZE_BYTES_MAX = 6;
/** The meaning of a copy of length 0. */
const COPY_BYTES_DEFAULT = 0x10000;

/** Reads a number in groups of seven bits, lowest first, and its end. */
export function readSize(bytes: Buffer, from: number): { readonly value: number; readonly next: number } {
  let value = 0;
  let factor = 1;
  for (let at = from; at < from + SIZE_BYTES_MAX; at += 1) {
    const byte = bytes[at];
    if (byte === undefined) break;
    value += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) return { value, next: at + 1 };
  }
  throw malformed();
}

/** Applies `delta` to `base`. Calls `count` with the result's size before allocating it; `count` may throw. */
export function applyDelta(base: Buffer, delta: Buffer, count: (bytes: number) => void): Buffer {
  const source = readSize(delta, 0);
  const target = readSize(delta, source.next);
  if (source.value !== base.length) throw malformed();
  count(target.value);
  const result = Buffer.allocUnsafe(target.value);
  let written = 0;
  let at = target.next;
  while (at < delta.length) {
    const instruction = delta[at] as number;
    at += 1;
    const copied = instruction >= 128 ? readCopy(delta, at, instruction) : null;
    const from = copied === null ? delta : base;
    const start = copied?.start ?? at;
    const length = copied?.length ?? instruction;
    if (length === 0 || start + length > from.length || written + length > result.length) throw malformed();
    from.copy(result, written, start, start + length);
    written += length;
    at = copied?.next ?? at + length;
  }
  if (written !== result.length) throw malformed();
  return result;
}

/** Bits of the instruction say which bytes of the offset (four) and of the length (three) follow. */
function readCopy(delta: Buffer, from: number, instruction: number) {
  let next = from;
  const number = (firstBit: number, bytes: number) => {
    let value = 0;
    for (let index = 0; index < bytes; index += 1) {
      if ((instruction & (1 << (firstBit + index))) === 0) continue;
      const byte = delta[next];
      if (byte === undefined) throw malformed();
      value += byte * 256 ** index;
      next += 1;
    }
    return value;
  };
  const start = number(0, 4);
  const length = number(4, 3) || COPY_BYTES_DEFAULT;
  return { start, length, next };
}

function malformed(): RepositoryError {
  return new RepositoryError("host", "The repository's host sends a pack that is not well-formed.");
}
