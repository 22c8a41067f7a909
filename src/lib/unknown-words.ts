/**
 * Reports unknown values in answers from outside, which are ignored otherwise. Each is logged the first time its source sends it, so that
 * operators see that a vocabulary has grown, and all are counted.
 */
import type { Logger } from "pino";

export const UNKNOWN_WORD_KINDS = ["job-status", "mcp-tool", "mcp-content", "usage-name"] as const;
export type UnknownWordKind = (typeof UNKNOWN_WORD_KINDS)[number];

export type OnUnknownWord = (kind: UnknownWordKind, word: string) => void;

/** The most lines logged: a hostile upstream may send a new word each time. */
const LINES_MAX = 500;
const WORD_CHARS_MAX = 64;
/** Characters outside of names are replaced in the log. */
const UNUSUAL = /[^A-Za-z0-9 _.:/-]/g;

export class UnknownWords {
  private readonly logged = new Set<string>();

  constructor(
    private readonly log: Pick<Logger, "warn">,
    private readonly count: (kind: UnknownWordKind) => void,
  ) {}

  /** `source` is the id of an upstream or of a server. */
  note(source: string, kind: UnknownWordKind, word: string): void {
    this.count(kind);
    const shown = word.slice(0, WORD_CHARS_MAX).replace(UNUSUAL, "?");
    const line = `${kind} ${source} ${shown}`;
    if (this.logged.has(line) || this.logged.size >= LINES_MAX) return;
    this.logged.add(line);
    this.log.warn({ event: "unknown-word", kind, source, word: shown }, "an answer holds a word that is not known; it is read past");
  }
}
