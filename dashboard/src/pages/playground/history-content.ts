/** Contents of the history, by type of generation. Images and audio are stored as blobs. */
import type {
  AudioFormat,
  ImageFormat,
  ImageQuality,
  PlaygroundReceiptFragment,
  TranscriptFormat,
  VideoAspectRatio,
} from "../../client/generated/graphql.js";
import type { Settings, Turn } from "./chat/conversation.js";

/** Reference image: a file or a URL. */
export type Reference = File | string;

export interface ImageForm {
  readonly prompt: string;
  readonly references: readonly Reference[];
  readonly size: string;
  readonly quality: ImageQuality | null;
  readonly outputFormat: ImageFormat | null;
  readonly n: number | string;
  readonly seed: number | string;
  readonly negativePrompt: string;
  readonly isTransparent: boolean;
}

export interface Picture {
  /** The image itself, or its URL. */
  readonly source: Blob | string;
  readonly contentType: string;
  readonly revisedPrompt: string | null;
}

export interface Pictures {
  readonly prompt: string;
  readonly pictures: readonly Picture[];
  readonly receipt: PlaygroundReceiptFragment;
}

export interface VideoForm {
  readonly prompt: string;
  readonly references: readonly Reference[];
  readonly duration: number | string;
  readonly aspectRatio: VideoAspectRatio | null;
  readonly seed: number | string;
  readonly negativePrompt: string;
  readonly hasAudio: boolean;
}

export interface SpeechForm {
  readonly input: string;
  readonly voice: string;
  readonly responseFormat: AudioFormat;
  readonly speed: number | string;
  readonly instructions: string;
}

export interface MusicForm {
  readonly prompt: string;
  readonly duration: number | string;
  readonly responseFormat: AudioFormat;
  readonly seed: number | string;
}

export interface Sound {
  readonly sound: Blob;
  readonly format: AudioFormat;
  /** Null when the generation was stopped. */
  readonly receipt: PlaygroundReceiptFragment | null;
}

export interface TranscriptForm {
  readonly language: string;
  readonly prompt: string;
  readonly responseFormat: TranscriptFormat;
}

export interface Transcript {
  readonly text: string;
  readonly language: string | null;
  readonly durationSeconds: number;
  readonly receipt: PlaygroundReceiptFragment;
}

export interface EmbeddingsForm {
  readonly texts: readonly string[];
  readonly dimensions: number | string;
}

export interface Compared {
  readonly texts: readonly string[];
  /** Matrix with one row and one column for each text. */
  readonly cosines: readonly (readonly number[])[];
  readonly dimensions: number;
  readonly receipt: PlaygroundReceiptFragment;
}

export interface HistoryContent {
  readonly chat: { readonly settings: Settings; readonly turns: readonly Turn[] };
  readonly image: { readonly form: ImageForm; readonly made: Pictures };
  readonly video: { readonly form: VideoForm; readonly job: string };
  readonly speech: { readonly form: SpeechForm; readonly made: Sound };
  readonly music: { readonly form: MusicForm; readonly made: Sound };
  readonly transcription: { readonly form: TranscriptForm; readonly made: Transcript };
  readonly embeddings: { readonly form: EmbeddingsForm; readonly made: Compared };
}

export type HistoryKind = keyof HistoryContent;
