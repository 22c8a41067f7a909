/** Filters of the catalog, stored in the query of the address. */
import type {
  Modality,
  ModelCapability,
  ModelFilter,
  ModelHealthStatus,
  ModelOrder,
  ModelsListQueryVariables,
} from "../../client/generated/graphql.js";
import { toModality } from "../../ui/modalities.js";
import { fromPerMillion } from "../../ui/prices.js";

export const CAPABILITIES: ReadonlyMap<ModelCapability, string> = new Map([
  ["TOOLS", "Tool calling"],
  ["REASONING", "Reasoning"],
  ["VISION", "Vision"],
  ["SEARCH", "Web search"],
  ["CODE_EXEC", "Code execution"],
]);

export const HEALTH: ReadonlyMap<ModelHealthStatus, string> = new Map([
  ["HEALTHY", "Healthy"],
  ["UNKNOWN", "Unknown"],
  ["UNRELIABLE", "Unreliable"],
]);

export const COSTS: ReadonlyMap<string, string> = new Map([
  ["free", "Free"],
  ["paid", "Paid"],
]);

export const SOURCES: ReadonlyMap<string, string> = new Map([
  ["community", "Community"],
  ["catalog", "Gateway"],
]);

export const ORDERS: ReadonlyMap<string, { readonly label: string; readonly order: ModelOrder }> = new Map([
  ["type", { label: "Type", order: { field: "DEFAULT", direction: "ASC" } }],
  ["title", { label: "Name", order: { field: "TITLE", direction: "ASC" } }],
  ["cheap", { label: "Price, low to high", order: { field: "PRICE", direction: "ASC" } }],
  ["dear", { label: "Price, high to low", order: { field: "PRICE", direction: "DESC" } }],
  ["new", { label: "Newest first", order: { field: "ADDED_AT", direction: "DESC" } }],
]);
export const ORDER_DEFAULT = "type";

interface PriceFilter {
  readonly label: string;
  readonly field: "maxInputPrice" | "maxOutputPrice";
  readonly isPerMillion: boolean;
}

const PER_OUTPUT_TOKENS: PriceFilter = { label: "Credits per 1M output", field: "maxOutputPrice", isPerMillion: true };
const PER_OUTPUT_SECOND: PriceFilter = { label: "Credits per second", field: "maxOutputPrice", isPerMillion: false };

/** Price that the filter compares. It depends on the type, because types have different units. */
const PRICE_FILTERS: ReadonlyMap<Modality, PriceFilter> = new Map<Modality, PriceFilter>([
  ["TEXT", PER_OUTPUT_TOKENS],
  ["REALTIME", PER_OUTPUT_TOKENS],
  ["SPEECH", { ...PER_OUTPUT_TOKENS, label: "Credits per 1M characters" }],
  ["IMAGE", { ...PER_OUTPUT_SECOND, label: "Credits per image" }],
  ["VIDEO", PER_OUTPUT_SECOND],
  ["MUSIC", PER_OUTPUT_SECOND],
  ["TRANSCRIPTION", { ...PER_OUTPUT_SECOND, field: "maxInputPrice" }],
  ["EMBEDDING", { label: "Credits per 1M input", field: "maxInputPrice", isPerMillion: true }],
]);

export function priceFilterFor(query: URLSearchParams): PriceFilter | undefined {
  const modality = toModality(query.get("modality"));
  return modality && PRICE_FILTERS.get(modality);
}

const PRICE = /^\d{1,12}(?:\.\d{1,12})?$/;

function toMaxPrice(text: string, { isPerMillion }: PriceFilter): string | null {
  if (isPerMillion) return fromPerMillion(text);
  return PRICE.test(text) ? text : null;
}

export type FilterName = "q" | "modality" | "can" | "publisher" | "cost" | "max" | "by" | "health" | "order" | "after";

const PAGE = 50;

/** Ignores invalid values. */
export function readModels(query: URLSearchParams): ModelsListQueryVariables {
  const text = (name: FilterName) => query.get(name)?.trim() || undefined;
  const modality = toModality(query.get("modality"));
  const capabilities = [...CAPABILITIES.keys()].filter((known) => query.getAll("can").includes(known));
  const health = [...HEALTH.keys()].find((known) => known === query.get("health"));
  const priceFilter = priceFilterFor(query);
  const maxPrice = priceFilter ? toMaxPrice(query.get("max")?.trim() ?? "", priceFilter) : null;
  const [cost, by, search, publisher, after] = [text("cost"), text("by"), text("q"), text("publisher"), text("after")];
  const filter: ModelFilter = {
    ...(search !== undefined && { search }),
    ...(modality !== undefined && { modalities: [modality] }),
    ...(capabilities.length > 0 && { capabilities }),
    ...(publisher !== undefined && { publishers: [publisher] }),
    ...(cost !== undefined && COSTS.has(cost) && { isFree: cost === "free" }),
    ...(by !== undefined && SOURCES.has(by) && { isCommunity: by === "community" }),
    ...(health !== undefined && { healthStatuses: [health] }),
    ...(priceFilter && maxPrice !== null && { [priceFilter.field]: maxPrice }),
  };
  const { order } = ORDERS.get(text("order") ?? ORDER_DEFAULT) ?? { order: { field: "DEFAULT", direction: "ASC" } as const };
  return { first: PAGE, filter, orderBy: order, ...(after !== undefined && { after }) };
}
