/** What the catalog is asked for, as it stands in the address's query. */
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
  ["TOOLS", "Calls functions"],
  ["REASONING", "Thinks first"],
  ["VISION", "Sees pictures"],
  ["SEARCH", "Searches the web"],
  ["CODE_EXEC", "Runs code"],
]);

export const HEALTH: ReadonlyMap<ModelHealthStatus, string> = new Map([
  ["HEALTHY", "Healthy"],
  ["UNKNOWN", "Not known"],
  ["UNRELIABLE", "Unreliable"],
]);

export const COSTS: ReadonlyMap<string, string> = new Map([
  ["free", "Free"],
  ["paid", "Not free"],
]);

export const MAKERS: ReadonlyMap<string, string> = new Map([
  ["community", "By accounts"],
  ["catalog", "Not by accounts"],
]);

export const ORDERS: ReadonlyMap<string, { readonly label: string; readonly order: ModelOrder }> = new Map([
  ["type", { label: "Type", order: { field: "DEFAULT", direction: "ASC" } }],
  ["title", { label: "Name", order: { field: "TITLE", direction: "ASC" } }],
  ["cheap", { label: "Cheapest first", order: { field: "PRICE", direction: "ASC" } }],
  ["dear", { label: "Dearest first", order: { field: "PRICE", direction: "DESC" } }],
  ["new", { label: "Newest first", order: { field: "ADDED_AT", direction: "DESC" } }],
]);
export const ORDER_DEFAULT = "type";

interface PriceCompared {
  readonly label: string;
  readonly field: "maxInputPrice" | "maxOutputPrice";
  readonly isOfAMillion: boolean;
}

const TOKENS_OUT: PriceCompared = { label: "Credits, a million out", field: "maxOutputPrice", isOfAMillion: true };
const SECOND_OUT: PriceCompared = { label: "Credits, a second", field: "maxOutputPrice", isOfAMillion: false };

/** By what models of a type are compared: units of different types say nothing of each other. */
const PRICES_COMPARED: ReadonlyMap<Modality, PriceCompared> = new Map<Modality, PriceCompared>([
  ["TEXT", TOKENS_OUT],
  ["REALTIME", TOKENS_OUT],
  ["SPEECH", { ...TOKENS_OUT, label: "Credits, a million read" }],
  ["IMAGE", { ...SECOND_OUT, label: "Credits, a picture" }],
  ["VIDEO", SECOND_OUT],
  ["MUSIC", SECOND_OUT],
  ["TRANSCRIPTION", { ...SECOND_OUT, field: "maxInputPrice" }],
  ["EMBEDDING", { label: "Credits, a million in", field: "maxInputPrice", isOfAMillion: true }],
]);

export function priceComparedIn(query: URLSearchParams): PriceCompared | undefined {
  const modality = toModality(query.get("modality"));
  return modality && PRICES_COMPARED.get(modality);
}

const PRICE = /^\d{1,12}(?:\.\d{1,12})?$/;

function atMost(text: string, { isOfAMillion }: PriceCompared): string | null {
  if (isOfAMillion) return fromPerMillion(text);
  return PRICE.test(text) ? text : null;
}

export type FilterName = "q" | "modality" | "can" | "publisher" | "cost" | "max" | "by" | "health" | "order" | "after";

const PAGE = 50;

/** What cannot be is as if it were not there. */
export function readModels(query: URLSearchParams): ModelsListQueryVariables {
  const text = (name: FilterName) => query.get(name)?.trim() || undefined;
  const modality = toModality(query.get("modality"));
  const capabilities = [...CAPABILITIES.keys()].filter((known) => query.getAll("can").includes(known));
  const health = [...HEALTH.keys()].find((known) => known === query.get("health"));
  const compared = priceComparedIn(query);
  const most = compared ? atMost(query.get("max")?.trim() ?? "", compared) : null;
  const [cost, by, search, publisher, after] = [text("cost"), text("by"), text("q"), text("publisher"), text("after")];
  const filter: ModelFilter = {
    ...(search !== undefined && { search }),
    ...(modality !== undefined && { modalities: [modality] }),
    ...(capabilities.length > 0 && { capabilities }),
    ...(publisher !== undefined && { publishers: [publisher] }),
    ...(cost !== undefined && COSTS.has(cost) && { isFree: cost === "free" }),
    ...(by !== undefined && MAKERS.has(by) && { isCommunity: by === "community" }),
    ...(health !== undefined && { healthStatuses: [health] }),
    ...(compared && most !== null && { [compared.field]: most }),
  };
  const { order } = ORDERS.get(text("order") ?? ORDER_DEFAULT) ?? { order: { field: "DEFAULT", direction: "ASC" } as const };
  return { first: PAGE, filter, orderBy: order, ...(after !== undefined && { after }) };
}
