/**
 * Texts that PostgreSQL can store and UTF-8 can write: all but those with a NUL character or half of a surrogate pair. JSON that is valid
 * UTF-8 has either only by an escape (`\u0000`, `\ud83d`).
 */

import { ownValue } from "./own-values.js";

/** What is wrong with a text, to go on after its field's name and a colon; null when it can be stored. */
export function unstorableIn(text: string): string | null {
  if (text.includes("\0")) return "must not hold a NUL character";
  return text.isWellFormed() ? null : "must not hold half of a surrogate pair (a character that was cut in two)";
}

/** Characters that turn the direction of the text around them (Unicode Standard Annex 9, 2). */
export const BIDI_CONTROL = /\p{Bidi_Control}/u;

/** The text without what cannot be stored: for texts that others than the caller wrote. */
export function toStorable(text: string): string {
  return unstorableIn(text) === null ? text : text.toWellFormed().replaceAll("\0", "\uFFFD");
}

/** A name that others than the caller wrote, as `shownText` would take it. */
export function toShown(name: string): string {
  return toStorable(name).replace(/\p{Bidi_Control}/gu, "");
}

/** Valid JSON that was valid UTF-8 holds no text that cannot be stored unless it holds this. */
export const UNICODE_ESCAPE = "\\u";

export interface Unstorable {
  /** Where the text stands, dotted; of a name, the name itself is the last part. */
  readonly path: string;
  readonly problem: string;
}

/** The first text or name of a parsed JSON value that cannot be stored. */
export function findUnstorable(value: unknown): Unstorable | null {
  const found = search(value);
  return found && { path: found.names.reverse().join(".").toWellFormed(), problem: found.problem };
}

interface Found {
  /** Of the fields around the text, from within. */
  readonly names: string[];
  readonly problem: string;
}

/** As deep as the value, which has been bounded. */
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
