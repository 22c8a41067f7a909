/**
 * Texts that PostgreSQL can store and UTF-8 can encode: without NUL and lone surrogates. JSON in valid UTF-8 can have either only as an
 * escape (`\u0000`, `\ud83d`).
 */

import { ownValue } from "./own-values.js";

/** The fault of a text, to follow its field's name and a colon; null when it can be stored. */
export function unstorableIn(text: string): string | null {
  if (text.includes("\0")) return "must not hold a NUL character";
  return text.isWellFormed() ? null : "must not hold half of a surrogate pair (a character that was cut in two)";
}

/** Characters that change the direction of surrounding text (Unicode Standard Annex 9, 2). */
export const BIDI_CONTROL = /\p{Bidi_Control}/u;

/** Removes characters that cannot be stored, from text that the caller did not write. */
export function toStorable(text: string): string {
  return unstorableIn(text) === null ? text : text.toWellFormed().replaceAll("\0", "\uFFFD");
}

/** Cleans a name that the caller did not write to pass `shownText`. */
export function toShown(name: string): string {
  return toStorable(name).replace(/\p{Bidi_Control}/gu, "");
}

/** Escapes `%`, `_` and their escape, which are patterns in SQL's LIKE, also in Prisma's `contains` and `startsWith`. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

/** Valid JSON in valid UTF-8 holds no unstorable text without this. */
export const UNICODE_ESCAPE = "\\u";

export interface Unstorable {
  /** Dotted path of the text; for a name, the name is the last part. */
  readonly path: string;
  readonly problem: string;
}

/** The first text or name of a parsed JSON value that cannot be stored. */
export function findUnstorable(value: unknown): Unstorable | null {
  const found = search(value);
  return found && { path: found.names.reverse().join(".").toWellFormed(), problem: found.problem };
}

interface Found {
  /** Fields around the text, innermost first. */
  readonly names: string[];
  readonly problem: string;
}

/** Recursion is bounded by the depth of the value. */
function search(value: unknown): Found | null {
  if (typeof value === "string") {
    const problem = unstorableIn(value);
    return problem === null ? null : { names: [], problem };
  }
  if (typeof value !== "object" || value === null) return null;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const found = search(value[index]);
      if (found !== null) return within(found, String(index));
    }
    return null;
  }
  for (const name of Object.keys(value)) {
    const problem = unstorableIn(name);
    const found = problem === null ? search(ownValue(value as Readonly<Record<string, unknown>>, name)) : { names: [], problem };
    if (found !== null) return within(found, name);
  }
  return null;
}

function within(found: Found, name: string): Found {
  found.names.push(name);
  return found;
}
