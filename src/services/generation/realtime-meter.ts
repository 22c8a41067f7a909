/**
 * The meter of a realtime session: what its upstream has reported for each answer, and what has come of the answer under way,
 * which is counted when no report follows.
 */
import { countTextTokens } from "../../lib/tokenizer.js";
import { NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import {
  addUsage,
  base64Bytes,
  PCM_BYTES_PER_SECOND,
  parseRealtimeEvent,
  type RealtimeReading,
  readRealtimeEvent,
} from "../../providers/openai/realtime-events.js";
import type { MeteredAnswer } from "./generations.js";
import { writtenTexts } from "./realtime-safety.js";

/** OpenAI's measure: a token of input is 100 ms of audio, one of output 50 ms. */
const INPUT_TOKENS_PER_SECOND = 10;
const OUTPUT_TOKENS_PER_SECOND = 20;
const APPEND = '"input_audio_buffer.append"';

export class RealtimeMeter {
  private reported: UsageQuantities = NO_USAGE;
  private isEstimated = false;
  private hasWork = false;
  private outputBytesPerSecond = PCM_BYTES_PER_SECOND;
  /** Of the answer under way. */
  private readonly texts: string[] = [];
  private audioBytes = 0;
  /** What the caller has written and said. */
  private writtenTokens = 0;
  private spokenBytes = 0;

  /** Something has been delivered or reported. */
  get hasUsage(): boolean {
    return this.hasWork;
  }

  readUpstream(text: string): RealtimeReading["kind"] {
    const reading = readRealtimeEvent(text);
    if (reading.kind === "audio") this.outputBytesPerSecond = reading.bytesPerSecond;
    if (reading.kind === "delta") this.addDelta(reading.text, reading.audioBytes);
    if (reading.kind === "done") this.finish(reading.usage);
    return reading.kind;
  }

  readCaller(text: string): void {
    const event = parseRealtimeEvent(text);
    if (!event) return;
    if (text.includes(APPEND) && typeof event.audio === "string") this.spokenBytes += base64Bytes(event.audio);
    else for (const written of writtenTexts(event)) this.writtenTokens += countTextTokens(written);
  }

  /** Everything so far, the answer under way as it would be billed if the session ended now. */
  soFar(): MeteredAnswer {
    const isCut = this.isUnderWay;
    const quantities = isCut ? addUsage(this.reported, this.counted()) : this.reported;
    if (isCut) return { quantities, source: "partial" };
    return { quantities, source: this.isEstimated ? "estimated" : "provider" };
  }

  private get isUnderWay(): boolean {
    return this.texts.length > 0 || this.audioBytes > 0;
  }

  private addDelta(text: string, audioBytes: number): void {
    this.hasWork = true;
    if (text !== "") this.texts.push(text);
    this.audioBytes += audioBytes;
  }

  private finish(usage: UsageQuantities | null): void {
    this.hasWork = true;
    if (usage === null) this.isEstimated = true;
    this.reported = addUsage(this.reported, usage ?? this.counted());
    this.texts.length = 0;
    this.audioBytes = 0;
  }

  /** An answer reads all that was said before it. */
  private counted(): UsageQuantities {
    return {
      ...NO_USAGE,
      inputTextTokens: this.writtenTokens,
      inputAudioTokens: Math.ceil((this.spokenBytes / PCM_BYTES_PER_SECOND) * INPUT_TOKENS_PER_SECOND),
      outputTextTokens: this.texts.length === 0 ? 0 : countTextTokens(this.texts.join("")),
      outputAudioTokens: Math.ceil((this.audioBytes / this.outputBytesPerSecond) * OUTPUT_TOKENS_PER_SECOND),
    };
  }
}
