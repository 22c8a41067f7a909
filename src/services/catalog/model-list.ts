/** Lists of the catalog: filter, order and pages. */
import * as z from "zod";
import { type Page, type PageRequest, pageOfRanked, type RankedPosition } from "../../lib/pagination.js";
import { CATALOG_SEARCH_CHARS_MAX, MODEL_REFERENCE_CHARS_MAX } from "../../limits.js";
import { HEALTH_STATUSES, type ModelHealth } from "./community.js";
import { MODALITIES, type Modality } from "./modality.js";
import { CAPABILITIES, type Capability, type Model } from "./model.js";
import { headlinePrices } from "./pricing.js";

/** Absent fields match everything. */
export interface CatalogFilter {
  readonly modalities?: readonly Modality[] | undefined;
  /** Words that must all be in the id, an alias, the title, the description or the publisher, in any case. */
  readonly search?: string | undefined;
  /** One of `CAPABILITIES`. */
  readonly capability?: string | undefined;
  /** All of them. */
  readonly capabilities?: readonly Capability[] | undefined;
  readonly publishers?: readonly string[] | undefined;
  /** True: only registered models; false: none of those. */
  readonly community?: boolean | undefined;
  /** Include unreliable models of other accounts. */
  readonly reliability?: "all" | undefined;
  /** Overrides `reliability`. */
  readonly healthStatuses?: readonly ModelHealth["status"][] | undefined;
  readonly isFree?: boolean | undefined;
  /** Picocredits per unit; 0 for kinds that a model does not bill. */
  readonly maxInputPrice?: bigint | undefined;
  readonly maxOutputPrice?: bigint | undefined;
}

const publisher = z.string().min(1).max(MODEL_REFERENCE_CHARS_MAX);
/** Unspecified: the publishers of one filter. */
const PUBLISHERS_MAX = 100;

export const modelFilterInput = z.strictObject({
  search: z.string().max(CATALOG_SEARCH_CHARS_MAX).nullish(),
  modalities: z.array(z.enum(MODALITIES)).min(1).max(MODALITIES.length).nullish(),
  capabilities: z.array(z.enum(CAPABILITIES)).min(1).max(CAPABILITIES.length).nullish(),
  publishers: z.array(publisher).min(1).max(PUBLISHERS_MAX).nullish(),
  healthStatuses: z.array(z.enum(HEALTH_STATUSES)).min(1).max(HEALTH_STATUSES.length).nullish(),
  isCommunity: z.boolean().nullish(),
  isFree: z.boolean().nullish(),
  maxInputPrice: z.bigint().nullish(),
  maxOutputPrice: z.bigint().nullish(),
});
export type ModelFilter = z.input<typeof modelFilterInput>;

export function toCatalogFilter({ isCommunity, ...filter }: z.output<typeof modelFilterInput>): CatalogFilter {
  const stated = Object.entries({ ...filter, community: isCommunity }).filter(([, value]) => value !== null);
  return Object.fromEntries(stated) as CatalogFilter;
}

export function toTest(filter: CatalogFilter, healthOf: (model: Model) => ModelHealth): (model: Model) => boolean {
  const { modalities, capability, capabilities, publishers, healthStatuses, isFree, maxInputPrice, maxOutputPrice } = filter;
  const words = (filter.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return (model) =>
    (modalities === undefined || modalities.includes(model.modality)) &&
    (capability === undefined || model.capabilities.some((own) => own === capability)) &&
    (capabilities === undefined || capabilities.every((wanted) => model.capabilities.includes(wanted))) &&
    (publishers === undefined || publishers.includes(model.publisher)) &&
    (isFree === undefined || isFree !== model.flags.paid) &&
    (maxInputPrice === undefined || (headlinePrices(model).input ?? 0n) <= maxInputPrice) &&
    (maxOutputPrice === undefined || (headlinePrices(model).output ?? 0n) <= maxOutputPrice) &&
    (healthStatuses === undefined || healthStatuses.includes(healthOf(model).status)) &&
    hasWords(model, words);
}

function hasWords(model: Model, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = [model.id, ...model.aliases, model.title, model.description ?? "", model.publisher].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Default order of built-in models. */
export function compareListed(one: Model, other: Model): number {
  return (
    MODALITIES.indexOf(one.modality) - MODALITIES.indexOf(other.modality) ||
    Number(other.isDefault) - Number(one.isDefault) ||
    Number(one.flags.alpha) - Number(other.flags.alpha) ||
    (one.id < other.id ? -1 : 1)
  );
}

/** By modality; within one, registered models come last. */
export function inOrder(builtIn: readonly Model[], registered: readonly Model[]): readonly Model[] {
  if (registered.length === 0) return builtIn;
  return MODALITIES.flatMap((modality) => [builtIn, registered].flatMap((models) => models.filter((model) => model.modality === modality)));
}

export const MODEL_ORDER_FIELDS = ["default", "title", "price", "added_at"] as const;

export interface ModelOrder {
  readonly field: (typeof MODEL_ORDER_FIELDS)[number];
  readonly direction: "asc" | "desc";
}

/** Prices are below PRICE_CREDITS_MAX, in picocredits. */
const PRICE_DIGITS = 20;

/** A model's rank in an order, as texts that sort like the models. Ids break ties. */
const RANKS: Readonly<Record<ModelOrder["field"], (model: Model) => string>> = {
  default: ({ modality, isCommunity, isDefault, flags }) =>
    [String(MODALITIES.indexOf(modality)).padStart(2, "0"), Number(isCommunity), Number(!isDefault), Number(flags.alpha)].join("."),
  title: ({ title }) => title.toLowerCase(),
  price: (model) => {
    const { output, input } = headlinePrices(model);
    return (output ?? input ?? 0n).toString().padStart(PRICE_DIGITS, "0");
  },
  added_at: ({ addedAt }) => addedAt.toISOString(),
};

export function modelPosition(model: Model, { field }: ModelOrder): RankedPosition {
  return { rank: RANKS[field](model), id: model.id };
}

/** Cursors are positions, so pages continue even if their model is gone. */
export function pageOf(models: readonly Model[], order: ModelOrder, page: PageRequest<RankedPosition>): Page<Model> {
  return pageOfRanked(models, (model) => modelPosition(model, order), order.direction, page);
}
