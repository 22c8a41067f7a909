/** What the adapter must know of a vendor beside its package: one row of `vendors.ts`. */
import type {
  EmbeddingModelV3,
  Experimental_VideoModelV3,
  ImageModelV3,
  LanguageModelV3,
  LanguageModelV3Usage,
  SpeechModelV3,
  TranscriptionModelV3,
} from "@ai-sdk/provider";
import type { SpeechFormat } from "../media.js";
import type { UsageTable } from "../openai/usage-dialects.js";
import type { JobTraits } from "./job-words.js";

/** The models of a vendor, by their names at the vendor. */
export interface VendorModels {
  readonly languageModel?: (model: string) => LanguageModelV3;
  readonly imageModel?: (model: string) => ImageModelV3;
  readonly videoModel?: (model: string) => Experimental_VideoModelV3;
  readonly speechModel?: (model: string) => SpeechModelV3;
  readonly transcriptionModel?: (model: string) => TranscriptionModelV3;
  readonly embeddingModel?: (model: string) => EmbeddingModelV3;
}

export interface VendorSettings {
  readonly apiKey: string;
  readonly fetch: typeof globalThis.fetch;
}

/** Options of the vendor's own, as its package takes them. */
export type VendorOptions = Readonly<Record<string, unknown>>;

export interface ChatTraits {
  /** What OpenAI's `reasoning_effort` means here; null when this model has no such thing. */
  readonly reasoning?: (effort: string, model: string) => VendorOptions | null;
  /** Of a package that adds the tokens to think to those to answer: both of them, that together are no more than the call is bound to. */
  readonly thinkWithin?: (own: VendorOptions, tokens: number) => BoundThinking;
  /** The option that `parallel_tool_calls: false` is. */
  readonly serialTools?: VendorOptions;
  /** The option that the caller's own user is told by. */
  readonly user?: (id: string) => VendorOptions;
  /** JSON without a schema must be asked for in words. */
  readonly asksForJson?: boolean;
  /** Whether `cache_control` on messages and parts is understood. */
  readonly hasCacheControl?: boolean;
  /** Tokens that the package's report leaves out of its totals, or does not tell apart. */
  readonly usageDetails?: (raw: NonNullable<LanguageModelV3Usage["raw"]>) => UsageDetails;
  /** Every name that the vendor's report is known to have; absent where that is not looked at. */
  readonly usageNames?: UsageTable;
}

export interface BoundThinking {
  readonly own: VendorOptions;
  readonly answerTokens: number;
}

/** Parts of the totals; but for `cached` none of them is read from a cache, and `extraInput` comes on top. */
export interface UsageDetails {
  /** Of what was written to the cache, what is kept for an hour; absent when the vendor does not tell. */
  readonly hourCacheWrite?: number;
  readonly extraInput: number;
  /** Of the input, what was read from a cache, where the package does not tell. */
  readonly cached?: number;
  readonly inputAudio: number;
  readonly inputImage: number;
  readonly outputAudio: number;
  readonly outputImage: number;
}

export interface ImageTraits {
  /** Whether pictures are asked for by size or by aspect ratio. */
  readonly shape: "size" | "aspect-ratio";
  /** Pictures that one request may make; what the package says when absent. */
  readonly countPerCall?: (model: string) => number;
  /** The vendor's names for options that others have no common name for. */
  readonly negativePrompt?: string;
  readonly quality?: { readonly option: string; readonly values: Readonly<Record<string, string>> };
  readonly format?: { readonly option: string; readonly values: Readonly<Partial<Record<"jpeg" | "png" | "webp", string>>> };
  /** Options that are always sent when there are several references. */
  readonly severalImages?: VendorOptions;
  readonly options?: VendorOptions;
}

export interface VideoTraits {
  readonly takes: readonly ("size" | "aspectRatio" | "seconds" | "seed" | "audio" | "image")[];
  readonly negativePrompt?: string;
  readonly options?: VendorOptions;
}

export interface SpeechTraits {
  /** The vendor's ids of the voices that callers name; a voice that is not listed goes to the vendor as it is. */
  readonly voices?: Readonly<Record<string, string>>;
  /** The voice is part of the model's name. */
  readonly hasVoiceInModel?: boolean;
  /** The vendor's names of formats. */
  readonly formats: Readonly<Partial<Record<SpeechFormat, string>>>;
  readonly takesInstructions?: boolean;
  readonly takesSpeed?: boolean;
}

export interface TranscriptionTraits {
  /** The vendor's option for the language, and what asks it to find out. */
  readonly language?: string;
  readonly detectLanguage?: VendorOptions;
  readonly prompt?: string;
  /** What the package calls segments. */
  readonly pieces: "words" | "segments";
  /** Whether its length is the recording's, and not the end of the last word. */
  readonly hasDuration: boolean;
  readonly options?: VendorOptions;
}

export interface EmbeddingTraits {
  readonly dimensions?: string;
}

export interface Vendor {
  /** Its address, then others that its package also uses. Everything that follows them follows a stated base URL. */
  readonly baseUrls: readonly [string, ...string[]];
  /** Under which the package reads the vendor's own options. */
  readonly optionsName: string;
  /** Loads the package. Asked for with each call, because the package keeps nothing and the `fetch` is the call's. */
  readonly load: (settings: VendorSettings) => Promise<VendorModels>;
  /** Of a vendor whose jobs its package polls. */
  readonly jobs?: JobTraits;
  readonly chat?: ChatTraits;
  readonly image?: ImageTraits;
  readonly video?: VideoTraits;
  readonly speech?: SpeechTraits;
  readonly transcription?: TranscriptionTraits;
  readonly embedding?: EmbeddingTraits;
}
