/**
 * Routes by vendor keys of the caller's account (docs/spec/vendor-keys.md#use), beside or instead of those by the operator's keys. A
 * caller without vendor keys gets the catalog as it is.
 */
import type { Caller, UsableVendorKey, VendorKeyUse } from "../../../context.js";
import type { Catalog } from "../../catalog/catalog.js";
import { isGeminiFormat, isMessagesFormat, type Model, type Upstream } from "../../catalog/model.js";
import { type RateCard, withShare } from "../../catalog/pricing.js";
import { type Route, type Routes, VENDOR_KEY_PREFIX } from "../../catalog/route.js";
import type { Candidate } from "./candidate.js";

/** The parts of the catalog that planning a generation uses. */
export type RoutedCatalog = Pick<Catalog, "resolve" | "fallbacksOf" | "models">;

/** Whether keys of accounts can be used at an upstream: it has a key itself, and a format whose keys the gateway can check. */
export function takesVendorKeys(upstream: Upstream): boolean {
  const isKnownFormat = upstream.wireFormat === "openai" || isMessagesFormat(upstream) || isGeminiFormat(upstream);
  return isKnownFormat && upstream.apiKey !== null;
}

/** The rates of a call: the fee for a vendor key, which the account pays at its vendor. */
export function ratesOf({ vendorKey }: Pick<Route, "vendorKey">, rates: RateCard): RateCard {
  return vendorKey ? withShare(rates, vendorKey.feeShare) : rates;
}

/** The rates that cover every candidate. */
export function holdRates(candidates: readonly Pick<Candidate, "route">[], rates: RateCard): RateCard {
  const [first] = candidates;
  return first && candidates.every(isByVendorKey) ? ratesOf(first.route, rates) : rates;
}

export function isByVendorKey({ route }: Pick<Candidate, "route">): boolean {
  return route.vendorKey !== undefined;
}

/** The catalog as the caller sees it: models have routes by the caller's vendor keys. `feeShare` is in millionths. */
export function withVendorKeys(catalog: Catalog, caller: Caller, feeShare: bigint): RoutedCatalog {
  const keys = caller.kind === "anonymous" ? undefined : caller.vendorKeys;
  if (keys === undefined) return catalog;
  const routed = (model: Model) => withOwnRoutes(model, keys, feeShare, (id) => takesVendorKeys(catalog.upstream(id)));
  return {
    models: catalog.models,
    resolve: (...request) => routed(catalog.resolve(...request)),
    fallbacksOf: (model) => {
      const fallbacks = catalog.fallbacksOf(model).map(routed);
      // An account that wants its own keys only does not pay for another model of the operator's either.
      return isOwnOnly(model) ? fallbacks.filter(isOwnOnly) : fallbacks;
    },
  };
}

function isOwnOnly({ routes }: Model): boolean {
  return routes.every((route) => route.vendorKey !== undefined);
}

/** Pure. The order of the routes is that of `inAccountsOrder`. */
export function withOwnRoutes(
  model: Model,
  keys: readonly UsableVendorKey[],
  feeShare: bigint,
  takesKeys: (upstreamId: string) => boolean,
): Model {
  if (model.isCommunity || model.agentType !== null) return model;
  const named = keys.filter(({ models }) => models.length === 0 || models.includes(model.id));
  const own = named.flatMap((key) => routesBy(key, model.routes, feeShare, takesKeys));
  const [first, ...others] = own;
  if (!first) return model;
  const isOnly = own.some(({ vendorKey }) => vendorKey?.key.use === "only");
  const routes: Routes = isOnly ? [first, ...others] : [...model.routes, ...own];
  // A hedged call would be paid twice: by the account at its vendor, and by the operator.
  return { ...model, routes: inAccountsOrder(routes) as Routes, hedgeAfterMs: null };
}

/** One for each name that the vendor has for the model, however many keys the operator has there. */
function routesBy(key: UsableVendorKey, routes: Routes, feeShare: bigint, takesKeys: (upstreamId: string) => boolean): Route[] {
  const calls = routes.filter(({ upstreamId }) => upstreamId === key.vendor);
  const ofVendor = calls.filter((route, at) => calls.findIndex(({ upstreamModel }) => upstreamModel === route.upstreamModel) === at);
  if (ofVendor.length === 0 || !takesKeys(key.vendor)) return [];
  const keyId = `${VENDOR_KEY_PREFIX}${key.id}`;
  return ofVendor.map((route, index) => ({
    ...route,
    id: index === 0 ? keyId : `${keyId}/${route.upstreamModel}`,
    // An upstream of its own: its failures say nothing about the operator's keys, and theirs nothing about it.
    upstreamId: keyId,
    keyId: `${keyId}#${key.version}`,
    weight: 1,
    prices: null,
    rates: null,
    isAtModelPrice: false,
    limits: null,
    vendorKey: { key, upstreamId: route.upstreamId, feeShare },
  }));
}

const RANKS: Readonly<Record<VendorKeyUse, number>> = { only: 0, before: 0, after: 2 };
const OPERATORS_RANK = 1;

/** Routes by keys that are used before the operator's, those by the operator's keys, and the others. Otherwise the order stays. */
export function inAccountsOrder(routes: readonly Route[]): readonly Route[] {
  if (routes.every(({ vendorKey }) => vendorKey === undefined)) return routes;
  const rankOf = ({ vendorKey }: Route) => (vendorKey ? RANKS[vendorKey.key.use] : OPERATORS_RANK);
  return [...routes].sort((one, other) => rankOf(one) - rankOf(other));
}
