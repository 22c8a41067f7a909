/** The sandbox's speech model: a real synthesizer, sentence by sentence (docs/sandbox-models.md). */
import { setImmediate as nextTurn } from "node:timers/promises";
import { NO_USAGE } from "../../lib/usage.js";
import {
  type MusicAnswer,
  type MusicCall,
  type MusicProvider,
  SPEECH_CONTENT_TYPES,
  type SpeechCall,
  type SpeechProvider,
  type SpeechStream,
  type TranscriptionAnswer,
  type TranscriptionCall,
  type TranscriptionProvider,
  type TranscriptSegment,
} from "../media.js";
import type { Directives } from "./directives.js";
import { SANDBOX_MUSIC_SECONDS, SANDBOX_MUSIC_SECONDS_MAX, SANDBOX_WHOLE_SPEECH_CHARS_MAX } from "./limits.js";
import { begin, obey, promptOf, readDirectives, reportTokens, runPaced, type SandboxMedia, troubleOf } from "./media/calls.js";
import { isSentWhole, type JobStep } from "./media/jobs.js";
import { SANDBOX_VOICES } from "./media/voices.js";
import { refuse } from "./refusal.js";
import { wait } from "./stream.js";

const SPEED_MIN = 0.25;
const SPEED_MAX = 4;

export function createSandboxSpeechProvider(media: SandboxMedia): SpeechProvider {
  return { stream: (call) => stream(media, call) };
}

async function stream(media: SandboxMedia, call: SpeechCall): Promise<SpeechStream> {
  call.signal.throwIfAborted();
  const directives = readDirectives(call.input, "input");
  const { trouble } = directives;
  // A hang after some chunks comes later.
  await obey(trouble?.afterChunks == null ? directives : { ...directives, trouble: null }, media.timeouts.idleMs, call.signal);
  const speed = call.speed ?? 1;
  if (speed < SPEED_MIN || speed > SPEED_MAX)
    throw refuse(`The sandbox speaks at ${SPEED_MIN} to ${SPEED_MAX} times its own speed.`, "speed");
  if (!SANDBOX_VOICES.includes(call.voice))
    throw refuse(`There is no voice ${call.voice}: use one of ${SANDBOX_VOICES.join(", ")}.`, "voice");
  const text = promptOf(directives);
  if (isSentWhole(call.format) && text.length / speed > SANDBOX_WHOLE_SPEECH_CHARS_MAX) {
    throw refuse(`That is too long for ${call.format} at this speed: it is sent when all is spoken. Use mp3, opus, aac or pcm.`, "speed");
  }
  // A disconnect ends the job at once, even within a sentence.
  const leaving = new AbortController();
  const signal = AbortSignal.any([call.signal, leaving.signal]);
  const job = { kind: "speech", text, voice: call.voice, speed, format: call.format } as const;
  const steps = media.pool.open<"speech">(job, signal);
  try {
    // The first chunk begins the answer: an earlier failure has its own status.
    const first = await steps.next();
    const chunks = new SpeechChunks(first, steps, directives, media.timeouts.idleMs, call.signal, leaving);
    return { contentType: SPEECH_CONTENT_TYPES[call.format], chunks, warnings: warningsOf(call) };
  } catch (error) {
    await steps.return(null);
    throw error;
  }
}

function warningsOf({ instructions }: SpeechCall): readonly string[] {
  return instructions === null ? [] : ["The sandbox's voices take no instructions."];
}

type Step = IteratorResult<JobStep, null>;
const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The chunks of a job, with delays and failures from its directives. */
class SpeechChunks implements AsyncIterableIterator<Uint8Array, undefined> {
  private sent = 0;
  private isOver = false;
  private isTroubleOver = false;

  constructor(
    private first: Step | null,
    private readonly steps: AsyncGenerator<JobStep, null, undefined>,
    private readonly directives: Directives,
    private readonly idleMs: number,
    private readonly signal: AbortSignal,
    private readonly leaving: AbortController,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.isOver) return END;
    try {
      for (;;) {
        const step = await this.nextStep();
        await this.makeTrouble(step.done === true);
        if (this.isOver) return END;
        if (step.done) {
          this.isOver = true;
          return END;
        }
        if (!("chunk" in step.value)) continue;
        if (this.sent > 0) await wait(this.directives.paceMs, this.idleMs, this.signal);
        this.sent += 1;
        return { done: false, value: step.value.chunk };
      }
    } catch (error) {
      const hasLeft = this.isOver;
      await this.return();
      if (hasLeft) return END;
      throw error;
    }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.isOver = true;
    this.leaving.abort();
    // Settles once the current step has been given up.
    void this.steps.return(null).catch(() => undefined);
    await nextTurn();
    return END;
  }

  private async nextStep(): Promise<Step> {
    const { first } = this;
    this.first = null;
    return first ?? this.steps.next();
  }

  /** Without a number, failures come after the first chunk. With fewer chunks, they come at the end. */
  private async makeTrouble(isEnd: boolean): Promise<void> {
    const { trouble } = this.directives;
    if (trouble === null || this.isTroubleOver) return;
    if (this.sent < (trouble.afterChunks ?? 1) && !isEnd) return;
    this.isTroubleOver = true;
    if (trouble.kind === "hang") await wait(Number.POSITIVE_INFINITY, this.idleMs, this.signal);
    else throw troubleOf(trouble.kind);
  }
}

// The sandbox's music model: a tune composed from prompt and seed (docs/sandbox-models.md).

export function createSandboxMusicProvider(media: SandboxMedia): MusicProvider {
  return { generate: (call) => generate(media, call) };
}

async function generate(media: SandboxMedia, call: MusicCall): Promise<MusicAnswer> {
  const directives = await begin(call.prompt, "prompt", call.signal, media.timeouts);
  const seconds = call.seconds ?? SANDBOX_MUSIC_SECONDS;
  if (!(seconds > 0) || seconds > SANDBOX_MUSIC_SECONDS_MAX) {
    throw refuse(`The sandbox plays ${SANDBOX_MUSIC_SECONDS_MAX} seconds at most.`, "duration");
  }
  const job = { kind: "music", prompt: promptOf(directives), seed: call.seed ?? 0, seconds, format: call.format } as const;
  const { bytes, durationMs } = await runPaced<"music">(media, job, directives, call.signal);
  return {
    bytes,
    contentType: SPEECH_CONTENT_TYPES[call.format],
    durationMs,
    usage: directives.reportsUsage ? { ...NO_USAGE, outputAudioMilliseconds: durationMs } : null,
    warnings: [],
  };
}

// The sandbox's transcription model: it returns text that sandbox speech stored in its files (docs/sandbox-models.md).

export function createSandboxTranscriptionProvider(media: SandboxMedia): TranscriptionProvider {
  return { transcribe: (call) => transcribe(media, call) };
}

async function transcribe(media: SandboxMedia, call: TranscriptionCall): Promise<TranscriptionAnswer> {
  const directives = await begin(call.prompt ?? "", "prompt", call.signal, media.timeouts);
  const job = { kind: "transcription", bytes: call.audio.bytes } as const;
  const heard = await runPaced<"transcription">(media, job, directives, call.signal);
  const seconds = heard.durationMs / 1_000;
  const text = directives.text ?? heard.text ?? unknownRecording(seconds);
  const sentences = [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(text)].map(({ segment }) => segment);
  return {
    text,
    language: call.language ?? "en",
    durationMs: heard.durationMs,
    segments: call.wantsSegments ? withSpeaker(overTime(sentences, seconds), call.wantsSpeakers) : null,
    words: call.wantsWords ? overTime(text.split(/(?<=\s)(?=\S)/), seconds) : null,
    // It is billed by seconds, which are measured.
    usage: Object.keys(directives.tokens).length > 0 ? reportTokens(directives, {}) : null,
    warnings: call.temperature === null ? [] : ["The sandbox does not vary its transcripts: temperature had no effect."],
  };
}

function unknownRecording(seconds: number): string {
  return `This is the Sluice sandbox: it transcribes only what sandbox speech has spoken, and this recording of ${seconds.toFixed(1)} seconds is not its own.`;
}

function overTime(parts: readonly string[], seconds: number): readonly TranscriptSegment[] {
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  const at = (chars: number) => Math.round((chars / Math.max(1, total)) * seconds * 1_000) / 1_000;
  let chars = 0;
  return parts.flatMap((part) => {
    const start = at(chars);
    chars += part.length;
    const text = part.trim();
    return text === "" ? [] : [{ start, end: at(chars), text }];
  });
}

/** A recording of sandbox speech has one voice. */
function withSpeaker(segments: readonly TranscriptSegment[], isNamed = false): readonly TranscriptSegment[] {
  return isNamed ? segments.map((segment) => ({ ...segment, speaker: "A" })) : segments;
}
