/** Operators' changes of routes: inputs, and the stored form. */
import * as z from "zod";
import { formatPicocredits } from "../../lib/money.js";
import type { CatalogPriceField, StatedPrices } from "../catalog/pricing.js";
import { ROUTINGS, type RouteChange, type RouteLimits } from "../catalog/route.js";
import { routeEntry } from "../catalog/route-entry.js";
import type { ModelOverrides, RouteOverride } from "../catalog/route-overrides.js";
import { storableText } from "../requests/input.js";

const { priority, weight, limits, prices } = routeEntry.shape;
/** As of `upstreamModel` in `MODELS_FILE`. */
const name = storableText.min(1).max(253);
/** Unspecified: keys of one upstream. */
const key = z.int().min(1).max(64);

/** Null: as configured. Absent: unchanged. */
const settings = {
  enabled: z.boolean().nullish(),
  priority: priority.nullable(),
  weight: weight.nullable(),
  limits: limits.nullable(),
  prices: prices.nullable(),
};
const place = { model: name, upstream: name, upstream_model: name.nullish() };
/** The change may leave the model without an enabled route, so that it can no longer be called. */
const allowNone = z.boolean().nullish();

export const updateRouteInput = z.strictObject({ ...place, key_number: key.nullish(), ...settings, allow_none: allowNone });
export const addRouteInput = z.strictObject({ ...place, upstream_model: name, ...settings });
export const removeRouteInput = z.strictObject({ ...place, allow_none: allowNone });
export const resetRoutesInput = z.strictObject({
  model: name,
  upstream: name.nullish(),
  upstream_model: name.nullish(),
  key_number: key.nullish(),
  allow_none: allowNone,
});
export const setRoutingInput = z.strictObject({ model: name, routing: z.enum(ROUTINGS).nullable() });

export type UpdateRouteInput = z.output<typeof updateRouteInput>;
export type AddRouteInput = z.output<typeof addRouteInput>;
export type RemoveRouteInput = z.output<typeof removeRouteInput>;
export type ResetRoutesInput = z.output<typeof resetRoutesInput>;
export type SetRoutingInput = z.output<typeof setRoutingInput>;

type Settings = Pick<UpdateRouteInput, keyof typeof settings>;

export const ROUTE_SETTINGS = ["enabled", "priority", "weight", "limits", "prices"] as const;
export type RouteSetting = (typeof ROUTE_SETTINGS)[number];

export function statesNothing(input: Settings): boolean {
  return ROUTE_SETTINGS.every((setting) => input[setting] === undefined);
}

/** The former change with these settings. */
export function changedBy<Change extends RouteChange>(former: Change, input: Settings): Change {
  const { enabled, priority, weight, limits, prices } = input;
  const stated: { [Field in keyof RouteChange]: RouteChange[Field] | null | undefined } = {
    isEnabled: enabled,
    priority,
    weight,
    limits: limits && toLimits(limits),
    prices,
  };
  const entries = Object.entries(stated).filter(([, value]) => value !== undefined);
  return { ...former, ...Object.fromEntries(entries.map(([field, value]) => [field, value ?? undefined])) };
}

function toLimits({ rpm = null, tpm = null, concurrent = null }: NonNullable<Settings["limits"]>): RouteLimits {
  return { rpm, tpm, concurrent };
}

/** The settings that the change states. */
export function settingsOf({ isEnabled, priority, weight, limits, prices }: RouteChange): readonly RouteSetting[] {
  const stated = { enabled: isEnabled, priority, weight, limits, prices };
  return ROUTE_SETTINGS.filter((setting) => stated[setting] !== undefined);
}

/** False: the change has no effect, and need not be stored. */
export function isStored(override: RouteOverride): boolean {
  return override.isAdded || settingsOf(override).length > 0;
}

const stored = z.object({
  routing: z.enum(ROUTINGS).nullable(),
  routes: z.array(
    z.object({
      upstream: name,
      upstreamModel: name,
      key: key.nullable(),
      isAdded: z.boolean(),
      isEnabled: z.boolean().optional(),
      priority,
      weight,
      limits: limits.transform((each) => each && toLimits(each)),
      prices,
    }),
  ),
});

/** Null for a form that this version does not know. */
export function fromStored(changes: unknown): ModelOverrides | null {
  return stored.safeParse(changes).data ?? null;
}

export function toStored({ routing, routes }: ModelOverrides) {
  return {
    routing,
    routes: routes.map(({ prices, limits, ...same }) => ({
      ...same,
      ...(limits && { limits: { ...limits } }),
      ...(prices && { prices: priceTexts(prices) }),
    })),
  };
}

/** In credits per unit. */
export function priceTexts(prices: StatedPrices): Readonly<Record<string, string>> {
  const stated = Object.entries(prices) as [CatalogPriceField, bigint | undefined][];
  return Object.fromEntries(stated.flatMap(([field, price]) => (price === undefined ? [] : [[field, formatPicocredits(price)]])));
}
