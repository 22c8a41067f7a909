/** Finds misspelt variables: names that are not read, and nearly match names that are. */
import { distance } from "fastest-levenshtein";

/** Read by the command line and the examples, not by the gateway. */
export const COMMAND_NAMES = ["SLUICE_URL", "SLUICE_KEY", "SLUICE_API_KEY", "SLUICE_APP_KEY"] as const;

/** Short names of other programs resemble each other: names with a shorter distinct part are never reported. */
const ONE_EDIT_CHARS_MIN = 5;
const TWO_EDITS_CHARS_MIN = 8;

/** Names that deployments of other programs set, which are not misspelt and not read. */
const NOT_READ: readonly (readonly [RegExp, string])[] = [
  [/^OTEL_EXPORTER_/, "metrics are scraped at /metrics, and traces are not sent"],
  [/^SMTP_UR[IL]$/, "the gateway sends no e-mail"],
  [/^REDIS_URI$/, "set REDIS_URL"],
];

/** A sentence for each name of `given` that has no effect here. */
export function findUnread(given: readonly string[], read: ReadonlySet<string>): string[] {
  return given.flatMap((name) => {
    const reason = read.has(name) ? undefined : NOT_READ.find(([pattern]) => pattern.test(name))?.[1];
    return reason === undefined ? [] : [`${name} is not read: ${reason}.`];
  });
}

/**
 * A sentence for each name of `given` that is not in `read` and resembles one of `offered`. Never shows values, which may be secrets. A
 * name whose correct form is also set is skipped.
 */
export function findMisspelt(given: readonly string[], read: ReadonlySet<string>, offered: readonly string[]): string[] {
  const set = new Set(given);
  return given.flatMap((name) => {
    if (read.has(name)) return [];
    const meant = offered.find((known) => isSame(name, known)) ?? offered.find((known) => isNear(name, known));
    return meant === undefined || set.has(meant) ? [] : [`${name} is not read; did you mean ${meant}?`];
  });
}

/** Equal except for case, underscores, and the product's name as a prefix. */
function isSame(name: string, known: string): boolean {
  const plain = plainOf(name);
  return plain === plainOf(known) || plain === `SLUICE${plainOf(known)}`;
}

/** Compares without common first and last words, so that OTHER_API_KEY does not match another vendor's. */
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
