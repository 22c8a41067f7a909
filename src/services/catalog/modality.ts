/** Modalities: the sorting of the catalog, its prices and its routes (docs/spec/models.md#modalities). */

/** In the order of lists. */
export const MODALITIES = [
  "text",
  "image",
  "video",
  "speech",
  "music",
  "transcription",
  "embedding",
  "rerank",
  "realtime",
  "moderation",
] as const;
export type Modality = (typeof MODALITIES)[number];

/** Usage has no modality for moderations and rerankings: they count as the kind of model that is nearest (docs/spec/usage.md#rows). */
export function usageModalityOf(modality: Modality): Exclude<Modality, "rerank" | "moderation"> {
  if (modality === "moderation") return "text";
  return modality === "rerank" ? "embedding" : modality;
}

/** Inputs and outputs of models (docs/spec/models.md#modalities). */
export const CONTENT_KINDS = ["text", "image", "audio", "video", "embedding", "3d"] as const;
export type ContentKind = (typeof CONTENT_KINDS)[number];

/** `request` charges an image generation once, `tokens` charges the image tokens that the upstream reports (docs/spec/images.md#pricing). */
export const IMAGE_PRICINGS = ["request", "tokens"] as const;
export type ImagePricing = (typeof IMAGE_PRICINGS)[number];

/** The coarser groups of the catalog (docs/spec/models.md#modalities). */
export type Category = "text" | "image" | "video" | "audio" | "embedding" | "realtime";

interface ModalityTraits {
  readonly category: Category;
  /** Inputs and outputs of a model whose entry states none. */
  readonly inputs: readonly ContentKind[];
  readonly outputs: readonly ContentKind[];
  /** The operation, as a client writes it. */
  readonly route: string;
  /** The GraphQL field; null: none. */
  readonly field: string | null;
}

/** Unspecified: `moderation` has no category of its own in the list of categories; it reads text and is listed with it; `rerank` is listed with embeddings. */
export const MODALITY_TRAITS: Readonly<Record<Modality, ModalityTraits>> = {
  text: { category: "text", inputs: ["text"], outputs: ["text"], route: "POST /v1/chat/completions", field: "createChatCompletion" },
  image: { category: "image", inputs: ["text"], outputs: ["image"], route: "POST /v1/images/generations", field: "generateImage" },
  video: { category: "video", inputs: ["text"], outputs: ["video"], route: "GET /video/{prompt}", field: "startVideo" },
  speech: { category: "audio", inputs: ["text"], outputs: ["audio"], route: "POST /v1/audio/speech", field: "createSpeech" },
  music: { category: "audio", inputs: ["text"], outputs: ["audio"], route: "GET /audio/{text}", field: "generateMusic" },
  transcription: {
    category: "audio",
    inputs: ["audio"],
    outputs: ["text"],
    route: "POST /v1/audio/transcriptions",
    field: "createTranscription",
  },
  embedding: { category: "embedding", inputs: ["text"], outputs: ["embedding"], route: "POST /v1/embeddings", field: "createEmbeddings" },
  rerank: { category: "embedding", inputs: ["text"], outputs: ["text"], route: "POST /v1/rerank", field: "rerank" },
  realtime: { category: "realtime", inputs: ["text", "audio"], outputs: ["text", "audio"], route: "GET /v1/realtime", field: null },
  moderation: { category: "text", inputs: ["text"], outputs: ["text"], route: "POST /v1/moderations", field: "createModeration" },
};
