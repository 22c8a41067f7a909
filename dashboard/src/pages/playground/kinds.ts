/** Types of generation in the playground, in the order of its navigation. */
import type { Modality } from "../../client/generated/graphql.js";

export interface Kind {
  /** Part of the address. */
  readonly name: string;
  readonly label: string;
  readonly modality: Modality;
}

export const KINDS: readonly Kind[] = [
  { name: "chat", label: "Chat", modality: "TEXT" },
  { name: "image", label: "Images", modality: "IMAGE" },
  { name: "video", label: "Video", modality: "VIDEO" },
  { name: "speech", label: "Speech", modality: "SPEECH" },
  { name: "music", label: "Music", modality: "MUSIC" },
  { name: "transcription", label: "Transcription", modality: "TRANSCRIPTION" },
  { name: "realtime", label: "Realtime", modality: "REALTIME" },
  { name: "embeddings", label: "Embeddings", modality: "EMBEDDING" },
];
