/** What models and agents are called here. */
import type { ContentKind, McpServer, Modality, SafetyFeature } from "../../client/generated/graphql.js";
import { MODALITY_OPTIONS } from "../../ui/modalities.js";
import type { Kind, PriceField } from "./draft.js";

export const KIND_LABELS: Readonly<Record<Kind, { readonly name: string; readonly description: string }>> = {
  prompt: {
    name: "Prompt agent",
    description: "A model of the catalog with instructions and tools of your own. The gateway runs it; nothing to host.",
  },
  code: { name: "Code agent", description: "The agent.ts of a public git repository. The gateway runs it in a sandbox." },
  proxy: { name: "Proxy model", description: "A model that a service of yours runs: its address and credential, at a price of yours." },
  endpoint: {
    name: "Endpoint agent",
    description: "An agent that you host yourself: called like a text model, without a credential and for nothing.",
  },
};

/** What a proxy model may do. */
const PROXIED: ReadonlySet<Modality> = new Set(["TEXT", "IMAGE", "VIDEO", "TRANSCRIPTION", "SPEECH", "EMBEDDING"]);
export const PROXIED_OPTIONS = MODALITY_OPTIONS.filter(({ value }) => PROXIED.has(value));

export const CONTENTS: readonly { readonly value: ContentKind; readonly label: string }[] = [
  { value: "TEXT", label: "Text" },
  { value: "IMAGE", label: "Pictures" },
  { value: "AUDIO", label: "Sound" },
  { value: "VIDEO", label: "Video" },
];

export const SERVERS: readonly { readonly value: McpServer; readonly label: string }[] = [
  { value: "SLUICE", label: "Sluice: this gateway’s models" },
  { value: "SEARCH", label: "Search: the web" },
  { value: "FFMPEG", label: "FFmpeg: changes sound, pictures and videos" },
  { value: "COMPUTER", label: "Computer: one to work at" },
  { value: "INTEGRATIONS", label: "Integrations: what the account has connected" },
  { value: "ADA", label: "Ada: an assistant" },
];

export const SAFETY: readonly { readonly value: SafetyFeature; readonly label: string }[] = [
  { value: "PRIVACY", label: "Privacy: takes out addresses and numbers of people" },
  { value: "SECRETS", label: "Secrets: takes out keys and passwords" },
  { value: "SEXUAL", label: "Sexual: refuses sexual content" },
  { value: "VIOLENCE", label: "Violence: refuses violence" },
  { value: "SHIELD", label: "Shield: refuses attempts to trick the model" },
];

export const PRICE_LABELS: Readonly<Record<PriceField, string>> = {
  promptTextPrice: "Text in, a token",
  promptCachedPrice: "Text in from the cache, a token",
  promptCacheWritePrice: "Text written to the cache, a token",
  promptAudioPrice: "Sound in, a token or a second",
  promptImagePrice: "Pictures in, a token",
  completionTextPrice: "Text out, a token",
  completionReasoningPrice: "Thinking, a token",
  completionAudioPrice: "Sound out, a token or a character",
  completionImagePrice: "A picture, or a token of one",
  completionVideoPrice: "A second of video",
};
