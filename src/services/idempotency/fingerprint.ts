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

/** A list or an object that is being written, and how far it is. */
interface Holder {
  readonly value: object;
  /** Of an object, in order; null for a list. */
  readonly names: readonly string[] | null;
  readonly length: number;
  next: number;
}

/**
 * The value as JSON of its own kind: an object is `{"fields":[["name",value],...]}` in the order of the names, because in an object
 * numbers would come first, and `__proto__` not at all. What has begun is kept in a list: a generator within a generator would cost each
 * piece as much as it is deep.
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

/** The bytes of an uploaded file may be no property of its own. */
function namesOf(value: object): string[] {
  const names = Object.keys(value).filter((name) => ownValue(value as Fields, name) !== undefined);
  if ("bytes" in value && !Object.hasOwn(value, "bytes")) names.push("bytes");
  return names.sort((a, b) => (a < b ? -1 : 1));
}

function fieldOf(value: object, name: string): unknown {
  return name === "bytes" && !Object.hasOwn(value, name) ? (value as { readonly bytes?: unknown }).bytes : ownValue(value as Fields, name);
}

/** As it stands in a list: what JSON does not know is null there. */
function plain(value: unknown): string {
  if (typeof value === "bigint") return `"${value}n"`;
  if (value instanceof Uint8Array) return `{"sha256":"${createHash("sha256").update(value).digest("hex")}"}`;
  return JSON.stringify(value) ?? "null";
}
