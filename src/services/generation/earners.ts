/** Who earns of a generation's charge (docs/spec/earnings.md): the owners of the serving community model and of the key's app. */
import type { Caller, EarningApp } from "../../context.js";
import type { Earners } from "../../store/ledger.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model } from "../catalog/model.js";
import { withShare } from "../catalog/pricing.js";
import type { Candidate } from "./routing/candidate.js";
import type { RoutedCatalog } from "./routing/own-routes.js";

const PRICE_PERCENT = 100n;
const MILLIONTHS = 10_000n;

/** Of a task whose charge others earn of. */
export interface Sharing {
  readonly app: EarningApp | undefined;
  /** Owners by the canonical ids of their models, without the caller. */
  readonly owners: ReadonlyMap<string, string>;
  /** What owners of models earn of the price, as a decimal percentage. */
  readonly modelPercent: string;
}

/** The app whose margin the caller pays. */
export function appOf(caller: Caller): EarningApp | undefined {
  return caller.kind === "key" ? caller.app : undefined;
}

/** The catalog at the prices that the caller pays: with the margin of the key's app. */
export function withMargin(catalog: RoutedCatalog, app: EarningApp | undefined): RoutedCatalog {
  if (app === undefined) return catalog;
  const share = (PRICE_PERCENT + BigInt(app.marginPercent)) * MILLIONTHS;
  const priced = (model: Model): Model => (model.rates.isFree ? model : { ...model, rates: withShare(model.rates, share) });
  return {
    models: catalog.models,
    resolve: (...request) => priced(catalog.resolve(...request)),
    fallbacksOf: (model) => catalog.fallbacksOf(model).map(priced),
  };
}

/** Undefined: it has no earners. */
export function sharingOf(
  catalog: Pick<Catalog, "ownerOf">,
  caller: { readonly accountId: string } & Caller,
  candidates: readonly Candidate[],
  modelPercent: string,
): Sharing | undefined {
  const app = appOf(caller);
  let owners: Map<string, string> | undefined;
  for (const { model } of candidates) {
    const owner = model.isCommunity && modelPercent !== "0" ? catalog.ownerOf(model) : null;
    if (owner === null || owner === caller.accountId) continue;
    owners ??= new Map();
    owners.set(model.id, owner);
  }
  return app === undefined && owners === undefined ? undefined : { app, owners: owners ?? new Map(), modelPercent };
}

/**
 * Earners of a charge by the model that serves. `countedNanocredits`: the price of the amounts that the gateway counted itself, where the
 * upstream reported others; null: the same.
 */
export function earnersOf(
  { app, owners, modelPercent }: Sharing,
  modelUsed: string,
  countedNanocredits: bigint | null,
): Earners | undefined {
  const owner = owners.get(modelUsed);
  if (app === undefined && owner === undefined) return undefined;
  const most = countedNanocredits === null ? {} : { most: countedNanocredits.toString() };
  return {
    ...(app && { app: { accountId: app.accountId, source: app.id, percent: app.marginPercent.toString() } }),
    ...(owner !== undefined && { model: { accountId: owner, source: modelUsed, percent: modelPercent, ...most } }),
  };
}

/** The margin within a charge, rounded down; undefined: no app takes one. */
export function marginIn({ app }: Sharing, chargedNanocredits: bigint): bigint | undefined {
  if (app === undefined) return undefined;
  const percent = BigInt(app.marginPercent);
  return (chargedNanocredits * percent) / (PRICE_PERCENT + percent);
}
