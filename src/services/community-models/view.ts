/** A registered model as its owner sees it on both faces (docs/spec/community-models.md#record). */
import type { ContentKind, ImagePricing } from "../catalog/modality.js";
import type { SafetyFeature, UpstreamApi } from "../catalog/model.js";
import { chargedPrices, PRICE_FIELDS, type PriceField, type PricingBasis, type StatedPrices } from "../catalog/pricing.js";
import type { AdvertisedCapability, InputKind, ProxyModality } from "./models-input.js";
import {
  applied,
  type CommunityModelRow,
  type CommunityModelTerms,
  communityModelId,
  pendingAt,
  type TermsRow,
  termsAt,
} from "./record.js";

/** Picocredits per unit, with fallback prices applied; 0 for prices that the model does not use. */
export type ChargedPrices = Readonly<Record<PriceField, bigint>>;

/** The model after its scheduled change; null, or an absent price: unchanged. */
export interface PendingView {
  readonly effectiveAt: Date;
  readonly visibility: "public" | null;
  readonly paidOnly: boolean | null;
  readonly imagePricing: ImagePricing | null;
  readonly prices: Readonly<Partial<Record<PriceField, bigint>>>;
}

export interface CommonView {
  readonly id: string;
  /** Callable: `community/<owner>/<name>`. */
  readonly modelId: string;
  readonly name: string;
  readonly title: string;
  readonly description: string | null;
  readonly visibility: "private" | "public";
  readonly requiredSafetyFeatures: readonly SafetyFeature[];
  readonly pending: PendingView | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface ProxyView extends CommonView {
  readonly type: "proxy";
  readonly modality: ProxyModality;
  readonly upstreamModel: string;
  readonly imagePricing: ImagePricing;
  readonly inputModalities: readonly InputKind[];
  readonly advertised: { readonly capabilities: readonly AdvertisedCapability[]; readonly contextLength: number | null };
  readonly perUserRpm: number | null;
  readonly paidOnly: boolean;
  readonly fallbacks: readonly string[];
  readonly prices: ChargedPrices;
  /** Those of `prices` that the owner stated. */
  readonly stated: StatedPrices;
  /** Of text models; null for other media. */
  readonly api: UpstreamApi | null;
  /** For text models the exact endpoint, for other media the base of their API or the endpoint. */
  readonly url: string;
}

export interface EndpointAgentView extends CommonView {
  readonly type: "endpoint_agent";
  readonly inputModalities: readonly InputKind[];
  readonly outputModalities: readonly ContentKind[];
  readonly api: UpstreamApi;
  readonly url: string;
  readonly upstreamModel: string;
  readonly perUserRpm: number | null;
}

/** Run by the gateway: its definition is at the agents' operations. */
export interface ManagedAgentView extends CommonView {
  readonly type: "prompt_agent" | "code_agent";
}

export type CommunityModelView = ProxyView | EndpointAgentView | ManagedAgentView;

/** A model as shown to an owner who looks for a fallback. */
export interface FallbackCandidate {
  /** Callable: an item of `fallbacks`. */
  readonly modelId: string;
  readonly title: string;
  readonly description: string | null;
  readonly isOwn: boolean;
  readonly prices: ChargedPrices;
}

/** A row without the credential. */
export type ShownModelRow = Omit<CommunityModelRow, "bearerToken">;

export interface ShownTerms extends Omit<CommunityModelTerms, "prices"> {
  readonly prices: ChargedPrices;
  /** Those of `prices` that the owner stated. */
  readonly stated: StatedPrices;
  readonly pending: PendingView | null;
}

export function toShownTerms(row: TermsRow, now: Date): ShownTerms {
  const terms = termsAt(row, now);
  const { prices: stated, ...others } = terms;
  return { ...others, stated, prices: chargedPrices(stated, basisOf(row, terms)), pending: toPending(row, terms, now) };
}

export function toView(row: ShownModelRow, handle: string, now: Date): CommunityModelView {
  const terms = termsAt(row, now);
  const common: CommonView = {
    id: row.id,
    modelId: communityModelId(handle, row.name),
    name: row.name,
    title: row.title,
    description: row.description,
    visibility: terms.visibility,
    requiredSafetyFeatures: row.requiredSafetyFeatures as SafetyFeature[],
    pending: toPending(row, terms, now),
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
  switch (row.type) {
    case "proxy":
      return { ...common, type: row.type, ...toProxy(row, terms) };
    case "endpoint_agent":
      return { ...common, type: row.type, ...toEndpointAgent(row) };
    default:
      return { ...common, type: row.type };
  }
}

function toProxy(row: ShownModelRow, terms: CommunityModelTerms): Omit<ProxyView, keyof CommonView | "type"> {
  return {
    modality: row.modality as ProxyModality,
    upstreamModel: row.upstreamModel ?? row.name,
    imagePricing: terms.imagePricing,
    inputModalities: row.inputModalities as InputKind[],
    advertised: {
      capabilities: row.advertisedCapabilities as AdvertisedCapability[],
      contextLength: row.advertisedContextLength,
    },
    perUserRpm: row.perUserRpm,
    paidOnly: terms.paidOnly,
    fallbacks: row.fallbacks,
    prices: chargedPrices(terms.prices, basisOf(row, terms)),
    stated: terms.prices,
    api: row.api,
    url: row.url ?? "",
  };
}

function toEndpointAgent(row: ShownModelRow): Omit<EndpointAgentView, keyof CommonView | "type"> {
  return {
    inputModalities: row.inputModalities as InputKind[],
    outputModalities: row.outputModalities as ContentKind[],
    api: row.api ?? "chat_completions",
    url: row.url ?? "",
    upstreamModel: row.upstreamModel ?? row.name,
    perUserRpm: row.perUserRpm,
  };
}

function toPending(row: TermsRow, terms: CommunityModelTerms, now: Date): PendingView | null {
  const scheduled = pendingAt(row, now);
  if (!scheduled) return null;
  const { change, effectiveAt } = scheduled;
  const next = applied(terms, change);
  const [before, after] = [terms, next].map((each) => chargedPrices(each.prices, basisOf(row, each))) as [ChargedPrices, ChargedPrices];
  // A price changes with its fallback price; one that is stated with its current value does not.
  const changed = PRICE_FIELDS.filter((field) => before[field] !== after[field] || (change.prices && Object.hasOwn(change.prices, field)));
  return {
    effectiveAt,
    visibility: change.visibility ?? null,
    paidOnly: change.paidOnly ?? null,
    imagePricing: change.imagePricing ?? null,
    prices: Object.fromEntries(changed.map((field) => [field, after[field]])),
  };
}

export function toCandidate(
  row: CommunityModelRow & { readonly account: { readonly handle: string } },
  accountId: string,
  now: Date,
): FallbackCandidate {
  const terms = termsAt(row, now);
  return {
    modelId: communityModelId(row.account.handle, row.name),
    title: row.title,
    description: row.description,
    isOwn: row.accountId === accountId,
    prices: chargedPrices(terms.prices, basisOf(row, terms)),
  };
}

/** The fields that decide which prices the model uses. */
export function basisOf(row: Pick<CommunityModelRow, "modality">, terms: Pick<CommunityModelTerms, "imagePricing">): PricingBasis {
  return { modality: row.modality, imagePricing: terms.imagePricing };
}
