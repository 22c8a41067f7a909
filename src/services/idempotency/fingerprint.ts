/** What tells two requests apart: a digest of everything that decides the answer, whatever the order of its fields. */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ownValue } from "../../lib/own-values.js";

/** After so many characters of a large input, everybody else has their turn. */
const TURN_CHARS = 256 * 1024;

type Fields = Readonly<Record<string, unknown>>;

/** Files count by their bytes. `isLarge`: in turns with everybody else. */
export async function fingerprintOf(value: unknown, isLarge: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const hash = createHash("sha256");
  let text = "";
  for (const piece of write(value)) {
    text += piece;
    if (text.length < TURN_CHARS) continue;
    hash.update(text);
    text = "";
    if (isLarge) await nextTurn();
  }
  return new Uint8Array(hash.update(text).digest());
}

/**
 * The value as JSON of its own kind: an object is `{"fields":[["name",value],...]}` in the order of the names, because in an object
 * numbers would come first, and `__proto__` not at all.
 */
function* write(value: unknown): Generator<string> {
  if (typeof value !== "object" || value === null || value instanceof Date || value instanceof Uint8Array) {
    yield plain(value);
  } else if (Array.isArray(value)) {
    yield "[";
    for (let index = 0; index < value.length; index += 1) {
      if (index > 0) yield ",";
      if (isPlain(value[index])) yield plain(value[index]);
      else yield* write(value[index]);
    }
    yield "]";
  } else {
    yield '{"fields":[';
    let isFirst = true;
    for (const name of namesOf(value)) {
      yield `${isFirst ? "" : ","}[${JSON.stringify(name)},`;
      isFirst = false;
      yield* write(name === "bytes" && !Object.hasOwn(value, name) ? bytesOf(value) : ownValue(value as Fields, name));
      yield "]";
    }
    yield "]}";
  }
}

function isPlain(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

/** As it stands in a list: what JSON does not know is null there. */
function plain(value: unknown): string {
  if (typeof value === "bigint") return `"${value}n"`;
  if (value instanceof Uint8Array) return `{"sha256":"${createHash("sha256").update(value).digest("hex")}"}`;
  return JSON.stringify(value) ?? "null";
}

/** The bytes of an uploaded file may be no property of its own. */
function namesOf(value: object): string[] {
  const names = Object.keys(value).filter((name) => ownValue(value as Fields, name) !== undefined);
  if ("bytes" in value && !Object.hasOwn(value, "bytes")) names.push("bytes");
  return names.sort((a, b) => (a < b ? -1 : 1));
}

function bytesOf(value: object): unknown {
  return (value as { readonly bytes?: unknown }).bytes;
}
