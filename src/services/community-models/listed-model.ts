/** A registered model in the catalog's form: the row at one moment (docs/spec/community-models.md). */
import { createHash } from "node:crypto";
import { ownValue } from "../../lib/own-values.js";
import type { ContentKind } from "../catalog/modality.js";
import {
  AGENT_TYPES,
  type Capability,
  type Model,
  type PendingModelChange,
  type SafetyFeature,
  toModel,
  type Upstream,
} from "../catalog/model.js";
import { BILLED_KINDS } from "../catalog/pricing.js";
import { type CommunityModelRow, type CommunityModelTerms, communityModelId, pendingAt, termsAt } from "./record.js";

/** A row with the columns of its account that it needs. */
export interface RegisteredModel {
  readonly row: CommunityModelRow;
  /** The owner's handle. */
  readonly handle: string;
  readonly upstreamId: string;
}

/** Addresses of registered models are their owners' secrets. */
const COMMUNITY_UPSTREAM = "community";
const UPSTREAM_PREFIX = "community:";
const REVISION_CHARS = 16;

/** `advertised.capabilities` (docs/spec/community-models.md#record) in the catalog's terms. */
const ADVERTISED: Readonly<Record<string, Capability>> = { tool_calling: "tools", reasoning: "reasoning" };

export function toListedModel(registered: RegisteredModel, now: Date): Model {
  const current = toModelUnder(registered, termsAt(registered.row, now));
  const pending = pendingAt(registered.row, now);
  if (!pending) return Object.freeze(current);
  const next = toModelUnder(registered, termsAt(registered.row, pending.effectiveAt));
  return Object.freeze({ ...current, pendingChange: toPendingChange(current, next, pending.effectiveAt) });
}

/**
 * A private model is callable by its owner only, free and without fallbacks. Its stated terms apply once it is public, also to the owner.
 */
function toModelUnder({ row, handle, upstreamId }: RegisteredModel, terms: CommunityModelTerms): Model {
  const isPrivate = terms.visibility === "private";
  const agentType = AGENT_TYPES.find((type) => type === row.type) ?? null;
  const definition = {
    id: communityModelId(handle, row.name),
    aliases: [],
    title: row.title,
    description: row.description,
    modality: row.modality,
    routes: [{ upstreamId, upstreamName: COMMUNITY_UPSTREAM, upstreamModel: row.upstreamModel ?? row.name }],
    prices: isPrivate ? {} : terms.prices,
    imagePricing: terms.imagePricing,
    inputModalities: kindsOf(row.inputModalities),
    outputModalities: kindsOf(row.outputModalities),
    capabilities: row.advertisedCapabilities.flatMap((name) => ownValue(ADVERTISED, name) ?? []),
    contextLength: row.advertisedContextLength,
    paidOnly: !isPrivate && terms.paidOnly,
    perUserRpm: row.perUserRpm,
    addedAt: row.createdAt,
    requiredSafetyFeatures: row.requiredSafetyFeatures as SafetyFeature[],
  };
  return {
    ...toModel(definition, { aliases: [], fallbacks: isPrivate ? [] : row.fallbacks, isDefault: false }),
    isCommunity: true,
    isAgent: agentType !== null,
    agentType,
    owner: handle,
    communityModelId: row.id,
    isPrivate,
  };
}

function toPendingChange(current: Model, next: Model, effectiveAt: Date): PendingModelChange {
  const isRepriced = BILLED_KINDS.some((kind) => current.rates[kind] !== next.rates[kind]);
  return {
    effectiveAt,
    visibility: current.isPrivate && !next.isPrivate ? "public" : null,
    paidOnly: next.paidOnly === current.paidOnly ? null : next.paidOnly,
    imagePricing: next.imagePricing === current.imagePricing ? null : next.imagePricing,
    pricing: isRepriced || next.imagePricing !== current.imagePricing ? next : null,
  };
}

function kindsOf(kinds: readonly string[]): readonly ContentKind[] | undefined {
  return kinds.length > 0 ? (kinds as readonly ContentKind[]) : undefined;
}

/**
 * `community:<row id>:<revision>`: changes with the address, its format and the credential, so that nothing made for the old ones is
 * reused.
 */
export function upstreamIdOf({ id, modality, api, url, bearerToken }: CommunityModelRow): string {
  const hash = createHash("sha256").update(JSON.stringify([modality, api, url]));
  if (bearerToken) hash.update(bearerToken);
  return `${UPSTREAM_PREFIX}${id}:${hash.digest("hex").slice(0, REVISION_CHARS)}`;
}

/** The row of an upstream id; null for ids of another kind. */
export function rowIdOf(upstreamId: string): string | null {
  if (!upstreamId.startsWith(UPSTREAM_PREFIX)) return null;
  return upstreamId.slice(UPSTREAM_PREFIX.length, upstreamId.lastIndexOf(":"));
}

/** Null for models that the gateway runs. Calls `openToken` only when there is a credential. */
export function toUpstream({ row, upstreamId }: RegisteredModel, openToken: (sealed: Uint8Array) => string): Upstream | null {
  if (row.url === null) return null;
  return {
    id: upstreamId,
    wireFormat: "openai-endpoint",
    baseUrl: row.url,
    apiKey: row.bearerToken && openToken(row.bearerToken),
    isTrusted: false,
    endpoint: { modality: row.modality, api: row.api },
  };
}
