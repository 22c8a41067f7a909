/** A vendor's row in `vendors.ts`: its package and its traits. */
import type {
  EmbeddingModelV3,
  Experimental_VideoModelV3,
  ImageModelV3,
  LanguageModelV3,
  LanguageModelV3Usage,
  SpeechModelV3,
  TranscriptionModelV3,
} from "@ai-sdk/provider";
import type { UsageTable } from "../../formats/openai-chat/usage-dialects.js";
import type { SpeechFormat } from "../media.js";
import type { JobTraits } from "./job-words.js";

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

/** The vendor's own options, as its package takes them. */
export type VendorOptions = Readonly<Record<string, unknown>>;

export interface ChatTraits {
  /** The equivalent of OpenAI's `reasoning_effort`; null when the model has none. */
  readonly reasoning?: (effort: string, model: string) => VendorOptions | null;
  /** The equivalent of `parallel_tool_calls: false`. */
  readonly serialTools?: VendorOptions;
  readonly user?: (id: string) => VendorOptions;
  /** JSON without a schema must be requested in the prompt. */
  readonly asksForJson?: boolean;
  /** Whether `cache_control` on messages and parts is supported. */
  readonly hasCacheControl?: boolean;
  /** Reads tokens that the package leaves out of its totals or does not separate. */
  readonly usageDetails?: (raw: NonNullable<LanguageModelV3Usage["raw"]>) => UsageDetails;
  /** All known names of the vendor's report; absent: unchecked. */
  readonly usageNames?: UsageTable;
}

/** Parts of the totals; only `cached` counts tokens read from a cache, and `extraInput` is added to the input. */
export interface UsageDetails {
  readonly extraInput: number;
  /** Input tokens read from a cache, where the package does not report them. */
  readonly cached?: number;
  readonly inputAudio: number;
  readonly inputImage: number;
  readonly outputAudio: number;
  readonly outputImage: number;
}

export interface ImageTraits {
  /** Whether images have a size or an aspect ratio. */
  readonly shape: "size" | "aspect-ratio";
  /** Images per request; default: the package's value. */
  readonly countPerCall?: (model: string) => number;
  /** The vendor's names for options without a common name. */
  readonly negativePrompt?: string;
  readonly quality?: { readonly option: string; readonly values: Readonly<Record<string, string>> };
  readonly format?: { readonly option: string; readonly values: Readonly<Partial<Record<"jpeg" | "png" | "webp", string>>> };
  readonly severalImages?: VendorOptions;
  readonly options?: VendorOptions;
}

export interface VideoTraits {
  readonly takes: readonly ("size" | "aspectRatio" | "seconds" | "seed" | "audio" | "image")[];
  readonly negativePrompt?: string;
  readonly options?: VendorOptions;
}

export interface SpeechTraits {
  /** The vendor's voice ids by public name; other names are passed on unchanged. */
  readonly voices?: Readonly<Record<string, string>>;
  readonly hasVoiceInModel?: boolean;
  readonly formats: Readonly<Partial<Record<SpeechFormat, string>>>;
  readonly takesInstructions?: boolean;
  readonly takesSpeed?: boolean;
}

export interface TranscriptionTraits {
  /** The vendor's option for the language, and its value for detection. */
  readonly language?: string;
  readonly detectLanguage?: VendorOptions;
  readonly prompt?: string;
  /** The unit of the package's segments. */
  readonly pieces: "words" | "segments";
  /** Whether its duration is the recording's, not the end of the last word. */
  readonly hasDuration: boolean;
  readonly options?: VendorOptions;
}

export interface EmbeddingTraits {
  readonly dimensions?: string;
}

export interface Vendor {
  /** Its address, then others that its package uses; each is replaced by a configured base URL. */
  readonly baseUrls: readonly [string, ...string[]];
  /** The package's name for the vendor's own options. */
  readonly optionsName: string;
  /** Loads the package. Called per call, because the package has no state and `fetch` belongs to the call. */
  readonly load: (settings: VendorSettings) => Promise<VendorModels>;
  /** For a vendor whose jobs its package polls. */
  readonly jobs?: JobTraits;
  readonly chat?: ChatTraits;
  readonly image?: ImageTraits;
  readonly video?: VideoTraits;
  readonly speech?: SpeechTraits;
  readonly transcription?: TranscriptionTraits;
  readonly embedding?: EmbeddingTraits;
}
