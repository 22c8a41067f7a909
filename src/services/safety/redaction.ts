/**
 * Redacts texts: each finding is replaced by a mark that names its kind, and every other character stays.
 *
 * Detectors are synchronous and linear. A long text is scanned in windows, with turns of the event loop between them; neighbouring windows
 * overlap so that every finding is whole in one of them.
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
  /** Offsets in the text, the end exclusive. */
  readonly start: number;
  readonly end: number;
  readonly mark: Mark;
}

/** In any order; findings may overlap, and the earliest names the result. */
export type Detect = (text: string) => readonly Finding[];

/** The most context that a detector uses around a finding. */
const EDGE_CHARS = 256;

/** Findings of each text, disjoint and in order. Overlapping and adjoining findings become one, named by the earliest. */
export async function findAll(texts: readonly string[], detect: Detect): Promise<readonly (readonly Finding[])[]> {
  const found: (readonly Finding[])[] = [];
  let charsInTurn = 0;
  for (const text of texts) {
    const findings: Finding[] = [];
    for (let start = 0; start === 0 || start < text.length; start += SAFETY_WINDOW_CHARS) {
      if (charsInTurn >= SAFETY_WINDOW_CHARS) {
        charsInTurn = 0;
        await nextTurn();
      }
      for (const finding of detectInWindow(text, start, detect)) findings.push(finding);
      charsInTurn += Math.min(text.length, SAFETY_WINDOW_CHARS);
    }
    found.push(merged(findings));
  }
  return found;
}

/**
 * Findings from `start` to one window's length beyond, reaching into the next window. Those near an edge that is not the text's own are
 * left out: the neighbour sees more of their context.
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

function merged(findings: readonly Finding[]): readonly Finding[] {
  if (findings.length < 2) return findings;
  const disjoint: Finding[] = [];
  for (const finding of [...findings].sort((one, other) => one.start - other.start || other.end - one.end)) {
    const last = disjoint.at(-1);
    if (!last || finding.start >= last.end) disjoint.push(finding);
    else if (finding.end > last.end) disjoint[disjoint.length - 1] = { ...last, end: finding.end };
  }
  return disjoint;
}
