/** The meter of what a realtime session's upstream writes down of the caller's audio, by the items of the conversation. */
import { RecentIds } from "../../../lib/bounded.js";
import { NO_USAGE, USAGE_AMOUNT_MAX } from "../../../lib/usage.js";
import type { RealtimeUsage } from "../../../providers/openai/realtime-events.js";
import type { Metered } from "../run.js";
import { INPUT_MS_PER_TOKEN, REPORTS_REMEMBERED } from "./realtime-meter.js";

export class TranscriptMeter {
  /** How long items are, in milliseconds. */
  private readonly measured = new Map<string, number>();
  /** Those that are to be transcribed. */
  private readonly expected = new Set<string>();
  private readonly finished = new RecentIds(REPORTS_REMEMBERED);
  private readonly reports = new RecentIds(REPORTS_REMEMBERED);
  private reportedMs = 0;
  private hasReport = false;
  private isEstimated = false;

  get isAwaited(): boolean {
    return this.expected.size > 0;
  }

  get hasUsage(): boolean {
    return this.hasReport || this.isAwaited;
  }

  measure(itemId: string, milliseconds: number): void {
    this.measured.set(itemId, milliseconds);
    for (const oldest of this.measured.keys()) {
      if (this.measured.size <= REPORTS_REMEMBERED) break;
      if (!this.expected.has(oldest)) this.measured.delete(oldest);
    }
  }

  expect(itemId: string): void {
    this.expected.add(itemId);
  }

  /** A piece of a transcript. Some upstreams write down what is no item yet: so much audio, then. */
  noteProgress(itemId: string, milliseconds: number): void {
    if (this.finished.has(itemId)) return;
    if (!this.measured.has(itemId)) this.measure(itemId, milliseconds);
    this.expect(itemId);
  }

  /** A report that comes twice counts once; without one that can be believed, what was measured counts. */
  finish(itemId: string, reportId: string | null, usage: RealtimeUsage | null): void {
    const measured = this.measured.get(itemId) ?? 0;
    this.forget(itemId);
    if (reportId !== null && !this.reports.add(reportId)) return;
    this.hasReport = true;
    if (usage === null) this.isEstimated = true;
    this.reportedMs += usage === null ? measured : toMilliseconds(usage);
  }

  fail(itemId: string): void {
    this.forget(itemId);
  }

  private forget(itemId: string): void {
    this.expected.delete(itemId);
    this.measured.delete(itemId);
    this.finished.add(itemId);
  }

  /** With `more` milliseconds that are about to be handed in. */
  soFar(more = 0): Metered {
    let milliseconds = this.reportedMs + more;
    for (const itemId of this.expected) milliseconds += this.measured.get(itemId) ?? 0;
    const quantities = { ...NO_USAGE, inputAudioMilliseconds: Math.min(milliseconds, USAGE_AMOUNT_MAX) };
    return { quantities, source: this.isAwaited ? "partial" : this.isEstimated ? "estimated" : "provider" };
  }
}

/** Transcription is priced by the second. Tokens of audio, or of input where they are not told apart, are 100 ms each. */
function toMilliseconds(usage: RealtimeUsage): number {
  if (usage.type === "duration") return usage.milliseconds;
  const { inputAudioTokens, inputTextTokens } = usage.quantities;
  return (inputAudioTokens || inputTextTokens) * INPUT_MS_PER_TOKEN;
}
