/**
 * Abilities of an upstream beside chat, one interface per modality. Calls carry validated options of the request; `null` is "not stated",
 * without a default. Options that a wire format cannot express are named in `warnings`. Everything rejects as `ChatProvider` does: with a
 * ProviderError, or with the signal's reason when that is aborted.
 */
import type { GeneratedType } from "../lib/content-types.js";
import type { UsageQuantities } from "../lib/usage.js";

/** A generated file. Its type is from our list, not the upstream's text. */
export interface MediaFile {
  readonly bytes: Uint8Array;
  readonly contentType: GeneratedType;
}

/** A client's file, uploaded or by URL. */
export interface InputFile {
  readonly bytes: Uint8Array;
  /** A media type without parameters, such as `image/png`. */
  readonly contentType: string;
  readonly name: string;
}

interface Call {
  /** The upstream's own name for the model. */
  readonly upstreamModel: string;
  /** Aborted when the client disconnects or the total time is up. */
  readonly signal: AbortSignal;
  /** Unknown fields of a /v1 body, which are passed on to an OpenAI-format upstream. */
  readonly extra: Readonly<Record<string, unknown>>;
}

interface Answer {
  /** Null without a credible report: the gateway counts. */
  readonly usage: UsageQuantities | null;
  /** One sentence per option that had no effect. */
  readonly warnings: readonly string[];
}

export interface ImageCall extends Call {
  readonly prompt: string;
  /** Pixels; null: the upstream decides. */
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly count: number;
  readonly seed: number | null;
  readonly negativePrompt: string | null;
  readonly quality: string | null;
  readonly isTransparent: boolean;
  /** The requested format; null: the model's own. */
  readonly format: "jpeg" | "png" | "webp" | null;
  /** Plan text and layout first. */
  readonly reasoning: boolean | null;
  /** References, or images to edit: with any, it is an edit. */
  readonly images: readonly InputFile[];
  readonly mask: InputFile | null;
  /** Variations of the one image in `images`, without a prompt. Not every upstream has them. */
  readonly isVariation?: boolean;
}

export interface ImageAnswer extends Answer {
  readonly images: readonly (MediaFile & {
    readonly revisedPrompt: string | null;
    /** The same bytes as base64 in ASCII, when received so; saves encoding them again. */
    readonly base64?: Uint8Array;
  })[];
  /** Gives the memory back when the image is no longer needed: its bytes are then empty. */
  readonly release?: () => void;
}

export interface ImageProvider {
  generate(call: ImageCall): Promise<ImageAnswer>;
}

export interface VideoCall extends Call {
  readonly prompt: string;
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly aspectRatio: "16:9" | "9:16" | null;
  /** Null: the upstream decides. */
  readonly seconds: number | null;
  readonly hasAudio: boolean;
  readonly seed: number | null;
  readonly negativePrompt: string | null;
  readonly images: readonly InputFile[];
  /** Called with the upstream's progress, 0 to 100. */
  readonly onProgress: (percent: number) => void;
}

export interface VideoAnswer extends Answer, MediaFile {
  /** Null when unknown: the requested length is billed. */
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
  /** 0.25 to 4; null: the voice's default. */
  readonly speed: number | null;
  readonly instructions: string | null;
}

/** A stream of speech. `usage` is set when the chunks have ended. */
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
  /** ISO 639-1; null: detected. */
  readonly language: string | null;
  readonly prompt: string | null;
  readonly temperature: number | null;
  /** Whether segments and words with their times are needed. */
  readonly wantsSegments: boolean;
  readonly wantsWords: boolean;
  /** Whether segments name their speakers. Not every model can. */
  readonly wantsSpeakers?: boolean;
  /** The transcript is in English, in whichever language the recording is. Not every model can. */
  readonly isTranslation?: boolean;
}

/** OpenAI's decoding data of a segment, under its own names, because nothing here reads them. */
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
  /** Seconds from the start. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** A name for the speaker, with `wantsSpeakers`. */
  readonly speaker?: string;
  /** As far as the upstream reported it. */
  readonly decoding?: Partial<SegmentDecoding>;
}

export interface TranscriptionAnswer extends Answer {
  readonly text: string;
  readonly language: string | null;
  /** Length of the recording; null when not reported. */
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
  /** The client sent one input that was not in a list. */
  readonly isSingle?: boolean;
  readonly dimensions: number | null;
  /** The requested encoding; an upstream may answer in the other one. */
  readonly encodingFormat?: "float" | "base64" | null;
}

/** Numbers, or base64 of little-endian 32-bit floats as received. */
export type EmbeddingVector = readonly number[] | Float32Array | string;

export interface EmbeddingAnswer extends Answer {
  /** One for each input, in order. */
  readonly vectors: readonly EmbeddingVector[];
  /** The upstream's JSON document and its content, when it already is the expected answer in OpenAI's format, usage included. */
  readonly document?: { readonly bytes: Uint8Array; readonly object: Readonly<Record<string, unknown>> };
}

export interface EmbeddingProvider {
  embed(call: EmbeddingCall): Promise<EmbeddingAnswer>;
}

/** OpenAI's content parts, for models that also moderate images. */
export type ModerationInput = string | { readonly type: string; readonly [field: string]: unknown };

export interface ModerationCall extends Call {
  readonly inputs: readonly ModerationInput[];
}

export interface ModerationResult {
  readonly flagged: boolean;
  readonly categories: Readonly<Record<string, boolean>>;
  /** 0 to 1. */
  readonly scores: Readonly<Record<string, number>>;
  /** Kinds of content (`text`, `image`) judged, by category, where reported. */
  readonly appliedInputTypes?: Readonly<Record<string, unknown>>;
}

export interface ModerationAnswer extends Answer {
  readonly results: readonly ModerationResult[];
}

export interface ModerationProvider {
  moderate(call: ModerationCall): Promise<ModerationAnswer>;
}

export interface RerankCall extends Call {
  readonly query: string;
  readonly documents: readonly string[];
  /** Null: all. */
  readonly topN: number | null;
}

/** Of one document, by its place in the request. */
export interface Relevance {
  readonly index: number;
  readonly score: number;
}

export interface RerankAnswer extends Answer {
  /** The most relevant document first. */
  readonly results: readonly Relevance[];
  /** Null: not reported. */
  readonly searchUnits: number | null;
}

export interface RerankProvider {
  rerank(call: RerankCall): Promise<RerankAnswer>;
}

export interface RealtimeCall extends Call {
  /** The client uses the beta form of the events. */
  readonly isBeta: boolean;
}

/** A session of OpenAI's realtime events: JSON texts both ways. */
export interface RealtimeConnection {
  /** Resolves when the text was passed on: await it to bound memory. */
  send(text: string): Promise<void>;
  /** Ends when the upstream closes normally; throws a ProviderError when the connection breaks. Pulled only while the reader keeps up. */
  readonly events: AsyncIterable<string>;
  close(): void;
}

export interface RealtimeProvider {
  /** Resolves when the upstream has accepted the session. */
  connect(call: RealtimeCall): Promise<RealtimeConnection>;
}
