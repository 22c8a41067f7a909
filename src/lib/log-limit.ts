/** Limits log lines about one subject to one per interval, and counts those left out. */
import type { Clock } from "./clock.js";

/** Unspecified: subjects whose last line is remembered. Beyond it all are forgotten, so that a subject may be logged too early. */
const SUBJECTS_MAX = 1_000;

interface LastLine {
  readonly at: number;
  omitted: number;
}

export class LogLimit {
  private readonly lines = new Map<string, LastLine>();

  constructor(
    private readonly clock: Clock,
    private readonly intervalMs: number,
  ) {}

  /** Returns how many lines were left out since the last one. Null: this one is to be left out, too. */
  admit(subject: string): number | null {
    const now = this.clock.now().getTime();
    const last = this.lines.get(subject);
    if (last && now - last.at < this.intervalMs) {
      last.omitted += 1;
      return null;
    }
    if (this.lines.size >= SUBJECTS_MAX && !last) this.lines.clear();
    this.lines.set(subject, { at: now, omitted: 0 });
    return last?.omitted ?? 0;
  }
}
