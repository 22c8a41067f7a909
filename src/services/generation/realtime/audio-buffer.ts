/**
 * The length of the client's audio that is not yet an item of the conversation. Where voice detection reports start and end of speech, only
 * speech counts, because silence is not part of an item.
 */
import { PCM_BYTES_PER_SECOND } from "../../../providers/openai/realtime-events.js";

export class RealtimeAudioBuffer {
  bytesPerSecond = PCM_BYTES_PER_SECOND;
  totalMilliseconds = 0;
  private bytes = 0;
  private startMs: number | null = null;
  private endMs: number | null = null;

  get milliseconds(): number {
    return this.toMilliseconds(this.bytes);
  }

  append(bytes: number): void {
    this.bytes += bytes;
    this.totalMilliseconds += (bytes * 1_000) / this.bytesPerSecond;
  }

  noteSpeech({ startMs, endMs }: { readonly startMs?: number | undefined; readonly endMs?: number | undefined }): void {
    this.startMs = startMs ?? this.startMs;
    this.endMs = endMs ?? this.endMs;
  }

  clear(): void {
    this.bytes = 0;
    this.startMs = null;
    this.endMs = null;
  }

  /** Returns the length of its item in milliseconds. */
  commit(): number {
    const [whole, start, end] = [this.milliseconds, this.startMs, this.endMs];
    this.clear();
    return start !== null && end !== null && end >= start ? Math.min(whole, end - start) : whole;
  }

  toMilliseconds(bytes: number): number {
    return Math.ceil((bytes * 1_000) / this.bytesPerSecond);
  }
}
