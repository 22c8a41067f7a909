/** Writes large JSON in turns of the event loop: V8 takes up to 4 ms for a megabyte of text. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Measured: the slowest piece of this length takes 5 ms. */
const PIECE_CHARS = 512 * 1024;
/** Rough length of a number, true, false or null. */
const PLAIN_CHARS = 8;
const LAST_IN_PAIR = /[\udc00-\udfff]/;

/**
 * Writes parsed JSON as `JSON.stringify` does, at once when it is small. `undefined` is left out of objects, and null in arrays; values
 * with a `toJSON` of their own are not supported.
 */
export function writeJson(value: object): string | Promise<Buffer> {
  const large = new Set<object>();
  return weigh(value, large) < PIECE_CHARS ? JSON.stringify(value) : writeInTurns(value, large);
}

/** Estimates the length of the JSON, and collects the lists and objects that are too long for one piece. */
function weigh(value: unknown, large: Set<object>): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return PLAIN_CHARS;
  let chars = 2;
  if (Array.isArray(value)) for (const item of value) chars += weigh(item, large);
  else for (const [key, member] of Object.entries(value)) chars += key.length + 3 + weigh(member, large);
  if (chars >= PIECE_CHARS) large.add(value);
  return chars;
}

async function writeInTurns(value: object, large: Set<object>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for (const piece of toPieces(pieced(value, large))) {
    pieces.push(piece);
    length += piece.length;
    await nextTurn();
  }
  const whole = Buffer.allocUnsafe(length);
  let at = 0;
  for (const piece of pieces) {
    at += piece.copy(whole, at);
    await nextTurn();
  }
  return whole;
}

function* toPieces(texts: Iterable<string>): Generator<Buffer> {
  let open = "";
  for (const text of texts) {
    open += text;
    if (open.length < PIECE_CHARS) continue;
    yield Buffer.from(open);
    open = "";
  }
  yield Buffer.from(open);
}

/** Yields the JSON in texts that are each about as long as a piece at most. */
function* pieced(value: unknown, large: Set<object>): Generator<string> {
  if (!isLarge(value, large)) yield JSON.stringify(value) ?? "null";
  else if (typeof value === "string") yield* piecedText(value);
  else if (Array.isArray(value)) yield* piecedList(value, large);
  else yield* piecedObject(value as object, large);
}

function isLarge(value: unknown, large: ReadonlySet<object>): boolean {
  if (typeof value === "string") return value.length >= PIECE_CHARS;
  return typeof value === "object" && value !== null && large.has(value);
}

/** Short items are written together. */
function* piecedList(list: readonly unknown[], large: Set<object>): Generator<string> {
  let separator = "[";
  for (let from = 0; from < list.length; ) {
    yield separator;
    separator = ",";
    let to = from;
    for (let chars = 0; to < list.length && chars < PIECE_CHARS && !isLarge(list[to], large); to += 1) chars += weigh(list[to], large);
    if (to === from) {
      yield* pieced(list[from], large);
      from += 1;
    } else {
      yield JSON.stringify(list.slice(from, to)).slice(1, -1);
      from = to;
    }
  }
  yield "]";
}

function* piecedObject(object: object, large: Set<object>): Generator<string> {
  yield "{";
  let separator = "";
  for (const [key, member] of Object.entries(object)) {
    if (member === undefined) continue;
    yield separator;
    yield* pieced(key, large);
    yield ":";
    yield* pieced(member, large);
    separator = ",";
  }
  yield "}";
}

/** A surrogate pair stays together, because halves of it would be written as escapes. */
function* piecedText(text: string): Generator<string> {
  yield '"';
  for (let from = 0; from < text.length; ) {
    const end = Math.min(from + PIECE_CHARS, text.length);
    const to = LAST_IN_PAIR.test(text.charAt(end)) ? end + 1 : end;
    yield JSON.stringify(text.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}
