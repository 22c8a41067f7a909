/**
 * The bundled catalog's models of every modality but text. Prices come from the price library (`bundled-prices.json`) where it has them;
 * otherwise the vendor's published price is stated here with its source and date. Order is preference, as in `bundled-models.ts`.
 */
import type { OtherNames } from "./bundled-models.js";
import type { BundledVendor } from "./bundled-vendors.js";
import type { ContentKind, ImagePricing, Modality } from "./modality.js";

/** Credits per unit of the modality, as decimals; see docs/adding-a-model.md for the units. */
export interface PublishedPrice {
  readonly credits: string;
  /** Where the vendor's price depends on the size: by size. `credits` is for requests without one. */
  readonly sizes?: Readonly<Record<string, string>>;
  /** Address and date. */
  readonly source: string;
}

export interface BundledMediaModel {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly modality: Exclude<Modality, "text">;
  readonly otherNames?: OtherNames;
  readonly inputs?: readonly ContentKind[];
  readonly imagePricing?: ImagePricing;
  readonly contextLength?: number;
  readonly voices?: readonly string[];
  readonly isAlpha?: boolean;
  /** The vendor's name of the model, with a price here or in the price library. */
  readonly offers: Readonly<Partial<Record<BundledVendor, { readonly name: string; readonly price?: PublishedPrice }>>>;
}

const TEXT_IMAGE: readonly ContentKind[] = ["text", "image"];

function openAi(modality: BundledMediaModel["modality"], name: string, title: string, description: string, price?: PublishedPrice) {
  return { id: `openai/${name}`, title, description, modality, offers: { openai: { name, ...(price && { price }) } } } as const;
}

function openAiImage(name: string, title: string, description: string): BundledMediaModel {
  return { ...openAi("image", name, title, description), inputs: TEXT_IMAGE, imagePricing: "tokens" };
}

function geminiImage(name: string, title: string, description: string): BundledMediaModel {
  const offers = { gemini: { name } };
  return { id: `google/${name}`, title, description, modality: "image", inputs: TEXT_IMAGE, imagePricing: "tokens", offers };
}

const OPENAI_PRICES = "https://platform.openai.com/docs/pricing, 2025-10-07";
const ELEVENLABS_PRICES = "https://elevenlabs.io/pricing/api as quoted in June 2026";
const DEEPGRAM_PRICES = "https://deepgram.com/pricing, 2026-08-01";
const DEEPGRAM_SPEECH_PRICES = "https://deepgram.com/pricing, 2026-05-04";
const GOOGLE_PRICES = "https://ai.google.dev/gemini-api/docs/pricing, 2026-09-20";
const REPLICATE_PRICES = "https://replicate.com/pricing, 2026-05-11";
const FAL_PRICES = "https://fal.ai/pricing, 2025-10-11";

const OPENAI: readonly BundledMediaModel[] = [
  // The wire format translates DALL·E's quality and style for this family.
  {
    ...openAiImage("gpt-image-2", "GPT Image 2", "OpenAI's image model of the second generation."),
    otherNames: { snapshots: ["gpt-image-2-2026-04-21"], formerly: ["gpt-image-1", "dall-e-3", "dall-e-2"] },
  },
  {
    ...openAiImage("gpt-image-1.5", "GPT Image 1.5", "OpenAI's image model of the generation 1.5."),
    otherNames: { snapshots: ["gpt-image-1.5-2025-12-16"] },
  },
  openAiImage("gpt-image-1-mini", "GPT Image 1 mini", "OpenAI's small image model of the first generation."),
  // Per second; of 720p without a stated size.
  openAi("video", "sora-2", "Sora 2", "OpenAI's video model.", {
    credits: "0.1",
    sizes: { "1280x720": "0.1", "720x1280": "0.1" },
    source: OPENAI_PRICES,
  }),
  openAi("video", "sora-2-pro", "Sora 2 Pro", "OpenAI's large video model.", {
    credits: "0.3",
    sizes: { "1280x720": "0.3", "720x1280": "0.3", "1792x1024": "0.5", "1024x1792": "0.5" },
    source: OPENAI_PRICES,
  }),
  openAi("speech", "tts-1", "TTS-1", "OpenAI's fast speech model.", { credits: "0.000015", source: OPENAI_PRICES }),
  openAi("speech", "tts-1-hd", "TTS-1 HD", "OpenAI's better speech model.", { credits: "0.00003", source: OPENAI_PRICES }),
  openAi("transcription", "gpt-transcribe", "GPT Transcribe", "OpenAI's transcription model."),
  openAi("transcription", "whisper-1", "Whisper", "OpenAI's open-weight transcription model, run by OpenAI."),
  { ...openAi("embedding", "text-embedding-3-small", "Text Embedding 3 small", "OpenAI's small embedding model."), contextLength: 8_192 },
  { ...openAi("embedding", "text-embedding-3-large", "Text Embedding 3 large", "OpenAI's large embedding model."), contextLength: 8_192 },
  {
    ...openAi("embedding", "text-embedding-ada-002", "Text Embedding Ada 002", "OpenAI's embedding model of the second generation."),
    contextLength: 8_192,
  },
  openAi("realtime", "gpt-realtime-2", "GPT Realtime 2", "OpenAI's realtime voice model of the second generation."),
  openAi("realtime", "gpt-realtime-1.5", "GPT Realtime 1.5", "OpenAI's realtime voice model of the generation 1.5."),
  {
    ...openAi("realtime", "gpt-realtime", "GPT Realtime", "OpenAI's realtime voice model of the first generation."),
    otherNames: { snapshots: ["gpt-realtime-2025-08-28"], formerly: ["gpt-4o-realtime-preview"] },
  },
  {
    ...openAi("realtime", "gpt-realtime-mini", "GPT Realtime mini", "OpenAI's small realtime voice model."),
    otherNames: { snapshots: ["gpt-realtime-mini-2025-10-06", "gpt-realtime-mini-2025-12-15"], formerly: ["gpt-4o-mini-realtime-preview"] },
  },
  {
    ...openAi("moderation", "omni-moderation-latest", "Omni Moderation", "OpenAI's moderation model, free of charge.", {
      credits: "0",
      source: "https://platform.openai.com/docs/guides/moderation, 2025-10-07",
    }),
    otherNames: { snapshots: ["omni-moderation-2024-09-26"], formerly: ["text-moderation-latest", "text-moderation-stable"] },
    inputs: TEXT_IMAGE,
  },
];

const GOOGLE: readonly BundledMediaModel[] = [
  geminiImage("gemini-3.1-flash-lite-image", "Gemini 3.1 Flash Lite Image", "Google's small image model of the 3.1 generation."),
  geminiImage("gemini-2.5-flash-image", "Gemini 2.5 Flash Image", "Google's image model of the 2.5 generation."),
  geminiImage("gemini-3-pro-image", "Gemini 3 Pro Image", "Google's large image model of the third generation."),
  {
    id: "google/veo-3.1-generate-preview",
    title: "Veo 3.1",
    description: "Google's video model, with sound.",
    modality: "video",
    inputs: TEXT_IMAGE,
    isAlpha: true,
    offers: {
      gemini: {
        name: "veo-3.1-generate-preview",
        // 720p and 1080p cost the same; 4K has its own price and is not offered.
        price: { credits: "0.4", sizes: { "1280x720": "0.4", "1920x1080": "0.4" }, source: GOOGLE_PRICES },
      },
    },
  },
  {
    id: "google/gemini-embedding-001",
    title: "Gemini Embedding",
    description: "Google's embedding model.",
    modality: "embedding",
    contextLength: 2_048,
    offers: { gemini: { name: "gemini-embedding-001" } },
  },
];

/** Per character, and per second of audio. */
const ELEVENLABS: readonly BundledMediaModel[] = [
  {
    id: "elevenlabs/eleven_multilingual_v2",
    title: "Eleven Multilingual v2",
    description: "ElevenLabs' lifelike speech model for 29 languages.",
    modality: "speech",
    offers: { elevenlabs: { name: "eleven_multilingual_v2", price: { credits: "0.0001", source: ELEVENLABS_PRICES } } },
  },
  {
    id: "elevenlabs/eleven_flash_v2_5",
    title: "Eleven Flash v2.5",
    description: "ElevenLabs' fast speech model.",
    modality: "speech",
    offers: { elevenlabs: { name: "eleven_flash_v2_5", price: { credits: "0.00005", source: ELEVENLABS_PRICES } } },
  },
  {
    id: "elevenlabs/scribe_v2",
    title: "Scribe v2",
    description: "ElevenLabs' transcription model.",
    modality: "transcription",
    // 0.22 an hour.
    offers: { elevenlabs: { name: "scribe_v2", price: { credits: "0.000061111111", source: ELEVENLABS_PRICES } } },
  },
];

const DEEPGRAM: readonly BundledMediaModel[] = [
  {
    id: "deepgram/nova-3",
    title: "Nova-3",
    description: "Deepgram's transcription model.",
    modality: "transcription",
    // 0.0092 a minute: recordings with detected language are billed as multilingual.
    offers: { deepgram: { name: "nova-3", price: { credits: "0.000153333333", source: DEEPGRAM_PRICES } } },
  },
  ...["helena", "thalia", "apollo"].map(
    (voice): BundledMediaModel => ({
      id: `deepgram/aura-2-${voice}-en`,
      title: `Aura-2 ${voice[0]?.toUpperCase()}${voice.slice(1)}`,
      description: "Deepgram's speech model, in one English voice.",
      modality: "speech",
      voices: [`aura-2-${voice}-en`],
      offers: { deepgram: { name: `aura-2-${voice}-en`, price: { credits: "0.00003", source: DEEPGRAM_SPEECH_PRICES } } },
    }),
  ),
];

/** Per image. */
const OTHERS: readonly BundledMediaModel[] = [
  {
    id: "black-forest-labs/flux-schnell",
    title: "FLUX.1 schnell",
    description: "Black Forest Labs' fast open-weight image model.",
    modality: "image",
    offers: { replicate: { name: "black-forest-labs/flux-schnell", price: { credits: "0.003", source: REPLICATE_PRICES } } },
  },
  {
    id: "black-forest-labs/flux-dev",
    title: "FLUX.1 dev",
    description: "Black Forest Labs' open-weight image model.",
    modality: "image",
    offers: { replicate: { name: "black-forest-labs/flux-dev", price: { credits: "0.025", source: REPLICATE_PRICES } } },
  },
  {
    id: "black-forest-labs/flux-1.1-pro-ultra",
    title: "FLUX 1.1 pro ultra",
    description: "Black Forest Labs' large image model.",
    modality: "image",
    offers: { fal: { name: "fal-ai/flux-pro/v1.1-ultra", price: { credits: "0.06", source: FAL_PRICES } } },
  },
  {
    id: "black-forest-labs/flux-kontext-pro",
    title: "FLUX.1 Kontext pro",
    description: "Black Forest Labs' model for editing pictures.",
    modality: "image",
    inputs: TEXT_IMAGE,
    offers: { fal: { name: "fal-ai/flux-pro/kontext", price: { credits: "0.04", source: FAL_PRICES } } },
  },
  {
    id: "openai/whisper-large-v3-turbo",
    title: "Whisper large v3 turbo",
    description: "OpenAI's open-weight transcription model.",
    modality: "transcription",
    offers: { groq: { name: "whisper-large-v3-turbo" } },
  },
  {
    id: "openai/whisper-large-v3",
    title: "Whisper large v3",
    description: "OpenAI's larger open-weight transcription model.",
    modality: "transcription",
    offers: { groq: { name: "whisper-large-v3" } },
  },
  {
    id: "mistral/mistral-embed",
    title: "Mistral Embed",
    description: "Mistral's embedding model.",
    modality: "embedding",
    contextLength: 8_192,
    offers: { mistral: { name: "mistral-embed" } },
  },
  {
    id: "cohere/embed-v4.0",
    title: "Embed 4",
    description: "Cohere's embedding model.",
    modality: "embedding",
    contextLength: 128_000,
    offers: { cohere: { name: "embed-v4.0" } },
  },
];

export const BUNDLED_MEDIA_MODELS: readonly BundledMediaModel[] = [...OPENAI, ...GOOGLE, ...ELEVENLABS, ...DEEPGRAM, ...OTHERS];
