import type { ContentKind, McpServer, Modality, SafetyFeature } from "../../client/generated/graphql.js";
import { MODALITY_OPTIONS } from "../../ui/modalities.js";
import type { Kind, PriceField } from "./draft.js";
import type { PriceUnit } from "./typed-prices.js";

export const KIND_LABELS: Readonly<Record<Kind, { readonly name: string; readonly description: string }>> = {
  prompt: {
    name: "Prompt agent",
    description: "A model of the catalog with your own instructions and tools. The gateway runs it.",
  },
  code: { name: "Code agent", description: "An agent.ts in a public git repository. The gateway runs it in a sandbox." },
  proxy: { name: "Proxy model", description: "A model that runs on your own upstream. You set its URL, credential and prices." },
  endpoint: {
    name: "Endpoint agent",
    description: "An agent that you host yourself. Called like a text model, without a credential and free of charge.",
  },
};

/** Modalities of proxy models. */
const PROXIED: ReadonlySet<Modality> = new Set(["TEXT", "IMAGE", "VIDEO", "TRANSCRIPTION", "SPEECH", "EMBEDDING"]);
export const PROXIED_OPTIONS = MODALITY_OPTIONS.filter(({ value }) => PROXIED.has(value));

export const CONTENTS: readonly { readonly value: ContentKind; readonly label: string }[] = [
  { value: "TEXT", label: "Text" },
  { value: "IMAGE", label: "Images" },
  { value: "AUDIO", label: "Audio" },
  { value: "VIDEO", label: "Video" },
];

export const SERVERS: readonly { readonly value: McpServer; readonly label: string }[] = [
  { value: "SLUICE", label: "Sluice: calls this gateway’s models" },
  { value: "SEARCH", label: "Search: searches the web" },
  { value: "FFMPEG", label: "FFmpeg: edits audio, images and video" },
  { value: "COMPUTER", label: "Computer: uses a computer" },
  { value: "INTEGRATIONS", label: "Integrations: uses the account’s integrations" },
  { value: "ADA", label: "Ada: an assistant" },
];

export const SAFETY: readonly { readonly value: SafetyFeature; readonly label: string }[] = [
  { value: "PRIVACY", label: "Privacy: redacts personal addresses and numbers" },
  { value: "SECRETS", label: "Secrets: redacts keys and passwords" },
  { value: "SEXUAL", label: "Sexual: blocks sexual content" },
  { value: "VIOLENCE", label: "Violence: blocks violent content" },
  { value: "SHIELD", label: "Shield: blocks attempts to trick the model" },
];

export const PRICE_LABELS: Readonly<Record<PriceField, string>> = {
  promptTextPrice: "Text input",
  promptCachedPrice: "Cached input",
  promptCacheWritePrice: "Cache write",
  promptAudioPrice: "Audio input",
  promptImagePrice: "Image input",
  completionTextPrice: "Text output",
  completionReasoningPrice: "Reasoning",
  completionAudioPrice: "Audio output",
  completionImagePrice: "Image output",
  completionVideoPrice: "Video output",
};

export const UNIT_LABELS: Readonly<Record<PriceUnit, string>> = {
  token: "per 1M tokens",
  character: "per 1M characters",
  second: "per second",
  image: "per image",
};
