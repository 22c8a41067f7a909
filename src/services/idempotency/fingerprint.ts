/** Fingerprints a request: a digest of everything that decides the answer, independent of the order of its fields. */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ownValue } from "../../lib/own-values.js";

/** Characters of a large input between two turns of the event loop. */
const TURN_CHARS = 256 * 1024;

type Fields = Readonly<Record<string, unknown>>;

/** Files count by their bytes. `isLarge`: yields to the event loop in between. */
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

/** A list or object being written, and the position in it. */
interface Holder {
  readonly value: object;
  /** Sorted names of an object; null for a list. */
  readonly names: readonly string[] | null;
  readonly length: number;
  next: number;
}

/**
 * Writes the value as canonical JSON: an object is `{"fields":[["name",value],...]}` sorted by name, because in a JSON object numeric names
 * would come first and `__proto__` would be lost. Uses an explicit stack: nested generators would cost each piece its depth.
 */
function* write(root: unknown): Generator<string> {
  const begun: Holder[] = [];
  const begin = (value: unknown): string => {
    if (!isHolder(value)) return plain(value) + endOfField(begun.at(-1));
    const holder = toHolder(value);
    begun.push(holder);
    return holder.names === null ? "[" : '{"fields":[';
  };
  yield begin(root);
  for (let holder = begun.at(-1); holder !== undefined; holder = begun.at(-1)) {
    const { value, names, length, next } = holder;
    if (next === length) {
      begun.pop();
      yield (names === null ? "]" : "]}") + endOfField(begun.at(-1));
      continue;
    }
    holder.next += 1;
    const comma = next === 0 ? "" : ",";
    const name = names?.[next];
    if (name === undefined) yield comma + begin((value as readonly unknown[])[next]);
    else yield `${comma}[${JSON.stringify(name)},${begin(fieldOf(value, name))}`;
  }
}

function endOfField(holder: Holder | undefined): string {
  return holder === undefined || holder.names === null ? "" : "]";
}

function isHolder(value: unknown): value is object {
  return typeof value === "object" && value !== null && !(value instanceof Date) && !(value instanceof Uint8Array);
}

function toHolder(value: object): Holder {
  const names = Array.isArray(value) ? null : namesOf(value);
  return { value, names, length: (names ?? (value as readonly unknown[])).length, next: 0 };
}

/** The bytes of an uploaded file may not be its own property. */
function namesOf(value: object): string[] {
  const names = Object.keys(value).filter((name) => ownValue(value as Fields, name) !== undefined);
  if ("bytes" in value && !Object.hasOwn(value, "bytes")) names.push("bytes");
  return names.sort((a, b) => (a < b ? -1 : 1));
}

function fieldOf(value: object, name: string): unknown {
  return name === "bytes" && !Object.hasOwn(value, name) ? (value as { readonly bytes?: unknown }).bytes : ownValue(value as Fields, name);
}

/** As an item of a list: values without JSON become null. */
function plain(value: unknown): string {
  if (typeof value === "bigint") return `"${value}n"`;
  if (value instanceof Uint8Array) return `{"sha256":"${createHash("sha256").update(value).digest("hex")}"}`;
  return JSON.stringify(value) ?? "null";
}
