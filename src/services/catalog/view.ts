/** Catalog entries as JSON (docs/spec/models.md#entries): pure functions of a model. */
import { formatPicocredits } from "../../lib/money.js";
import { setOwnValue } from "../../lib/own-values.js";
import { type ModelHealth, UNKNOWN_HEALTH } from "./community.js";
import { type Category, type ImagePricing, MODALITY_TRAITS } from "./modality.js";
import type { Model, PendingModelChange } from "./model.js";
import { type BilledKind, billedKinds } from "./pricing.js";

/**
 * Credits per unit of each kind as decimal strings, with fallback prices applied. Kinds are the columns of a usage row, so that a row times
 * its model's pricing is the row's cost, except for long prompts and priced fields; media with other prices have names of their own.
 */
export type PricingView = { readonly currency: "credits" } & Readonly<Record<string, string>>;

/** Unspecified: the names of the kinds in `pricing`. */
const KIND_NAMES: Readonly<Record<BilledKind, string>> = {
  inputTextTokens: "input_text_tokens",
  inputCachedTokens: "input_cached_tokens",
  inputCacheWriteTokens: "input_cache_write_tokens",
  inputCacheWriteHourTokens: "input_cache_write_hour_tokens",
  inputAudioTokens: "input_audio_tokens",
  inputImageTokens: "input_image_tokens",
  outputTextTokens: "output_text_tokens",
  outputReasoningTokens: "output_reasoning_tokens",
  outputAudioTokens: "output_audio_tokens",
  outputImageTokens: "output_image_tokens",
  outputVideoMilliseconds: "output_video_seconds",
  outputAudioMilliseconds: "output_audio_seconds",
  imageRequests: "image_requests",
  searchUnits: "search_units",
  characters: "characters",
  inputAudioMilliseconds: "input_audio_seconds",
};

/** An entry of GET /models and of the lists by modality. */
export interface CatalogEntry {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly publisher: string;
  readonly brand_url: string | null;
  readonly title: string;
  readonly description: string | null;
  readonly category: Category;
  readonly input_modalities: readonly string[];
  readonly output_modalities: readonly string[];
  readonly capabilities: readonly string[];
  readonly flags: { readonly paid: boolean; readonly alpha: boolean };
  readonly pricing: PricingView;
  readonly context_length: number | null;
  readonly voices: readonly string[];
  readonly community: boolean;
  readonly agent: boolean;
  readonly owner: string | null;
  readonly per_user_rpm: number | null;
  /** Of other accounts' calls in the last 24 hours. */
  readonly health: HealthView;
  /** ISO 8601, UTC. */
  readonly added_at: string;
  readonly pending_change: PendingChangeView | null;
}

export interface HealthView {
  readonly status: ModelHealth["status"];
  /** Of 1, to four decimals; null without calls. */
  readonly success_rate: number | null;
  readonly requests: number;
}

/** Only changed fields. */
export interface PendingChangeView {
  /** ISO 8601, UTC. */
  readonly effective_at: string;
  readonly visibility?: "public";
  readonly paid_only?: boolean;
  readonly image_pricing?: ImagePricing;
  /** All prices after the change. */
  readonly pricing?: PricingView;
}

/** A model of GET /v1/models, in OpenAI's list format. */
export interface OpenAiModel {
  readonly id: string;
  readonly object: "model";
  /** Seconds since 1970; constant while the model is listed. */
  readonly created: number;
  readonly owned_by: string;
  readonly aliases: readonly string[];
  readonly context_length: number | null;
  readonly capabilities: readonly string[];
  readonly pricing: PricingView;
  readonly input_modalities: readonly string[];
  readonly output_modalities: readonly string[];
}

export function toCatalogEntry(model: Model, health: ModelHealth = UNKNOWN_HEALTH): CatalogEntry {
  return {
    name: model.id,
    aliases: model.aliases,
    publisher: model.publisher,
    brand_url: model.brandUrl,
    title: model.title,
    description: model.description,
    category: MODALITY_TRAITS[model.modality].category,
    input_modalities: model.inputModalities,
    output_modalities: model.outputModalities,
    capabilities: model.capabilities,
    flags: model.flags,
    pricing: toPricing(model),
    context_length: model.contextLength,
    voices: model.voices,
    community: model.isCommunity,
    agent: model.isAgent,
    owner: model.owner,
    per_user_rpm: model.perUserRpm,
    health: toHealthView(health),
    added_at: model.addedAt.toISOString(),
    pending_change: model.pendingChange && toPendingChangeView(model.pendingChange),
  };
}

export function toHealthView({ status, successRate, requests }: ModelHealth): HealthView {
  return { status, success_rate: successRate === null ? null : Math.round(successRate * 10_000) / 10_000, requests };
}

function toPendingChangeView({ effectiveAt, visibility, paidOnly, imagePricing, pricing }: PendingModelChange): PendingChangeView {
  return {
    effective_at: effectiveAt.toISOString(),
    ...(visibility !== null && { visibility }),
    ...(paidOnly !== null && { paid_only: paidOnly }),
    ...(imagePricing !== null && { image_pricing: imagePricing }),
    ...(pricing !== null && { pricing: toPricing(pricing) }),
  };
}

export function toOpenAiModel(model: Model): OpenAiModel {
  return {
    id: model.id,
    object: "model",
    created: Math.floor(model.addedAt.getTime() / 1000),
    owned_by: model.publisher,
    aliases: model.aliases,
    context_length: model.contextLength,
    capabilities: model.capabilities,
    pricing: toPricing(model),
    input_modalities: model.inputModalities,
    output_modalities: model.outputModalities,
  };
}

/**
 * Every kind that the model bills, free ones included. Unspecified: a cache of an hour is included where it has its own price, and prices
 * of long prompts are named after their bound.
 */
export function toPricing(model: Pick<Model, "modality" | "imagePricing" | "rates">): PricingView {
  const { rates } = model;
  const hasHour = rates.inputCacheWriteHourTokens !== rates.inputCacheWriteTokens;
  const kinds = [...billedKinds(model), ...(hasHour ? (["inputCacheWriteHourTokens"] as const) : [])];
  const pricing: Record<string, string> = {};
  for (const kind of kinds) setOwnValue(pricing, KIND_NAMES[kind], formatPicocredits(rates[kind]));
  for (const { abovePromptTokens, rates: longer } of rates.longContext ?? []) {
    for (const kind of kinds) setOwnValue(pricing, `${KIND_NAMES[kind]}_above_${abovePromptTokens}`, formatPicocredits(longer[kind]));
  }
  return { currency: "credits", ...pricing };
}
