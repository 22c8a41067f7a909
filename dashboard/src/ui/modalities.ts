import type { Modality } from "../client/generated/graphql.js";

export const MODALITIES: ReadonlyMap<Modality, string> = new Map([
  ["TEXT", "Text"],
  ["IMAGE", "Images"],
  ["VIDEO", "Video"],
  ["SPEECH", "Speech"],
  ["MUSIC", "Music"],
  ["TRANSCRIPTION", "Transcription"],
  ["EMBEDDING", "Embeddings"],
  ["RERANK", "Rerank"],
  ["REALTIME", "Realtime"],
  ["MODERATION", "Moderation"],
]);

export const MODALITY_OPTIONS = [...MODALITIES].map(([value, label]) => ({ value, label }));

export function toModality(text: string | null): Modality | undefined {
  return [...MODALITIES.keys()].find((modality) => modality === text);
}
