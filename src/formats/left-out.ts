/** Warnings about fields that are left out. */
import { quoteStart } from "../lib/quote-start.js";

/** Characters of a client's text in a warning, and names in one. */
export const NAME_CHARS_MAX = 64;
const NAMES_TOLD_MAX = 8;

export function listed(names: readonly string[]): string {
  const told = names.slice(0, NAMES_TOLD_MAX).map((name) => quoteStart(name, NAME_CHARS_MAX));
  return told.join(", ") + (names.length > NAMES_TOLD_MAX ? " and others" : "");
}

/** `operation` has no such fields. */
export function explainUnread(names: readonly string[], operation: "chat" | "embedding"): readonly string[] {
  return names.length === 0 ? [] : [`${listed(names)}: left out, because no ${operation} has such a field.`];
}
