/** `routes` of a model in `MODELS_FILE` (docs/spec/routing.md): syntax, validation, and the single form, `upstream` and `upstreamModel`. */
import * as z from "zod";
import type { StatedDialect } from "../../formats/openai-chat/dialect.js";
import { dialectEntry } from "./dialect-entry.js";
import type { Modality } from "./modality.js";
import type { ModelDefinition, Upstream } from "./model.js";
import { longContext, statedPrices } from "./priced-fields-entry.js";
import { CATALOG_PRICE_FIELDS, type CatalogPriceField, type StatedPrices } from "./pricing.js";
import { DATA_POLICIES, QUANTIZATIONS, ROUTINGS, type RouteDefinition } from "./route.js";

/** Unspecified: routes of one model, its numbers, and regions of a route. */
export const ROUTES_MAX = 64;
const NUMBER_MAX = 1_000_000;
const REGIONS_MAX = 32;
/** Unspecified: milliseconds, the longest time of a request. */
const FIRST_TOKEN_MS_MAX = 300_000;
/** upstreamModel (docs/spec/limits.md). */
const NAME_CHARS_MAX = 253;

const name = z.string().min(1).max(NAME_CHARS_MAX);
const limit = z.int().min(1).max(1_000_000_000).nullish();
const region = z
  .string()
  .max(NAME_CHARS_MAX)
  .regex(/^[a-z0-9][a-z0-9-]*$/, "must be of lower-case letters, digits and dashes, such as eu or us-east-1");

export const routeEntry = z.strictObject({
  upstream: name,
  upstreamModel: name,
  priority: z.int().min(0).max(NUMBER_MAX).optional(),
  weight: z.number().min(0).max(NUMBER_MAX).optional(),
  /** What the operator pays. */
  prices: statedPrices.optional(),
  longContext: longContext.optional(),
  limits: z.strictObject({ rpm: limit, tpm: limit, concurrent: limit }).optional(),
  regions: z.array(region).max(REGIONS_MAX).optional(),
  dataPolicy: z.enum(DATA_POLICIES).optional(),
  quantization: z.enum(QUANTIZATIONS).optional(),
  firstTokenMs: z.int().min(1).max(FIRST_TOKEN_MS_MAX).optional(),
  dialect: dialectEntry.optional(),
});

/** An order of routes, or an object with it and the time of hedged requests. */
export const routingEntry = z.preprocess(
  (stated) => (typeof stated === "string" ? { order: stated } : stated),
  z.strictObject({ order: z.enum(ROUTINGS).optional(), hedgeAfterMs: z.int().min(1).max(FIRST_TOKEN_MS_MAX).optional() }),
);

type RouteEntry = z.output<typeof routeEntry>;
type RoutingEntry = z.output<typeof routingEntry>;

interface RoutedEntry {
  readonly modality: Modality;
  readonly routing?: RoutingEntry | undefined;
  readonly upstream?: string | undefined;
  readonly upstreamModel?: string | undefined;
  readonly dialect?: StatedDialect | undefined;
  readonly routes?: readonly RouteEntry[] | undefined;
}

/** Those stated, or the one of the single form. */
export function toRouteDefinitions({
  upstream = "",
  upstreamModel = "",
  dialect,
  routes,
}: Omit<RoutedEntry, "modality">): readonly RouteDefinition[] {
  return routes ? routes.map((entry) => toDefinition(entry, dialect)) : [{ upstreamId: upstream, upstreamModel, dialect }];
}

function toDefinition({ upstream, limits, ...same }: RouteEntry, dialect: StatedDialect | undefined): RouteDefinition {
  const { rpm = null, tpm = null, concurrent = null } = limits ?? {};
  return { dialect, ...same, upstreamId: upstream, ...(limits && { limits: { rpm, tpm, concurrent } }) };
}

export function toRouting(entry: RoutingEntry | undefined): Pick<ModelDefinition, "routing" | "hedgeAfterMs"> {
  return { routing: entry?.order, hedgeAfterMs: entry?.hedgeAfterMs };
}

/** `known` are ids of upstreams. */
export function checkRoutes(models: readonly RoutedEntry[], known: ReadonlySet<string>, problems: string[]): void {
  const noSuch = (id: string) => `there is no upstream ${id} (there is ${[...known].join(", ")})`;
  for (const [index, { modality, routing, upstream, upstreamModel, routes }] of models.entries()) {
    const path = `models.${index}`;
    if (routing?.hedgeAfterMs !== undefined && modality !== "text") problems.push(`${path}.routing.hedgeAfterMs: is of text models`);
    if (routes) {
      for (const [field, value] of Object.entries({ upstream, upstreamModel })) {
        if (value !== undefined) problems.push(`${path}.${field}: is there beside routes: state it in a route`);
      }
      for (const [place, route] of routes.entries()) {
        if (!known.has(route.upstream)) problems.push(`${path}.routes.${place}.upstream: ${noSuch(route.upstream)}`);
      }
      for (const { at, problem } of routeProblems(routes)) problems.push(`${path}.${at}: ${problem}`);
    } else if (upstream === undefined || upstreamModel === undefined) {
      const missing = upstream === undefined ? "upstream" : "upstreamModel";
      problems.push(`${path}.${missing}: is required, unless there are routes`);
    } else if (!known.has(upstream)) problems.push(`${path}.upstream: ${noSuch(upstream)}`);
  }
}

/** The parts of a route that its model's other routes restrict. */
export interface ComparedRoute extends Pick<RouteEntry, "upstream" | "upstreamModel" | "weight" | "longContext"> {
  readonly prices?: unknown;
}

/** Faults of the routes of one model: of the file, or with an operator's changes. */
export function routeProblems(routes: readonly ComparedRoute[]): readonly { readonly at: string; readonly problem: string }[] {
  const found = routes.flatMap((route, place) => {
    const isTwice = routes.some(
      (other, at) => at < place && other.upstream === route.upstream && other.upstreamModel === route.upstreamModel,
    );
    return [
      ...(isTwice ? [{ at: `routes.${place}`, problem: `${route.upstream} and ${route.upstreamModel} are there twice` }] : []),
      ...(route.longContext && !route.prices ? [{ at: `routes.${place}.longContext`, problem: "is of routes with prices" }] : []),
    ];
  });
  if (routes.every(({ weight }) => weight === 0)) found.push({ at: "routes", problem: "a route needs a weight above 0" });
  if (routes.length > ROUTES_MAX) found.push({ at: "routes", problem: `must hold at most ${ROUTES_MAX} routes` });
  return found;
}

/** Only OpenAI's format has a route for variations. */
export function servesVariations({ wireFormat }: Pick<Upstream, "wireFormat">): boolean {
  return wireFormat === "openai" || wireFormat === "sandbox";
}

interface PlacedDialect {
  readonly at: string;
  readonly upstream: string | undefined;
  readonly dialect: StatedDialect | undefined;
}

/** The entry's own dialect, for each upstream that gets it, and those of its routes. */
export function dialectsIn({ upstream, dialect, routes }: RoutedEntry): readonly PlacedDialect[] {
  if (!routes) return [{ at: "dialect", upstream, dialect }];
  return routes.map((route, place) =>
    route.dialect
      ? { at: `routes.${place}.dialect`, upstream: route.upstream, dialect: route.dialect }
      : { at: "dialect", upstream: route.upstream, dialect },
  );
}

/** All price objects of the entry's routes, by path. */
export function routePricesOf({
  routes = [],
}: {
  readonly routes?: readonly Pick<RouteEntry, "prices" | "longContext">[] | undefined;
}): readonly { readonly path: string; readonly prices: StatedPrices }[] {
  return routes.flatMap(({ prices, longContext: tiers = [] }, place) => [
    ...(prices ? [{ path: `routes.${place}.prices`, prices }] : []),
    ...tiers.map((tier, index) => ({ path: `routes.${place}.longContext.${index}.prices`, prices: tier.prices })),
  ]);
}

/** The first price of a route that is above its model's; null: none is. */
export function priceAboveOf(own: StatedPrices | "model" | undefined, prices: StatedPrices): CatalogPriceField | null {
  if (own === undefined || own === "model") return null;
  return CATALOG_PRICE_FIELDS.find((field) => (own[field] ?? 0n) > (prices[field] ?? 0n)) ?? null;
}
