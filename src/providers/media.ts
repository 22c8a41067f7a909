/**
 * What an upstream can do beside chat, one interface per modality. Calls carry what the caller asked for, checked by the
 * services; `null` is "not stated", and nothing is made up for it. An option that a wire format cannot express is named in the
 * answer's `warnings`, never dropped in silence. Everything here rejects as `ChatProvider` does: with a ProviderError, or
 * with the signal's reason when that is aborted.
 */
import type { GeneratedType } from "../lib/content-types.js";
import type { UsageQuantities } from "../lib/usage.js";

/** A file that a model made. Its type is one of ours: what the upstream calls it is not passed on. */
export interface MediaFile {
  readonly bytes: Uint8Array;
  readonly contentType: GeneratedType;
}

/** A file that a caller brought, uploaded or by its address. */
export interface InputFile {
  readonly bytes: Uint8Array;
  /** A media type without parameters, such as `image/png`. */
  readonly contentType: string;
  readonly name: string;
}

interface Call {
  /** The upstream's own name for the model. */
  readonly upstreamModel: string;
  /** Aborted when the caller has gone or the total time is up. */
  readonly signal: AbortSignal;
  /** Fields of the caller's /v1 body that the gateway does not know: they reach an OpenAI-format upstream as they are. */
  readonly extra: Readonly<Record<string, unknown>>;
}

interface Answer {
  /** Null when the upstream reported none that can be believed: the gateway counts. */
  readonly usage: UsageQuantities | null;
  /** One sentence for each option that had no effect. */
  readonly warnings: readonly string[];
}

export interface ImageCall extends Call {
  readonly prompt: string;
  /** Pixels; null leaves the size to the upstream. */
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly count: number;
  readonly seed: number | null;
  readonly negativePrompt: string | null;
  readonly quality: string | null;
  readonly isTransparent: boolean;
  /** What the caller wants to receive; null takes what the model makes. */
  readonly format: "jpeg" | "png" | "webp" | null;
  /** Think about text and layout first. */
  readonly reasoning: boolean | null;
  /** References, or the pictures to edit: with any, it is an edit. */
  readonly images: readonly InputFile[];
  readonly mask: InputFile | null;
}

export interface ImageAnswer extends Answer {
  readonly images: readonly (MediaFile & {
    readonly revisedPrompt: string | null;
    /** The same bytes as base64 in ASCII, when they came so: whoever answers them like that need not encode them. */
    readonly base64?: Uint8Array;
  })[];
  /** For whoever will not look at the pictures again: after it, they are of no bytes. */
  readonly release?: () => void;
}

export interface ImageProvider {
  generate(call: ImageCall): Promise<ImageAnswer>;
}

export interface VideoCall extends Call {
  readonly prompt: string;
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly aspectRatio: "16:9" | "9:16" | null;
  /** Null leaves the length to the upstream. */
  readonly seconds: number | null;
  readonly hasAudio: boolean;
  readonly seed: number | null;
  readonly negativePrompt: string | null;
  readonly images: readonly InputFile[];
  /** Told as the upstream tells, 0 to 100. */
  readonly onProgress: (percent: number) => void;
}

export interface VideoAnswer extends Answer, MediaFile {
  /** Null when it is not known: what was asked for is billed. */
  readonly durationMs: number | null;
}

export interface VideoProvider {
  generate(call: VideoCall): Promise<VideoAnswer>;
}

export const SPEECH_FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const;
export type SpeechFormat = (typeof SPEECH_FORMATS)[number];

/** `pcm` is 16-bit little-endian mono at 24 kHz (OpenAI's "Create speech"). */
export const SPEECH_CONTENT_TYPES: Readonly<Record<SpeechFormat, GeneratedType>> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
};

export interface SpeechCall extends Call {
  readonly input: string;
  readonly voice: string;
  readonly format: SpeechFormat;
  /** 0.25 to 4; null is the voice's own. */
  readonly speed: number | null;
  readonly instructions: string | null;
}

/** Speech as it is made. `usage` is read when the chunks have ended. */
export interface SpeechStream {
  readonly contentType: GeneratedType;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly warnings: readonly string[];
}

export interface SpeechProvider {
  /** Resolves when the upstream has begun to answer; `return()` on the chunks closes its connection. */
  stream(call: SpeechCall): Promise<SpeechStream>;
}

export interface MusicCall extends Call {
  readonly prompt: string;
  readonly seconds: number | null;
  readonly format: SpeechFormat;
  readonly seed: number | null;
}

export interface MusicAnswer extends Answer, MediaFile {
  readonly durationMs: number | null;
}

export interface MusicProvider {
  generate(call: MusicCall): Promise<MusicAnswer>;
}

export interface TranscriptionCall extends Call {
  readonly audio: InputFile;
  /** ISO 639-1; null: found out. */
  readonly language: string | null;
  readonly prompt: string | null;
  readonly temperature: number | null;
  /** Whether segments and words with their times are wanted. */
  readonly wantsSegments: boolean;
  readonly wantsWords: boolean;
}

/** What OpenAI tells of a segment beside its words and times: how it was decoded. Under its own names, because nothing here reads them. */
export interface SegmentDecoding {
  readonly id: number;
  readonly seek: number;
  readonly tokens: readonly number[];
  readonly temperature: number;
  readonly avg_logprob: number;
  readonly compression_ratio: number;
  readonly no_speech_prob: number;
}

export interface TranscriptSegment {
  /** Seconds from the beginning. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** As much of it as the upstream told. */
  readonly decoding?: Partial<SegmentDecoding>;
}

export interface TranscriptionAnswer extends Answer {
  readonly text: string;
  readonly language: string | null;
  /** Length of the recording; null when the upstream does not tell. */
  readonly durationMs: number | null;
  readonly segments: readonly TranscriptSegment[] | null;
  readonly words: readonly TranscriptSegment[] | null;
}

export interface TranscriptionProvider {
  transcribe(call: TranscriptionCall): Promise<TranscriptionAnswer>;
}

export interface EmbeddingCall extends Call {
  /** Texts, or token numbers of the model's own vocabulary. */
  readonly inputs: readonly (string | readonly number[])[];
  /** The caller sent its one input by itself, not in a list. */
  readonly isSingle?: boolean;
  readonly dimensions: number | null;
  /** What the caller wants to receive; an upstream that answers in the other one is as good. */
  readonly encodingFormat?: "float" | "base64" | null;
}

/** Numbers, or base64 of little-endian 32-bit floats, as it came. */
export type EmbeddingVector = readonly number[] | Float32Array | string;

export interface EmbeddingAnswer extends Answer {
  /** One for each input, in order. */
  readonly vectors: readonly EmbeddingVector[];
  /** The upstream's own JSON document, and what it says, when it is what a caller of OpenAI's format would expect, usage included. */
  readonly document?: { readonly bytes: Uint8Array; readonly object: Readonly<Record<string, unknown>> };
}

export interface EmbeddingProvider {
  embed(call: EmbeddingCall): Promise<EmbeddingAnswer>;
}

/** OpenAI's content parts, where a model judges pictures too. */
export type ModerationInput = string | { readonly type: string; readonly [field: string]: unknown };

export interface ModerationCall extends Call {
  readonly inputs: readonly ModerationInput[];
}

export interface ModerationResult {
  readonly flagged: boolean;
  readonly categories: Readonly<Record<string, boolean>>;
  /** 0 to 1. */
  readonly scores: Readonly<Record<string, number>>;
  /** By category: which kinds of content (`text`, `image`) it was judged by, where the upstream tells. */
  readonly appliedInputTypes?: Readonly<Record<string, unknown>>;
}

export interface ModerationAnswer extends Answer {
  readonly results: readonly ModerationResult[];
}

export interface ModerationProvider {
  moderate(call: ModerationCall): Promise<ModerationAnswer>;
}

export interface RealtimeCall extends Call {
  /** The caller speaks the beta form of the events. */
  readonly isBeta: boolean;
}

/** A session of OpenAI's realtime events: JSON texts both ways. */
export interface RealtimeConnection {
  /** Resolves when the text has been handed on: await it, or memory fills up. */
  send(text: string): Promise<void>;
  /** Ends when the upstream closes in an orderly way; throws a ProviderError when the connection breaks. Pulled only while the reader keeps up. */
  readonly events: AsyncIterable<string>;
  close(): void;
}

export interface RealtimeProvider {
  /** Resolves when the upstream has accepted the session. */
  connect(call: RealtimeCall): Promise<RealtimeConnection>;
}
