/**
 * Rewriting texts: what detectors find is replaced by a mark that says what was there, and every other character stays.
 *
 * Detectors are synchronous and take time in proportion to what they are given. A long text is given to them in windows, between
 * which other requests have their turn; neighbouring windows share so much text that whatever is found is whole in one of them.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { SAFETY_OVERLAP_CHARS, SAFETY_WINDOW_CHARS } from "../../limits.js";

export const MARKS = {
  email: "[REDACTED_EMAIL]",
  phone: "[REDACTED_PHONE]",
  card: "[REDACTED_CARD]",
  bankAccount: "[REDACTED_BANK_ACCOUNT]",
  ipAddress: "[REDACTED_IP_ADDRESS]",
  secret: "[REDACTED_SECRET]",
} as const;
export type Mark = (typeof MARKS)[keyof typeof MARKS];

export interface Finding {
  /** Offsets in the text, the second one exclusive. */
  readonly start: number;
  readonly end: number;
  readonly mark: Mark;
}

/** In any order; findings may overlap, and the earliest names what becomes of them. */
export type Detect = (text: string) => readonly Finding[];

/** As far as any detector looks around what it finds. */
const EDGE_CHARS = 256;

/** The texts, each rewritten where something was found in it. */
export async function redactAll(texts: readonly string[], detect: Detect): Promise<readonly string[]> {
  const redacted: string[] = [];
  let charsInTurn = 0;
  for (const text of texts) {
    const findings: Finding[] = [];
    for (let start = 0; start === 0 || start < text.length; start += SAFETY_WINDOW_CHARS) {
      if (charsInTurn >= SAFETY_WINDOW_CHARS) {
        charsInTurn = 0;
        await nextTurn();
      }
      findings.push(...detectInWindow(text, start, detect));
      charsInTurn += Math.min(text.length, SAFETY_WINDOW_CHARS);
    }
    redacted.push(replace(text, findings));
  }
  return redacted;
}

/**
 * What is found between `start` and a window's length beyond, reaching into the next one. Findings near an edge that is not the
 * text's own are left out: the neighbour sees more of what is around them.
 */
function detectInWindow(text: string, start: number, detect: Detect): readonly Finding[] {
  const end = start + SAFETY_WINDOW_CHARS + SAFETY_OVERLAP_CHARS;
  if (start === 0 && end >= text.length) return detect(text);
  const isFirst = start === 0;
  const isLast = end >= text.length;
  const length = Math.min(end, text.length) - start;
  return detect(text.slice(start, end))
    .filter((found) => (isFirst || found.start >= EDGE_CHARS) && (isLast || found.end <= length - EDGE_CHARS))
    .map((found) => ({ ...found, start: found.start + start, end: found.end + start }));
}

/** Marks of which a JSON text's numbers were replaced become texts of it, so that it can still be read. */
export function quoteMarksInJson(before: string, after: string): string {
  if (!isJson(before) || isJson(after)) return after;
  let isInText = false;
  const quoted = after.replace(QUOTE_OR_MARK, (part) => {
    if (part === '"') isInText = !isInText;
    return isInText || !part.startsWith("[") ? part : `"${part}"`;
  });
  return isJson(quoted) ? quoted : after;
}

/** Piece by piece: a pattern for a whole text at once would need a stack as deep as the text is long. */
const QUOTE_OR_MARK = /"|\\.|\[REDACTED_[A-Z_]{1,20}\]/gs;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Findings that overlap or repeat each other become one mark. */
function replace(text: string, findings: readonly Finding[]): string {
  if (findings.length === 0) return text;
  const sorted = [...findings].sort((one, other) => one.start - other.start || other.end - one.end);
  const parts: string[] = [];
  let copied = 0;
  for (const { start, end, mark } of sorted) {
    if (start >= copied) parts.push(text.slice(copied, start), mark);
    copied = Math.max(copied, end);
  }
  parts.push(text.slice(copied));
  return parts.join("");
}
