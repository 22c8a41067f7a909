/**
 * The bundled catalog's text models and their vendors (other modalities: `bundled-media.ts`). Prices and context lengths come from the
 * price library (`bundled-prices.json`).
 *
 * Order is preference: the first entry of a configured vendor is the default text model unless the operator names one. Within an entry, the
 * first configured vendor serves it, and the others when that fails.
 */

import type { BundledVendor } from "./bundled-vendors.js";
import type { ContentKind } from "./modality.js";
import type { Capability } from "./model.js";

/** Current and former names of this model at its maker: bare, and with and without the publisher. A test compares their prices. */
export interface OtherNames {
  /** Dated names of this model. One with another price is not a name of it: it gets its own entry, or none. */
  readonly snapshots?: readonly string[];
  /** Names of retired models that many programs still have as their default: this model succeeds them, and costs no more. */
  readonly formerly?: readonly string[];
}

export interface BundledModel {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  /** Beside the name without its publisher, which is always an alias. */
  readonly aliases?: readonly string[];
  readonly otherNames?: OtherNames;
  readonly inputs: readonly ContentKind[];
  readonly capabilities: readonly Capability[];
  /** A preview: its maker may change or withdraw it at short notice. */
  readonly isAlpha?: boolean;
  /** Where the price library has none. */
  readonly contextLength?: number;
  /** The vendor's name of the model, in order of preference. */
  readonly offers: Readonly<Partial<Record<BundledVendor, string>>>;
}

const TEXT: readonly ContentKind[] = ["text"];
const TEXT_IMAGE: readonly ContentKind[] = ["text", "image"];
const ALL_MEDIA: readonly ContentKind[] = ["text", "image", "audio", "video"];
const TOOLS: readonly Capability[] = ["tools"];
const THINKS: readonly Capability[] = ["tools", "reasoning"];

/** A model that its maker runs, and OpenRouter resells under `<publisher>/<name>`. */
function openAi(
  name: string,
  title: string,
  description: string,
  capabilities: readonly Capability[],
  otherNames: OtherNames = {},
): BundledModel {
  const id = `openai/${name}`;
  return { id, title, description, otherNames, inputs: TEXT_IMAGE, capabilities, offers: { openai: name, openrouter: id } };
}

/** Anthropic writes versions with a dash, OpenRouter with a dot. */
function claude(family: string, version: string, title: string, description: string, otherNames: OtherNames = {}): BundledModel {
  const name = `claude-${family}-${version}`;
  const resold = `anthropic/claude-${family}-${version.replace("-", ".")}`;
  return {
    id: `anthropic/${name}`,
    title,
    description,
    aliases: resold === `anthropic/${name}` ? [] : [resold],
    otherNames,
    inputs: TEXT_IMAGE,
    capabilities: THINKS,
    offers: { anthropic: name, openrouter: resold },
  };
}

/** Mistral's own publisher name at OpenRouter is `mistralai`. */
function mistral(name: string, title: string, description: string, inputs: readonly ContentKind[], ...formerly: string[]): BundledModel {
  const resold = `mistralai/${name}`;
  return {
    id: `mistral/${name}`,
    title,
    description,
    aliases: [resold],
    otherNames: { formerly },
    inputs,
    capabilities: TOOLS,
    contextLength: 262_144,
    offers: { mistral: name, openrouter: resold },
  };
}

const OPENAI: readonly BundledModel[] = [
  openAi("gpt-5.4-mini", "GPT-5.4 mini", "OpenAI's small model of the 5.4 generation.", THINKS, { snapshots: ["gpt-5.4-mini-2026-03-17"] }),
  openAi("gpt-5.4-nano", "GPT-5.4 nano", "OpenAI's smallest model of the 5.4 generation.", THINKS, {
    snapshots: ["gpt-5.4-nano-2026-03-17"],
  }),
  openAi("gpt-5.4", "GPT-5.4", "OpenAI's large model of the 5.4 generation.", THINKS, { snapshots: ["gpt-5.4-2026-03-05"] }),
  openAi("gpt-5.5", "GPT-5.5", "OpenAI's large model of the 5.5 generation.", THINKS, { snapshots: ["gpt-5.5-2026-04-23"] }),
  openAi("gpt-5.6-luna", "GPT-5.6 Luna", "OpenAI's smallest model of the 5.6 generation.", THINKS, {
    formerly: ["o4-mini", "o3-mini", "o1-mini"],
  }),
  openAi("gpt-5.6-terra", "GPT-5.6 Terra", "OpenAI's middle model of the 5.6 generation.", THINKS),
  openAi("gpt-5.6-sol", "GPT-5.6 Sol", "OpenAI's large model of the 5.6 generation.", THINKS, { formerly: ["o1", "o1-preview"] }),
  openAi("gpt-6-luna", "GPT-6 Luna", "OpenAI's smallest model of the 6 generation.", THINKS),
  openAi("gpt-6-sol", "GPT-6 Sol", "OpenAI's middle model of the 6 generation.", THINKS),
  {
    id: "openai/gpt-6-astra",
    title: "GPT-6 Astra",
    description: "OpenAI's large model of the 6 generation.",
    inputs: TEXT_IMAGE,
    capabilities: THINKS,
    offers: { openai: "gpt-6-astra" },
  },
  openAi("gpt-5.2", "GPT-5.2", "OpenAI's large model of the 5.2 generation.", THINKS, { snapshots: ["gpt-5.2-2025-12-11"] }),
  openAi("gpt-5.1", "GPT-5.1", "OpenAI's large model of the 5.1 generation.", THINKS, { snapshots: ["gpt-5.1-2025-11-13"] }),
  openAi("gpt-5", "GPT-5", "OpenAI's large model of the 5 generation.", THINKS, { snapshots: ["gpt-5-2025-08-07"] }),
  openAi("gpt-5-mini", "GPT-5 mini", "OpenAI's small model of the 5 generation.", THINKS, { snapshots: ["gpt-5-mini-2025-08-07"] }),
  openAi("gpt-5-nano", "GPT-5 nano", "OpenAI's smallest model of the 5 generation.", THINKS, { snapshots: ["gpt-5-nano-2025-08-07"] }),
  openAi("o3", "o3", "OpenAI's reasoning model of the third generation.", THINKS, { snapshots: ["o3-2025-04-16"] }),
  openAi("gpt-4.1", "GPT-4.1", "OpenAI's large model of the 4.1 generation.", TOOLS, { snapshots: ["gpt-4.1-2025-04-14"] }),
  openAi("gpt-4.1-mini", "GPT-4.1 mini", "OpenAI's small model of the 4.1 generation.", TOOLS, { snapshots: ["gpt-4.1-mini-2025-04-14"] }),
  openAi("gpt-4o", "GPT-4o", "OpenAI's large model of the 4o generation.", TOOLS, {
    snapshots: ["gpt-4o-2024-08-06", "gpt-4o-2024-11-20"],
    formerly: ["gpt-4", "gpt-4-turbo", "gpt-4-turbo-preview", "gpt-4-vision-preview", "gpt-4-32k", "chatgpt-4o-latest"],
  }),
  openAi("gpt-4o-mini", "GPT-4o mini", "OpenAI's small model of the 4o generation.", TOOLS, {
    snapshots: ["gpt-4o-mini-2024-07-18"],
    formerly: ["gpt-3.5-turbo", "gpt-3.5-turbo-16k"],
  }),
  {
    id: "openai/gpt-oss-120b",
    title: "GPT-OSS 120B",
    description: "OpenAI's open-weight model of 120 billion parameters.",
    inputs: TEXT,
    capabilities: THINKS,
    offers: { groq: "openai/gpt-oss-120b", cerebras: "gpt-oss-120b", openrouter: "openai/gpt-oss-120b" },
    contextLength: 131_072,
  },
  {
    id: "openai/gpt-oss-20b",
    title: "GPT-OSS 20B",
    description: "OpenAI's open-weight model of 20 billion parameters.",
    inputs: TEXT,
    capabilities: THINKS,
    offers: { groq: "openai/gpt-oss-20b", openrouter: "openai/gpt-oss-20b" },
  },
];

const ANTHROPIC: readonly BundledModel[] = [
  claude("haiku", "4-5", "Claude Haiku 4.5", "Anthropic's small model of the 4.5 generation.", {
    snapshots: ["claude-haiku-4-5-20251001"],
  }),
  claude("sonnet", "5", "Claude Sonnet 5", "Anthropic's middle model of the 5 generation."),
  claude("opus", "5-5", "Claude Opus 5.5", "Anthropic's large model of the 5.5 generation."),
  claude("fable", "5-1", "Claude Fable 5.1", "Anthropic's largest model of the 5.1 generation."),
  claude("opus", "5", "Claude Opus 5", "Anthropic's large model of the 5 generation."),
  claude("opus", "4-8", "Claude Opus 4.8", "Anthropic's large model of the 4.8 generation.", {
    formerly: ["claude-opus-4-1", "claude-opus-4-0", "claude-3-opus-latest"],
  }),
  claude("opus", "4-7", "Claude Opus 4.7", "Anthropic's large model of the 4.7 generation."),
  claude("opus", "4-6", "Claude Opus 4.6", "Anthropic's large model of the 4.6 generation."),
  claude("opus", "4-5", "Claude Opus 4.5", "Anthropic's large model of the 4.5 generation.", {
    snapshots: ["claude-opus-4-5-20251101"],
  }),
  claude("sonnet", "4-6", "Claude Sonnet 4.6", "Anthropic's middle model of the 4.6 generation.", {
    snapshots: [
      "claude-sonnet-4-5-20250929",
      "claude-sonnet-4-20250514",
      "claude-3-7-sonnet-20250219",
      "claude-3-5-sonnet-20241022",
      "claude-3-5-sonnet-20240620",
    ],
    formerly: ["claude-sonnet-4-5", "claude-sonnet-4-0", "claude-3-7-sonnet-latest", "claude-3-5-sonnet-latest"],
  }),
];

const GOOGLE: readonly BundledModel[] = [
  {
    id: "google/gemini-3.5-flash-lite",
    title: "Gemini 3.5 Flash Lite",
    description: "Google's small model of the 3.5 generation.",
    otherNames: { formerly: ["gemini-2.5-flash"] },
    inputs: ALL_MEDIA,
    capabilities: THINKS,
    offers: { gemini: "gemini-3.5-flash-lite" },
  },
  {
    id: "google/gemini-3.8-flash",
    title: "Gemini 3.8 Flash",
    description: "Google's middle model of the 3.8 generation.",
    otherNames: { formerly: ["gemini-2.5-pro"] },
    inputs: ALL_MEDIA,
    capabilities: THINKS,
    offers: { gemini: "gemini-3.8-flash" },
  },
  {
    id: "google/gemini-3.5-flash",
    title: "Gemini 3.5 Flash",
    description: "Google's middle model of the 3.5 generation.",
    inputs: ALL_MEDIA,
    capabilities: THINKS,
    offers: { gemini: "gemini-3.5-flash", openrouter: "google/gemini-3.5-flash" },
  },
  {
    id: "google/gemini-3.1-flash-lite",
    title: "Gemini 3.1 Flash Lite",
    description: "Google's small model of the 3.1 generation.",
    inputs: ALL_MEDIA,
    capabilities: THINKS,
    offers: { gemini: "gemini-3.1-flash-lite", openrouter: "google/gemini-3.1-flash-lite" },
  },
  {
    id: "google/gemini-3.1-pro-preview",
    title: "Gemini 3.1 Pro Preview",
    description: "Google's large model of the 3.1 generation, in preview.",
    otherNames: { formerly: ["gemini-3-pro-preview"] },
    inputs: ALL_MEDIA,
    capabilities: THINKS,
    isAlpha: true,
    contextLength: 1_048_576,
    offers: { gemini: "gemini-3.1-pro-preview", openrouter: "google/gemini-3.1-pro-preview" },
  },
  {
    id: "google/gemini-2.5-flash-lite",
    title: "Gemini 2.5 Flash Lite",
    description: "Google's small model of the 2.5 generation.",
    otherNames: { formerly: ["gemini-2.0-flash"] },
    inputs: ALL_MEDIA,
    capabilities: THINKS,
    offers: { gemini: "gemini-2.5-flash-lite", openrouter: "google/gemini-2.5-flash-lite" },
  },
  {
    id: "google/gemma-4-31b-it",
    title: "Gemma 4 31B",
    description: "Google's open-weight model of 31 billion parameters.",
    inputs: TEXT_IMAGE,
    capabilities: THINKS,
    offers: { cerebras: "gemma-4-31b", openrouter: "google/gemma-4-31b-it" },
  },
];

const MISTRAL: readonly BundledModel[] = [
  mistral("mistral-small-2603", "Mistral Small 4", "Mistral's small model.", TEXT_IMAGE, "mistral-small-latest"),
  mistral("mistral-medium-3-5", "Mistral Medium 3.5", "Mistral's middle model.", TEXT_IMAGE, "mistral-medium-latest"),
  mistral("mistral-large-2512", "Mistral Large 3", "Mistral's large model.", TEXT_IMAGE, "mistral-large-latest"),
  mistral("ministral-8b-2512", "Ministral 3 8B", "Mistral's model of 8 billion parameters.", TEXT_IMAGE, "ministral-8b-latest"),
  mistral("ministral-14b-2512", "Ministral 3 14B", "Mistral's model of 14 billion parameters.", TEXT_IMAGE),
  mistral("codestral-2508", "Codestral 2508", "Mistral's model for completing code.", TEXT, "codestral-latest"),
  mistral("devstral-2512", "Devstral 2", "Mistral's model for software agents.", TEXT),
];

export const MAKERS_MODELS: readonly BundledModel[] = [...OPENAI, ...ANTHROPIC, ...GOOGLE, ...MISTRAL];
