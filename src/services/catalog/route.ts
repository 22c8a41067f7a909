/**
 * The ways from a model to an upstream (docs/spec/routing.md): which upstream, under which name and key, at which price. Immutable, as
 * their model.
 */
import type { UsableVendorKey } from "../../context.js";
import type { StatedDialect } from "../../formats/openai-chat/dialect.js";
import type { BundledVendor } from "./bundled-vendors.js";
import { type LongContextPrices, type PricingBasis, type RateCard, type StatedPrices, toRateCard } from "./pricing.js";

/** What an upstream does with requests: keeps nothing, keeps them without training, or may train on them. */
export const DATA_POLICIES = ["zero-retention", "no-training", "training"] as const;
export type DataPolicy = (typeof DATA_POLICIES)[number];

/** Number formats of a model's weights. */
export const QUANTIZATIONS = ["int4", "int8", "fp4", "fp6", "fp8", "fp16", "bf16", "fp32"] as const;
export type Quantization = (typeof QUANTIZATIONS)[number];

/** How the routes of one priority are ordered: at random by weight, or by the operator's cost or measured times. */
export const ROUTINGS = ["weight", "price", "latency", "throughput"] as const;
export type Routing = (typeof ROUTINGS)[number];

/** Limits of one key at its upstream, kept by not calling it. Null: none known. */
export interface RouteLimits {
  /** Requests a minute. */
  readonly rpm: number | null;
  /** Tokens a minute, of prompts and answers. */
  readonly tpm: number | null;
  /** Requests at once. */
  readonly concurrent: number | null;
}

export interface Route {
  /** Unique within its model: the upstream, then `/` and its model's name, and `#` and the number of the key, where there are several. */
  readonly id: string;
  readonly upstreamId: string;
  /** For callers and metrics: the upstream's id, or `community` for registered models. */
  readonly upstreamName: string;
  /** The upstream's own name of the model. */
  readonly upstreamModel: string;
  /** The place of its key among those of the upstream, from 0. */
  readonly keyIndex: number;
  /** Names its upstream and key: routes of several models may share one. */
  readonly keyId: string;
  /** The bundled catalog's vendor, which only gets known fields; null: another upstream. */
  readonly vendor: BundledVendor | null;
  /** As the operator states it for this model; null: that of its upstream. */
  readonly dialect: StatedDialect | null;
  /** Routes with a lower number are tried first. */
  readonly priority: number;
  /** The share of calls within its priority; 0: only after all others. */
  readonly weight: number;
  /** What the operator pays, as stated; null: unknown, or the model's prices. */
  readonly prices: StatedPrices | null;
  /** Rates of `prices`; null as there. */
  readonly rates: RateCard | null;
  /** The operator pays what the model costs callers. */
  readonly isAtModelPrice: boolean;
  /** Null: none known. */
  readonly limits: RouteLimits | null;
  /** In lower case, such as `eu`; empty: unknown. */
  readonly regions: readonly string[];
  /** Null: unknown. */
  readonly dataPolicy: DataPolicy | null;
  readonly quantization: Quantization | null;
  /** The longest wait for a stream's first piece, in milliseconds, while another route is left; null: that of every upstream. */
  readonly firstTokenMs: number | null;
  /** Calls use this key of the account instead of the operator's; absent: the operator's. */
  readonly vendorKey?: RouteVendorKey | undefined;
}

export interface RouteVendorKey {
  readonly key: UsableVendorKey;
  /** The operator's upstream, whose address is called. */
  readonly upstreamId: string;
  /** Millionths of the model's price that a call is charged. */
  readonly feeShare: bigint;
}

/** The id of the operator's upstream that a route calls, by whichever key. */
export function calledUpstreamOf({ vendorKey, upstreamId }: Pick<Route, "vendorKey" | "upstreamId">): string {
  return vendorKey?.upstreamId ?? upstreamId;
}

/** Begins the ids of routes by vendor keys. No upstream has a colon in its id. */
export const VENDOR_KEY_PREFIX = "vendor-key:";

/** The vendor key of a route's id, as in usage rows; null: none. */
export function vendorKeyIdOf(routeId: string | null): string | null {
  return routeId?.startsWith(VENDOR_KEY_PREFIX) ? (routeId.slice(VENDOR_KEY_PREFIX.length).split("/", 1)[0] ?? null) : null;
}

/** At least one. */
export type Routes = readonly [Route, ...Route[]];

/** A source's statements about a route. */
export interface RouteDefinition {
  readonly upstreamId: string;
  readonly upstreamModel: string;
  readonly upstreamName?: string | undefined;
  readonly dialect?: StatedDialect | undefined;
  /** Default: 0. */
  readonly priority?: number | undefined;
  /** Default: 1. Shared by the upstream's keys. */
  readonly weight?: number | undefined;
  /** `model`: the model's own prices. */
  readonly prices?: StatedPrices | "model" | undefined;
  readonly longContext?: readonly LongContextPrices[] | undefined;
  readonly limits?: RouteLimits | undefined;
  readonly regions?: readonly string[] | undefined;
  readonly dataPolicy?: DataPolicy | undefined;
  readonly quantization?: Quantization | undefined;
  readonly firstTokenMs?: number | undefined;
  /** Default: true. */
  readonly isEnabled?: boolean | undefined;
  /** Of single keys, by their place from 0. */
  readonly ofKeys?: ReadonlyMap<number, RouteChange> | undefined;
}

/** The parts of a route that operators change while the gateway runs; absent: unchanged. */
export interface RouteChange extends Pick<RouteDefinition, "isEnabled" | "priority" | "weight" | "limits"> {
  readonly prices?: StatedPrices | undefined;
}

/** The parts of an upstream on which its routes depend. */
export interface RoutedUpstream {
  readonly furtherApiKeys?: readonly string[] | undefined;
  readonly vendor?: BundledVendor | undefined;
}

export type FindUpstream = (id: string) => RoutedUpstream | undefined;

export interface PlacedRoute {
  readonly route: Route;
  /** False: an operator has disabled it, so the model does not have it. */
  readonly isEnabled: boolean;
  readonly definition: RouteDefinition;
}

/** The enabled ones. Throws when there is none. */
export function toRoutes(stated: readonly RouteDefinition[], basis: PricingBasis, find: FindUpstream): Routes {
  const [first, ...others] = toPlacedRoutes(stated, basis, find).flatMap(({ route, isEnabled }) => (isEnabled ? [route] : []));
  if (!first) throw new Error("A model of the catalog has no route.");
  return Object.freeze([first, ...others]);
}

/** One route for each key of each stated upstream, in the stated order. */
export function toPlacedRoutes(stated: readonly RouteDefinition[], basis: PricingBasis, find: FindUpstream): readonly PlacedRoute[] {
  return stated.flatMap((each) => toRoutesOfKeys(each, stated, basis, find(each.upstreamId)));
}

export function keyCountOf(upstream: RoutedUpstream | undefined): number {
  return 1 + (upstream?.furtherApiKeys?.length ?? 0);
}

function toRoutesOfKeys(
  definition: RouteDefinition,
  stated: readonly RouteDefinition[],
  basis: PricingBasis,
  upstream: RoutedUpstream | undefined,
): PlacedRoute[] {
  const { upstreamId, upstreamModel, upstreamName = upstreamId, ofKeys } = definition;
  const keys = keyCountOf(upstream);
  const isNamedTwice = stated.filter((other) => other.upstreamId === upstreamId).length > 1;
  const name = isNamedTwice ? `${upstreamId}/${upstreamModel}` : upstreamId;
  const changed = Array.from({ length: keys }, (_, keyIndex) => withChange(definition, ofKeys?.get(keyIndex) ?? {}));
  // Disabled keys leave their share to the others.
  const sharing = changed.filter(({ isEnabled = true }, keyIndex) => isEnabled && ofKeys?.get(keyIndex)?.weight === undefined).length;
  return changed.map((own, keyIndex) => {
    const { prices, longContext, weight = 1, isEnabled = true } = own;
    const isPriced = prices !== undefined && prices !== "model";
    const route = Object.freeze({
      id: keys === 1 ? name : `${name}#${keyIndex + 1}`,
      upstreamId,
      upstreamName,
      upstreamModel,
      keyIndex,
      keyId: keyIdOf(upstreamId, keyIndex),
      vendor: upstream?.vendor ?? null,
      dialect: definition.dialect ?? null,
      priority: own.priority ?? 0,
      weight: ofKeys?.get(keyIndex)?.weight ?? weight / Math.max(1, sharing),
      prices: isPriced ? prices : null,
      rates: isPriced ? toRateCard(prices, basis, longContext) : null,
      isAtModelPrice: prices === "model",
      limits: own.limits ?? null,
      regions: definition.regions ?? [],
      dataPolicy: definition.dataPolicy ?? null,
      quantization: definition.quantization ?? null,
      firstTokenMs: definition.firstTokenMs ?? null,
    });
    return { route, isEnabled, definition };
  });
}

/** Changed prices hold for long prompts too. */
export function withChange(definition: RouteDefinition, change: RouteChange): RouteDefinition {
  const { isEnabled, priority, weight, limits, prices } = change;
  return {
    ...definition,
    ...(isEnabled !== undefined && { isEnabled }),
    ...(priority !== undefined && { priority }),
    ...(weight !== undefined && { weight }),
    ...(limits !== undefined && { limits }),
    ...(prices !== undefined && { prices, longContext: undefined }),
  };
}

/** `openai` for the first key, `openai#2` for the second. */
function keyIdOf(upstreamId: string, keyIndex: number): string {
  return keyIndex === 0 ? upstreamId : `${upstreamId}#${keyIndex + 1}`;
}
