/** A model of the catalog and the upstream that runs it (docs/spec/models.md#entries). Immutable: a change makes another one. */

import type { BundledVendor } from "./bundled-vendors.js";
import { type ContentKind, type ImagePricing, MODALITY_TRAITS, type Modality } from "./modality.js";
import { type LongContextPrices, type PricedFields, type RateCard, type StatedPrices, toRateCard } from "./pricing.js";

/** What a caller can filter by (docs/spec/models.md#entries). */
export const CAPABILITIES = ["tools", "reasoning", "search", "code_exec", "vision"] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** Input checks that callers cannot disable (docs/spec/safety.md#features). */
export const SAFETY_FEATURES = ["privacy", "secrets", "sexual", "violence", "shield"] as const;
export type SafetyFeature = (typeof SAFETY_FEATURES)[number];

/**
 * The protocol that an upstream speaks; `sandbox` is answered in the process. `openai-endpoint` is OpenAI's format at an address
 * that somebody registered: the exact endpoint, or for media the base of their API.
 */
export type WireFormat = "openai" | "openai-endpoint" | "sandbox" | `ai-sdk:${string}`;

/** The chat format of an upstream of text models (docs/spec/community-models.md#record). */
export const UPSTREAM_APIS = ["chat_completions", "responses"] as const;
export type UpstreamApi = (typeof UPSTREAM_APIS)[number];

/** Who is an agent, and who runs it (docs/spec/community-models.md#record): the gateway, or an endpoint of its owner's. */
export const AGENT_TYPES = ["prompt_agent", "code_agent", "endpoint_agent"] as const;
export type AgentType = (typeof AGENT_TYPES)[number];

export interface Upstream {
  readonly id: string;
  readonly wireFormat: WireFormat;
  /** Without a slash at the end; paths such as `/chat/completions` are appended. Empty for the sandbox. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  /** Named by the operator: exempt from the outbound guard (docs/spec/outbound.md#exemptions). */
  readonly isTrusted: boolean;
  /** Of the bundled catalog. */
  readonly vendor?: BundledVendor | undefined;
  /** With the wire format `openai-endpoint`: what is at the address. */
  readonly endpoint?: { readonly modality: Modality; readonly api: UpstreamApi | null } | undefined;
}

export interface Model {
  /** Canonical: `publisher/name`. */
  readonly id: string;
  /** Other names, former ids among them, that requests and key allow lists may use. */
  readonly aliases: readonly string[];
  /** Who made it, not who runs it (docs/spec/models.md#entries). */
  readonly publisher: string;
  readonly brandUrl: string | null;
  readonly title: string;
  readonly description: string | null;
  readonly modality: Modality;
  readonly inputModalities: readonly ContentKind[];
  readonly outputModalities: readonly ContentKind[];
  readonly capabilities: readonly Capability[];
  readonly flags: { readonly paid: boolean; readonly alpha: boolean };
  readonly prices: StatedPrices;
  readonly longContext: readonly LongContextPrices[];
  /** Fields of a request that change what the vendor bills, and what they then cost: any other such field is refused. */
  readonly pricedFields: PricedFields;
  /** Fields that its upstream is sent at the model's own price, beside those that it is sent anyway. */
  readonly passFields: ReadonlySet<string>;
  /** The bundled catalog's vendor that serves it, which is sent known fields alone; null: another upstream. */
  readonly vendor: BundledVendor | null;
  readonly imagePricing: ImagePricing;
  /** What usage is charged by: `prices` and `longContext` with the fall-backs applied. */
  readonly rates: RateCard;
  /** In tokens. */
  readonly contextLength: number | null;
  /** Of a text model: the most tokens that it writes in one answer; null: not known. */
  readonly maxOutputTokens: number | null;
  readonly voices: readonly string[];
  /** Draws crypto and pack credits, never tier credits. */
  readonly paidOnly: boolean;
  /** Requests a minute of one account; 0.5 is one in two minutes. */
  readonly perUserRpm: number | null;
  /** Served when a request names no model; one of each modality is. */
  readonly isDefault: boolean;
  /** Canonical ids, tried in this order when the upstream fails. */
  readonly fallbacks: readonly string[];
  readonly upstreamId: string;
  /** The upstream's own name for it. */
  readonly upstreamModel: string;
  readonly addedAt: Date;
  readonly requiredSafetyFeatures: readonly SafetyFeature[];
  /** Registered by an account; its owner's handle is `owner`. */
  readonly isCommunity: boolean;
  readonly isAgent: boolean;
  /** Null: not an agent. */
  readonly agentType: AgentType | null;
  readonly owner: string | null;
  /** The row of a registered model. */
  readonly communityModelId: string | null;
  /** Registered by an account and only its owner's to call. */
  readonly isPrivate: boolean;
  /** What its owner has scheduled; null: nothing. */
  readonly pendingChange: PendingModelChange | null;
}

/** What a model will be from a moment on (docs/spec/community-models.md#pending-changes). Null: stays as it is. */
export interface PendingModelChange {
  readonly effectiveAt: Date;
  readonly visibility: "public" | null;
  readonly paidOnly: boolean | null;
  readonly imagePricing: ImagePricing | null;
  /** All of its rates, when one of them changes. */
  readonly pricing: Pick<Model, "modality" | "imagePricing" | "rates"> | null;
}

/** Where an entry comes from, strongest first: an operator's overrides a bundled one, that one a local server's, and that one the sandbox. */
export type Origin = "operator" | "bundled" | "local" | "sandbox";

/** What a source of the catalog states of a model; the rest is worked out by `toModel`. */
export interface ModelDefinition {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly title: string;
  readonly modality: Modality;
  readonly upstreamId: string;
  readonly upstreamModel: string;
  readonly prices: StatedPrices;
  readonly longContext?: readonly LongContextPrices[] | undefined;
  readonly pricedFields?: PricedFields | undefined;
  readonly passFields?: ReadonlySet<string> | undefined;
  readonly brandUrl?: string | null | undefined;
  readonly description?: string | null | undefined;
  readonly inputModalities?: readonly ContentKind[] | undefined;
  readonly outputModalities?: readonly ContentKind[] | undefined;
  readonly capabilities?: readonly Capability[] | undefined;
  readonly isAlpha?: boolean | undefined;
  readonly imagePricing?: ImagePricing | undefined;
  readonly contextLength?: number | null | undefined;
  readonly maxOutputTokens?: number | null | undefined;
  readonly voices?: readonly string[] | undefined;
  readonly paidOnly?: boolean | undefined;
  readonly perUserRpm?: number | null | undefined;
  /** Asked for by the source; which one it is, the catalog decides. */
  readonly isDefault?: boolean | undefined;
  /** Ids or aliases. */
  readonly fallbacks?: readonly string[] | undefined;
  readonly addedAt?: Date | undefined;
  readonly requiredSafetyFeatures?: readonly SafetyFeature[] | undefined;
}

/** The upstreams and models that one origin brings, its models in order of preference. */
export interface CatalogSource {
  readonly origin: Origin;
  readonly upstreams: readonly Upstream[];
  readonly models: readonly ModelDefinition[];
  /** What it would bring if more were configured. */
  readonly dormant?: readonly DormantModel[];
}

/** A model that the catalog knows and nobody can call here, because none of its vendors has a key. */
export interface DormantModel extends Pick<ModelDefinition, "id" | "aliases" | "modality"> {
  /** Environment variables: any one of them makes it callable. */
  readonly variables: readonly string[];
}

/** Unspecified: when an entry that states no date counts as added: the day of this catalog's first edition. */
const FIRST_EDITION = new Date("2026-11-21T00:00:00Z");

const NONE_PRICED: PricedFields = new Map();
const NONE_PASSED: ReadonlySet<string> = new Set();

/** What the catalog knows and the definition does not: the names that are left to it, and what became of its wishes. */
export interface ModelStanding {
  readonly aliases: readonly string[];
  readonly fallbacks: readonly string[];
  readonly isDefault: boolean;
  readonly vendor: BundledVendor | null;
}

export function toModel(definition: ModelDefinition, standing: ModelStanding): Model {
  const { modality, prices, longContext = [], pricedFields = NONE_PRICED } = definition;
  const imagePricing = definition.imagePricing ?? "request";
  const rates = toRateCard(prices, { modality, imagePricing }, longContext);
  const { inputModalities, capabilities } = reconcileVision(definition);
  return Object.freeze({
    id: definition.id,
    aliases: standing.aliases,
    publisher: publisherOf(definition.id),
    brandUrl: definition.brandUrl ?? null,
    title: definition.title,
    description: definition.description ?? null,
    modality,
    inputModalities,
    outputModalities: definition.outputModalities ?? MODALITY_TRAITS[modality].outputs,
    capabilities,
    flags: { paid: !rates.isFree, alpha: definition.isAlpha ?? false },
    prices,
    longContext,
    pricedFields,
    passFields: definition.passFields ?? NONE_PASSED,
    vendor: standing.vendor,
    imagePricing,
    rates,
    contextLength: definition.contextLength ?? null,
    maxOutputTokens: definition.maxOutputTokens ?? null,
    voices: definition.voices ?? [],
    paidOnly: definition.paidOnly ?? false,
    perUserRpm: definition.perUserRpm ?? null,
    isDefault: standing.isDefault,
    fallbacks: standing.fallbacks,
    upstreamId: definition.upstreamId,
    upstreamModel: definition.upstreamModel,
    addedAt: definition.addedAt ?? FIRST_EDITION,
    requiredSafetyFeatures: definition.requiredSafetyFeatures ?? [],
    isCommunity: false,
    isAgent: false,
    agentType: null,
    owner: null,
    communityModelId: null,
    isPrivate: false,
    pendingChange: null,
  });
}

/** `openai/gpt-4o` to `openai`. */
export function publisherOf(id: string): string {
  return id.slice(0, id.indexOf("/"));
}

/** `openai/gpt-4o` to `gpt-4o`. */
export function bareNameOf(id: string): string {
  return id.slice(id.indexOf("/") + 1);
}

/** A text model sees exactly when it takes images: whichever of the two its entry states, the other follows. */
function reconcileVision(definition: ModelDefinition): Pick<Model, "inputModalities" | "capabilities"> {
  const inputModalities = definition.inputModalities ?? MODALITY_TRAITS[definition.modality].inputs;
  const capabilities = definition.capabilities ?? [];
  if (definition.modality !== "text") return { inputModalities, capabilities };
  const sees = capabilities.includes("vision") || inputModalities.includes("image");
  if (!sees) return { inputModalities, capabilities };
  return {
    inputModalities: inputModalities.includes("image") ? inputModalities : [...inputModalities, "image"],
    capabilities: capabilities.includes("vision") ? capabilities : [...capabilities, "vision"],
  };
}
