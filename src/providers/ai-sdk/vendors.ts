/** The vendors with wire formats of their own, a row each: package, abilities and names. A package is loaded on its vendor's first call. */

import { setTimeout as sleep } from "node:timers/promises";
import { COHERE_USAGE } from "../../formats/openai-chat/usage-dialects.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { isRecord } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { ownValue } from "../../lib/own-values.js";
import { UPSTREAM_JSON_BOUNDS } from "../../limits.js";
import type { JobTraits } from "./job-words.js";
import { readCohereUsage } from "./usage.js";
import type { Vendor } from "./vendor.js";

/**
 * ElevenLabs' voice ids. Source: the list of default voices in its documentation (elevenlabs.io/docs/product/voices). The first eleven are
 * names of OpenAI's voices, which it lacks: each maps to the most similar voice.
 */
const ELEVENLABS_VOICES: Readonly<Record<string, string>> = {
  alloy: "21m00Tcm4TlvDq8ikWAM",
  echo: "ErXwobaYiN019PkySvjV",
  fable: "JBFqnCBsd6RMkjVDRZzb",
  onyx: "nPczCjzI2devNBz1zQrb",
  nova: "EXAVITQu4vr4xnSDxMaL",
  shimmer: "pFZP5JQG7iQjIQuC4Bku",
  ash: "TxGEqnHWrfWFTfGW9XjX",
  ballad: "IKne3meq5aSn9XLyUdCD",
  coral: "XB0fDUnXU5powFXDhCwa",
  sage: "XrExE9yKIg1WjnnlVkGX",
  verse: "TX3LPaxmHKxFdv7VOQHJ",
  rachel: "21m00Tcm4TlvDq8ikWAM",
  domi: "AZnzlk1XvdvUeBnXmlld",
  bella: "hpp4J3VqNfWAUOO0d1Us",
  elli: "MF3mGyEYCl7XYWbV9V6O",
  charlotte: "XB0fDUnXU5powFXDhCwa",
  dorothy: "ThT5KcBeYPX3keUQqHPh",
  sarah: "EXAVITQu4vr4xnSDxMaL",
  emily: "LcfcDJNUP1GQjkzn1xUU",
  lily: "pFZP5JQG7iQjIQuC4Bku",
  matilda: "XrExE9yKIg1WjnnlVkGX",
  adam: "pNInz6obpgDQGcFmaJgB",
  antoni: "ErXwobaYiN019PkySvjV",
  arnold: "VR6AewLTigWG4xSOukaG",
  josh: "TxGEqnHWrfWFTfGW9XjX",
  sam: "yoZ06aMxZJJ28mfd3POQ",
  daniel: "onwK4e9ZLuTAKqWW03F9",
  charlie: "IKne3meq5aSn9XLyUdCD",
  james: "ZQe5CZNOzWyzPSCn5a3c",
  fin: "D38z5RcWu1voky8WS1ja",
  callum: "N2lVS1w4EtoT3dr4eOWO",
  liam: "TX3LPaxmHKxFdv7VOQHJ",
  george: "JBFqnCBsd6RMkjVDRZzb",
  brian: "nPczCjzI2devNBz1zQrb",
  bill: "pqHfZKP75CvOlQylNhV4",
};

/** Words that the package knows, then one for each progress. */
function jobWords(known: readonly string[], running: string, completed: string, failed: string, fields = ["status"]): JobTraits {
  return { fields, known: [...known, running, completed, failed], words: { running, completed, failed } };
}

const POLL = { pollIntervalMs: 1_000, pollTimeoutMs: 300_000 };

const AMAZON_QUALITIES = { low: "standard", medium: "standard", standard: "standard", high: "premium", hd: "premium" };

export const VENDORS = {
  google: {
    baseUrls: ["https://generativelanguage.googleapis.com/v1beta"],
    optionsName: "google",
    load: async (settings) => (await import("@ai-sdk/google")).createGoogleGenerativeAI(settings),
    // Gemini's models make one image per request, Imagen's four.
    image: { shape: "aspect-ratio", countPerCall: (model) => (model.startsWith("gemini-") ? 1 : 4) },
    video: { takes: ["size", "aspectRatio", "seconds", "seed", "image"], negativePrompt: "negativePrompt", options: POLL },
    embedding: { dimensions: "outputDimensionality" },
  },
  "amazon-bedrock": {
    baseUrls: ["https://bedrock-runtime.us-east-1.amazonaws.com"],
    optionsName: "bedrock",
    load: async (settings) => {
      const { createAmazonBedrock } = await import("@ai-sdk/amazon-bedrock");
      return createAmazonBedrock({ ...settings, region: "us-east-1", baseURL: "https://bedrock-runtime.us-east-1.amazonaws.com" });
    },
    chat: { reasoning: (effort) => ({ reasoningConfig: { type: "enabled", maxReasoningEffort: effort } }), asksForJson: true },
    image: { shape: "size", negativePrompt: "negativeText", quality: { option: "quality", values: AMAZON_QUALITIES } },
    embedding: { dimensions: "dimensions" },
  },
  cohere: {
    baseUrls: ["https://api.cohere.com/v2"],
    optionsName: "cohere",
    load: async (settings) => (await import("@ai-sdk/cohere")).createCohere(settings),
    chat: {
      reasoning: (effort) => ({ thinking: { type: effort === "none" ? "disabled" : "enabled" } }),
      usageDetails: readCohereUsage,
      usageNames: COHERE_USAGE,
    },
    embedding: { dimensions: "outputDimension" },
  },
  elevenlabs: {
    baseUrls: ["https://api.elevenlabs.io/v1"],
    optionsName: "elevenlabs",
    load: async (settings) => (await import("@ai-sdk/elevenlabs")).createElevenLabs(settings),
    // Opus is in an Ogg container; PCM is like OpenAI's: 24 kHz, 16 bits.
    speech: { voices: ELEVENLABS_VOICES, formats: { mp3: "mp3", pcm: "pcm_24000", opus: "opus_48000_64" }, takesSpeed: true },
    transcription: { language: "languageCode", pieces: "words", hasDuration: false, options: { diarize: false, tagAudioEvents: false } },
  },
  deepgram: {
    baseUrls: ["https://api.deepgram.com/v1"],
    optionsName: "deepgram",
    load: async (settings) => (await import("@ai-sdk/deepgram")).createDeepgram(settings),
    speech: {
      hasVoiceInModel: true,
      formats: { mp3: "mp3", opus: "opus", aac: "aac", flac: "flac", wav: "wav", pcm: "linear16_24000" },
    },
    transcription: {
      language: "language",
      detectLanguage: { detectLanguage: true },
      pieces: "words",
      hasDuration: true,
      options: { diarize: false, smartFormat: true },
    },
  },
  replicate: {
    baseUrls: ["https://api.replicate.com/v1"],
    optionsName: "replicate",
    jobs: jobWords(["starting", "canceled"], "processing", "succeeded", "failed"),
    load: async ({ apiKey, fetch }) =>
      (await import("@ai-sdk/replicate")).createReplicate({ apiToken: apiKey, fetch: waitingFetch(fetch) }),
    image: {
      shape: "aspect-ratio",
      negativePrompt: "negative_prompt",
      format: { option: "output_format", values: { jpeg: "jpg", png: "png", webp: "webp" } },
    },
    video: { takes: ["size", "aspectRatio", "seconds", "seed", "image"], negativePrompt: "negative_prompt", options: POLL },
  },
  fal: {
    baseUrls: ["https://fal.run", "https://queue.fal.run"],
    optionsName: "fal",
    load: async (settings) => {
      const fal = (await import("@ai-sdk/fal")).createFal(settings);
      const { imageModel, speech, transcription, videoModel } = fal;
      return { imageModel, videoModel, speechModel: speech, transcriptionModel: transcription };
    },
    image: {
      shape: "size",
      format: { option: "outputFormat", values: { jpeg: "jpeg", png: "png" } },
      severalImages: { useMultipleImages: true },
    },
    video: { takes: ["aspectRatio", "seconds", "seed", "image"], negativePrompt: "negativePrompt", options: POLL },
    speech: { formats: { mp3: "url" }, takesSpeed: true },
    transcription: { language: "language", pieces: "segments", hasDuration: true },
  },
  luma: {
    baseUrls: ["https://api.lumalabs.ai"],
    optionsName: "luma",
    jobs: jobWords(["queued"], "dreaming", "completed", "failed", ["state"]),
    load: async (settings) => (await import("@ai-sdk/luma")).createLuma(settings),
    image: { shape: "aspect-ratio" },
  },
  "black-forest-labs": {
    baseUrls: ["https://api.bfl.ai/v1"],
    optionsName: "blackForestLabs",
    jobs: jobWords(["Error"], "Pending", "Ready", "Failed", ["status", "state"]),
    load: async (settings) => {
      const { createBlackForestLabs } = await import("@ai-sdk/black-forest-labs");
      return createBlackForestLabs({ ...settings, pollTimeoutMillis: POLL.pollTimeoutMs });
    },
    image: { shape: "aspect-ratio", format: { option: "outputFormat", values: { jpeg: "jpeg", png: "png" } } },
  },
  hume: {
    baseUrls: ["https://api.hume.ai"],
    optionsName: "hume",
    load: async (settings) => {
      const hume = (await import("@ai-sdk/hume")).createHume(settings);
      return { speechModel: () => hume.speech() };
    },
    speech: { formats: { mp3: "mp3", wav: "wav", pcm: "pcm" }, takesSpeed: true, takesInstructions: true },
  },
  lmnt: {
    baseUrls: ["https://api.lmnt.com"],
    optionsName: "lmnt",
    load: async (settings) => {
      const lmnt = (await import("@ai-sdk/lmnt")).createLMNT(settings);
      return { speechModel: lmnt.speech };
    },
    speech: { formats: { mp3: "mp3", aac: "aac", wav: "wav" }, takesSpeed: true },
  },
  assemblyai: {
    baseUrls: ["https://api.assemblyai.com"],
    optionsName: "assemblyai",
    jobs: jobWords(["queued"], "processing", "completed", "error"),
    load: async (settings) => (await import("@ai-sdk/assemblyai")).createAssemblyAI(settings),
    transcription: { language: "languageCode", detectLanguage: { languageDetection: true }, pieces: "words", hasDuration: true },
  },
  gladia: {
    baseUrls: ["https://api.gladia.io"],
    optionsName: "gladia",
    jobs: jobWords(["queued"], "processing", "done", "error"),
    load: async (settings) => (await import("@ai-sdk/gladia")).createGladia(settings),
    transcription: { language: "language", detectLanguage: { detectLanguage: true }, pieces: "segments", hasDuration: true },
  },
  revai: {
    baseUrls: ["https://api.rev.ai"],
    optionsName: "revai",
    jobs: jobWords([], "in_progress", "transcribed", "failed"),
    load: async (settings) => (await import("@ai-sdk/revai")).createRevai(settings),
    transcription: { language: "language", pieces: "segments", hasDuration: false },
  },
} satisfies Readonly<Record<string, Vendor>>;

export type VendorName = keyof typeof VENDORS;

export const VENDOR_NAMES = Object.keys(VENDORS) as readonly VendorName[];

/** Null for an unknown vendor. */
export function findVendor(name: string): Vendor | null {
  return ownValue(VENDORS, name) ?? null;
}

// Replicate answers a slow prediction before it is finished, after a minute, and its package's image models do not poll. This `fetch` does,
// so that the package gets the final answer.

type Fetch = typeof globalThis.fetch;

const UNFINISHED = new Set(["starting", "processing"]);
const STOPPED = new Set(["failed", "canceled", "aborted"]);
const POLL_MS = 1_000;

function waitingFetch(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method !== "POST" || !response.ok) return response;
    const { headers } = init;
    const signal = init.signal ?? undefined;
    for (let bytes = await response.arrayBuffer(); ; ) {
      const prediction = toPrediction(bytes);
      if (STOPPED.has(prediction.status)) throw stopped(prediction);
      const address = UNFINISHED.has(prediction.status) ? prediction.address : null;
      if (address === null) return new Response(bytes, { status: response.status, headers: response.headers });
      await sleep(POLL_MS, undefined, { signal });
      const next = await fetch(address, { ...(headers && { headers }), ...(signal && { signal }) });
      if (!next.ok) return next;
      bytes = await next.arrayBuffer();
    }
  };
}

function toPrediction(bytes: ArrayBuffer) {
  const value = parse(bytes);
  const urls = isRecord(value.urls) ? value.urls : {};
  const { status, error } = value;
  return {
    status: typeof status === "string" ? status : "",
    address: typeof urls.get === "string" ? urls.get : null,
    error: typeof error === "string" ? error : "",
  };
}

function parse(bytes: ArrayBuffer): Readonly<Record<string, unknown>> {
  try {
    const value = new BoundedJson(UPSTREAM_JSON_BOUNDS).parse(Buffer.from(bytes));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function stopped({ status, error }: { readonly status: string; readonly error: string }): ProviderError {
  const upstreamMessage = error === "" ? `The prediction is ${status}.` : error.slice(0, 1_000);
  return new ProviderError("status", "The upstream gave up on its answer.", { status: 502, upstreamMessage });
}
