/**
 * What had no effect, or had another one than was asked for, in sentences to the caller: `X-Warnings` over REST, `receipt.warnings` over
 * GraphQL. Whoever makes a receipt joins its warnings here, where they are bounded: some repeat what a caller or an upstream wrote, and
 * proxies on the way refuse an answer whose headers are too long.
 */

/** Unspecified: how many warnings one answer has, and how long each and all of them together may be. */
const WARNINGS_MAX = 16;
const WARNING_CHARS_MAX = 400;
const ALL_CHARS_MAX = 2_000;
const NONE: readonly string[] = [];

/** Each once, in order. */
export function joinWarnings(...lists: readonly (readonly string[])[]): readonly string[] {
  if (lists.every(({ length }) => length === 0)) return NONE;
  const all = new Set(lists.flat());
  const told: string[] = [];
  let chars = 0;
  for (const warning of all) {
    const text = quoteStart(warning, WARNING_CHARS_MAX);
    chars += text.length;
    if (told.length >= WARNINGS_MAX || chars > ALL_CHARS_MAX) break;
    told.push(text);
  }
  return told.length < all.size ? [...told, `There are ${all.size - told.length} more warnings.`] : told;
}

/** The beginning of what somebody else wrote. */
export function quoteStart(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
}
