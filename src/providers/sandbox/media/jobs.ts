/** Jobs of the sandbox's worker threads, and their messages: plain data, copied between threads. */
import type { SpeechFormat } from "../../media.js";

export interface ImageJob {
  readonly kind: "image";
  readonly prompt: string;
  readonly seed: number;
  /** Pixels; null is the first source's own size, or the sandbox's usual one. */
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly count: number;
  readonly format: "jpeg" | "png" | "webp";
  /** 1 to 100, of the lossy formats. */
  readonly quality: number;
  readonly isTransparent: boolean;
  readonly sources: readonly Uint8Array[];
  readonly mask: Uint8Array | null;
}

export interface ImageResult {
  readonly images: readonly { readonly bytes: Uint8Array; readonly width: number; readonly height: number }[];
}

export interface VideoJob {
  readonly kind: "video";
  readonly prompt: string;
  readonly seed: number;
  readonly width: number;
  readonly height: number;
  readonly seconds: number;
  readonly hasAudio: boolean;
  readonly sources: readonly Uint8Array[];
}

export interface SpeechJob {
  readonly kind: "speech";
  readonly text: string;
  readonly voice: string;
  readonly speed: number;
  readonly format: SpeechFormat;
}

export interface MusicJob {
  readonly kind: "music";
  readonly prompt: string;
  readonly seed: number;
  readonly seconds: number;
  readonly format: SpeechFormat;
}

/** Formats with the length in the header: nothing can be sent before the end. */
export function isSentWhole(format: SpeechFormat): boolean {
  return format === "wav" || format === "flac";
}

/** Tag of the sandbox's own recordings; the comment is the text. */
export const SPEECH_ALBUM = "Sluice sandbox speech";

export interface TranscriptionJob {
  readonly kind: "transcription";
  readonly bytes: Uint8Array;
}

export interface TranscriptionResult {
  /** The text of sandbox speech; null for other recordings. */
  readonly text: string | null;
  readonly durationMs: number;
}

export interface BytesResult {
  readonly bytes: Uint8Array;
  readonly durationMs: number;
}

export interface JobResults {
  readonly image: ImageResult;
  readonly video: BytesResult;
  readonly speech: null;
  readonly music: BytesResult;
  readonly transcription: TranscriptionResult;
}

export type Job = ImageJob | VideoJob | SpeechJob | MusicJob | TranscriptionJob;
export type JobKind = Job["kind"];
export type JobOf<Kind extends JobKind> = Extract<Job, { readonly kind: Kind }>;

export type JobStep = { readonly percent: number } | { readonly chunk: Uint8Array };

/** Pauses after each step until the next one is requested. */
export type JobRun<Result> = AsyncGenerator<JobStep, Result, undefined>;

/** To the thread. A job starts with its first `next`. */
export type Request =
  | { readonly id: number; readonly do: "open"; readonly job: Job }
  | { readonly id: number; readonly do: "next" }
  | { readonly id: number; readonly do: "close" };

/** From the thread: the answer to each `next`. */
export type Reply =
  | { readonly id: number; readonly step: JobStep }
  | { readonly id: number; readonly result: JobResults[JobKind] }
  /** The client's error, in the form of an upstream's refusal. */
  | { readonly id: number; readonly refusal: { readonly message: string; readonly param: string | undefined } }
  | { readonly id: number; readonly failure: string };
