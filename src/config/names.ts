/** Variables that somebody set in vain: names that are not read, and are nearly those of some that are. */
import { distance } from "fastest-levenshtein";

/** Read by the command line and the examples, and not by the gateway. */
export const COMMAND_NAMES = ["SLUICE_URL", "SLUICE_KEY", "SLUICE_API_KEY", "SLUICE_APP_KEY"] as const;

/** Other programs' variables are many and short ones resemble each other: a part of fewer characters counts as misspelt by no edit. */
const ONE_EDIT_CHARS_MIN = 5;
const TWO_EDITS_CHARS_MIN = 8;

/**
 * A sentence for each name of `given` that is not among `read` and seems to mean one of `offered`. Names alone: values may be secrets.
 * A name that is set rightly as well is not asked about.
 */
export function findMisspelt(given: readonly string[], read: ReadonlySet<string>, offered: readonly string[]): string[] {
  const set = new Set(given);
  return given.flatMap((name) => {
    if (read.has(name)) return [];
    const meant = offered.find((known) => isSame(name, known)) ?? offered.find((known) => isNear(name, known));
    return meant === undefined || set.has(meant) ? [] : [`${name} is not read; did you mean ${meant}?`];
  });
}

/** But for case, underscores, and the product's name before it. */
function isSame(name: string, known: string): boolean {
  const plain = plainOf(name);
  return plain === plainOf(known) || plain === `SLUICE${plainOf(known)}`;
}

/** By what is left when the words that both begin and end with are taken away, so that OTHER_API_KEY is not taken for another vendor's. */
function isNear(name: string, known: string): boolean {
  const [one, other] = [name.split("_"), known.split("_")];
  while (one.length > 0 && one[0] === other[0]) {
    one.shift();
    other.shift();
  }
  while (one.length > 0 && one.at(-1) === other.at(-1)) {
    one.pop();
    other.pop();
  }
  const [left, right] = [one.join(""), other.join("")];
  const shorter = Math.min(left.length, right.length);
  const edits = shorter >= TWO_EDITS_CHARS_MIN ? 2 : shorter >= ONE_EDIT_CHARS_MIN ? 1 : 0;
  return edits > 0 && Math.abs(left.length - right.length) <= edits && distance(left, right) <= edits;
}

function plainOf(name: string): string {
  return name.replaceAll("_", "").toUpperCase();
}
