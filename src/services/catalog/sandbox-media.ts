/**
 * The sandbox's entries for all modalities but text (docs/sandbox-models.md). The first of each pair is free, and the modality's default
 * when nothing else is configured; its twin is the same model at a round price, to test billing.
 */
import { SANDBOX_VOICES } from "../../providers/sandbox/media/voices.js";
import type { Modality } from "./modality.js";
import type { ModelDefinition } from "./model.js";
import { type FieldPrice, MULTIPLIER_ONE, type StatedPrices } from "./pricing.js";

type MediaModality = Exclude<Modality, "text" | "realtime" | "moderation" | "rerank">;

interface MediaEntry {
  readonly title: string;
  readonly description: string;
  /** Picocredits. */
  readonly prices: StatedPrices;
  readonly details?: Partial<ModelDefinition>;
}

/** Every size costs the same. */
const ANY_AT_ITS_PRICE = new Map<string, FieldPrice>([["*", { prices: {}, multiplier: MULTIPLIER_ONE, perRequest: 0n }]]);

const ENTRIES: Readonly<Record<MediaModality, MediaEntry>> = {
  image: {
    title: "Sandbox image",
    description:
      "Not an image model: draws a scene from the prompt's words and the seed by fixed rules, in the process; edits are drawn over.",
    // A cent per request.
    prices: { completionImagePrice: 10_000_000_000n },
    details: { inputModalities: ["text", "image"], variations: true },
  },
  video: {
    title: "Sandbox video",
    description: "Not a video model: a drawn scene that moves, as H.264 in MP4 of 1 to 10 seconds, with a tune when audio is asked for.",
    // Two cents per second.
    prices: { completionVideoPrice: 20_000_000_000n },
    details: {
      inputModalities: ["text", "image"],
      outputModalities: ["video", "audio"],
      pricedFields: new Map([["size", ANY_AT_ITS_PRICE]]),
    },
  },
  speech: {
    title: "Sandbox speech",
    description: "A formant synthesizer (eSpeak NG) in the process, in 35 voices: intelligible, not natural.",
    // Ten credits per million characters.
    prices: { completionAudioPrice: 10_000_000n },
    details: { voices: SANDBOX_VOICES },
  },
  music: {
    title: "Sandbox music",
    description: "Not a music model: composes a tune of chords, melody and bass from the prompt's words and the seed by fixed rules.",
    // A tenth of a cent per second.
    prices: { completionAudioPrice: 1_000_000_000n },
  },
  transcription: {
    title: "Sandbox transcription",
    description: "Hears nothing: reads back the words that sandbox speech wrote into its own files, and says so of any other recording.",
    // A hundredth of a cent per second.
    prices: { promptAudioPrice: 100_000_000n },
  },
  embedding: {
    title: "Sandbox embedding",
    description:
      "Hashed words, stems and letters as vectors of 1 to 4,096 dimensions: texts that share words are near, meaning is not understood.",
    // A tenth of a credit per million tokens.
    prices: { promptTextPrice: 100_000n },
    details: { contextLength: 128_000 },
  },
};

const MODERATION: ModelDefinition = {
  id: "sandbox/moderation",
  aliases: [],
  title: "Sandbox moderation",
  description: "Lists of words with scores in OpenAI's categories: for trying out and testing, it protects nobody.",
  modality: "moderation",
  routes: [{ upstreamId: "sandbox", upstreamModel: "moderation" }],
  prices: {},
};

const RERANK: Omit<ModelDefinition, "id" | "title" | "description" | "prices"> = {
  aliases: [],
  modality: "rerank",
  routes: [{ upstreamId: "sandbox", upstreamModel: "rerank" }],
};
const RERANK_MODELS: readonly ModelDefinition[] = [
  {
    ...RERANK,
    id: "sandbox/rerank",
    title: "Sandbox rerank",
    description: "Scores documents by the words that they share with the query: meaning is not understood. Free of charge.",
    prices: {},
  },
  {
    ...RERANK,
    id: "sandbox/rerank-paid",
    title: "Sandbox rerank, priced",
    description: "The same as sandbox/rerank at a documented price. For testing budgets and billing without a provider.",
    // A fifth of a cent per search.
    prices: { completionTextPrice: 2_000_000_000n },
  },
];

export const SANDBOX_MEDIA_MODELS: readonly ModelDefinition[] = [
  ...Object.entries(ENTRIES).flatMap(([modality, entry]) => toPair(modality as MediaModality, entry)),
  ...RERANK_MODELS,
  MODERATION,
];

function toPair(modality: MediaModality, { title, description, prices, details }: MediaEntry): readonly ModelDefinition[] {
  const shared = { ...details, aliases: [], modality, routes: [{ upstreamId: "sandbox", upstreamModel: modality }] };
  return [
    { ...shared, id: `sandbox/${modality}`, title, description: `${description} Free of charge.`, prices: {} },
    {
      ...shared,
      id: `sandbox/${modality}-paid`,
      title: `${title}, priced`,
      description: `The same as sandbox/${modality} at a documented price. For testing budgets and billing without a provider.`,
      prices,
    },
  ];
}
