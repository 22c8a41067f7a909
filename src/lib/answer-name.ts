/**
 * Sets the model name of an answer: its `model` is the id that the caller used. The upstream's own name and its provider (`provider`, sent
 * by gateways of gateways) are not revealed (docs/spec/generation.md#model-names). Answers pass as the bytes received, so the name is
 * replaced in place.
 *
 * That needs no second parse. The parsed object says that there is a `model`; unless one of its letters is escaped, the key is written as
 * `"model"` and a colon, which cannot occur inside a text, where quotes are escaped. One match is therefore the key. Unusual documents (the
 * same key deeper or twice, escaped letters, a name that is no plain text) are serialized from the object.
 */

type Document = Readonly<Record<string, unknown>>;

/** A field's name as usually written, and the start of an escape of one of its letters. */
interface Key {
  readonly name: string;
  readonly quoted: Buffer;
  readonly escapes: readonly Buffer[];
}

const [QUOTE, BACKSLASH, COLON, COMMA, BRACE, BRACE_END] = [0x22, 0x5c, 0x3a, 0x2c, 0x7b, 0x7d];
const [SPACE, TAB, LINE_FEED, CARRIAGE_RETURN] = [0x20, 0x09, 0x0a, 0x0d];
const MODEL: Key = { name: "model", quoted: Buffer.from('"model"'), escapes: [Buffer.from("\\u006")] };
const PROVIDER: Key = { name: "provider", quoted: Buffer.from('"provider"'), escapes: [Buffer.from("\\u006"), Buffer.from("\\u007")] };

/** One per generation: all chunks of a stream have the same name. */
export class AnswerName {
  private readonly json: Buffer;

  constructor(readonly model: string) {
    this.json = Buffer.from(JSON.stringify(model));
  }

  inObject<Answer extends Document>(object: Answer): Answer {
    if (!Object.hasOwn(object, PROVIDER.name)) return { ...object, model: this.model };
    const { provider: _, ...rest } = object;
    return { ...(rest as Answer), model: this.model };
  }

  /**
   * Replaces the name in the bytes that `object` was parsed from: an event of a stream or a whole document. Null when they must be
   * serialized from the object.
   */
  inBytes(bytes: Uint8Array, object: Document): Uint8Array | null {
    const document = asBuffer(bytes);
    const rest = Object.hasOwn(object, PROVIDER.name) ? withoutText(document, PROVIDER) : document;
    if (rest === null) return null;
    return Object.hasOwn(object, MODEL.name) ? withText(rest, MODEL, this.json) : withFirst(rest, MODEL, this.json);
  }
}

/** The value of a top-level field, with its quotes. */
interface Place {
  readonly keyAt: number;
  readonly start: number;
  readonly end: number;
}

function withText(document: Buffer, key: Key, json: Buffer): Buffer | null {
  const place = placeOf(document, key);
  return place && replaced(document, place.start, place.end, json);
}

/** Removes the field with the comma after it, or with the one before it when it is the last. */
function withoutText(document: Buffer, key: Key): Buffer | null {
  const place = placeOf(document, key);
  if (!place) return null;
  const after = skipWhiteSpace(document, place.end);
  if (document[after] === COMMA) return replaced(document, place.keyAt, after + 1, NOTHING);
  let before = place.keyAt - 1;
  while (isWhiteSpace(document[before])) before -= 1;
  return document[before] === COMMA ? replaced(document, before, place.end, NOTHING) : null;
}

/** Inserts a missing field at the front. */
function withFirst(document: Buffer, { quoted }: Key, json: Buffer): Buffer | null {
  const start = document.indexOf(BRACE) + 1;
  if (document[skipWhiteSpace(document, start)] === BRACE_END) return null;
  return replaced(document, start, start, Buffer.concat([quoted, Buffer.from(":"), json, Buffer.from(",")]));
}

const NOTHING = Buffer.alloc(0);

/** For a document whose object has such a field. */
function placeOf(document: Buffer, { quoted, escapes }: Key): Place | null {
  const hasEscapes = document.includes(BACKSLASH);
  if (hasEscapes && escapes.some((letter) => document.includes(letter))) return null;
  let keyAt = -1;
  let colon = -1;
  for (let at = document.indexOf(quoted); at !== -1; ) {
    const next = skipWhiteSpace(document, at + quoted.length);
    if (document[next] === COLON) {
      if (colon !== -1) return null;
      keyAt = at;
      colon = next;
    }
    at = document.indexOf(quoted, next);
  }
  const start = skipWhiteSpace(document, colon + 1);
  const end = document.indexOf(QUOTE, start + 1) + 1;
  if (colon === -1 || document[start] !== QUOTE || end === 0) return null;
  if (hasEscapes && document.subarray(start, end).includes(BACKSLASH)) return null;
  return { keyAt, start, end };
}

function replaced(document: Buffer, start: number, end: number, by: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(document.length - (end - start) + by.length);
  bytes.set(document.subarray(0, start));
  bytes.set(by, start);
  bytes.set(document.subarray(end), start + by.length);
  return bytes;
}

function skipWhiteSpace(document: Buffer, from: number): number {
  let at = from;
  while (isWhiteSpace(document[at])) at += 1;
  return at;
}

function isWhiteSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
