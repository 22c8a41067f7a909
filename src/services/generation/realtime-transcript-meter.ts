/** The meter of what a realtime session's upstream writes down of the caller's audio, by the items of the conversation. */
import { RecentIds } from "../../lib/recent-ids.js";
import { NO_USAGE, USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import type { RealtimeUsage } from "../../providers/openai/realtime-events.js";
import type { MeteredAnswer } from "./generations.js";
import { INPUT_MS_PER_TOKEN, REPORTS_REMEMBERED } from "./realtime-meter.js";

export class TranscriptMeter {
  /** What is to be transcribed, in milliseconds. */
  private readonly expected = new Map<string, number>();
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

  expect(itemId: string, milliseconds: number): void {
    this.expected.set(itemId, milliseconds);
  }

  /** Some upstreams write down what is no item yet. */
  noteProgress(itemId: string, milliseconds: number): void {
    if (!this.expected.has(itemId) && !this.finished.has(itemId)) this.expect(itemId, milliseconds);
  }

  /** A report that comes twice counts once; without one that can be believed, what was measured counts. */
  finish(itemId: string, reportId: string | null, usage: RealtimeUsage | null): void {
    const measured = this.expected.get(itemId) ?? 0;
    this.expected.delete(itemId);
    this.finished.add(itemId);
    if (reportId !== null && !this.reports.add(reportId)) return;
    this.hasReport = true;
    if (usage === null) this.isEstimated = true;
    this.reportedMs += usage === null ? measured : toMilliseconds(usage);
  }

  fail(itemId: string): void {
    this.expected.delete(itemId);
    this.finished.add(itemId);
  }

  /** With `more` milliseconds that are about to be handed in. */
  soFar(more = 0): MeteredAnswer {
    let milliseconds = this.reportedMs + more;
    for (const measured of this.expected.values()) milliseconds += measured;
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
