/** A model of the catalog and its upstreams (docs/spec/models.md#entries). Immutable: a change makes a new object. */

import type { StatedDialect } from "../../formats/openai-chat/dialect.js";
import type { BundledVendor } from "./bundled-vendors.js";
import { type ContentKind, type ImagePricing, MODALITY_TRAITS, type Modality } from "./modality.js";
import { type LongContextPrices, type PricedFields, type RateCard, type StatedPrices, toRateCard } from "./pricing.js";
import { type FindUpstream, type RouteDefinition, type Routes, type Routing, toRoutes } from "./route.js";

/** Filterable capabilities (docs/spec/models.md#entries). */
export const CAPABILITIES = ["tools", "reasoning", "search", "code_exec", "vision"] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** Input checks that callers cannot disable (docs/spec/safety.md#features). */
export const SAFETY_FEATURES = ["privacy", "secrets", "sexual", "violence", "shield"] as const;
export type SafetyFeature = (typeof SAFETY_FEATURES)[number];

/**
 * The protocol of an upstream; `sandbox` runs in the process. `openai-endpoint` is OpenAI's format at a registered address: the exact
 * endpoint, or for media the base of the API.
 */
export type WireFormat = "openai" | "openai-endpoint" | "anthropic" | "gemini" | "sandbox" | `ai-sdk:${string}`;

/** Whether an upstream speaks Anthropic's Messages format. Its former name is that of the package that spoke it. */
export function isMessagesFormat({ wireFormat }: Pick<Upstream, "wireFormat">): boolean {
  return wireFormat === "anthropic" || wireFormat === "ai-sdk:anthropic";
}

/** Whether an upstream speaks Gemini's format. The former name is that of the package, which still makes its media and embeddings. */
export function isGeminiFormat({ wireFormat }: Pick<Upstream, "wireFormat">): boolean {
  return wireFormat === "gemini" || wireFormat === "ai-sdk:google";
}

/** The chat format of an upstream of text models (docs/spec/community-models.md#record). */
export const UPSTREAM_APIS = ["chat_completions", "responses"] as const;
export type UpstreamApi = (typeof UPSTREAM_APIS)[number];

/** Kinds of agents, run by the gateway or at an endpoint of the owner (docs/spec/community-models.md#record). */
export const AGENT_TYPES = ["prompt_agent", "code_agent", "endpoint_agent"] as const;
export type AgentType = (typeof AGENT_TYPES)[number];

export interface Upstream {
  readonly id: string;
  readonly wireFormat: WireFormat;
  /** Without a trailing slash; paths such as `/chat/completions` are appended. Empty for the sandbox. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  /** Keys beside the first one: each is a route of its own. */
  readonly furtherApiKeys?: readonly string[] | undefined;
  /** Configured by the operator: exempt from the outbound guard (docs/spec/outbound.md#exemptions). */
  readonly isTrusted: boolean;
  /** Of the bundled catalog. */
  readonly vendor?: BundledVendor | undefined;
  /** As the operator states it, for the wire format `openai`. */
  readonly dialect?: StatedDialect | undefined;
  /** With the wire format `openai-endpoint`: the kind of endpoint. */
  readonly endpoint?: { readonly modality: Modality; readonly api: UpstreamApi | null } | undefined;
}

export interface Model {
  /** Canonical: `publisher/name`. */
  readonly id: string;
  /** Other names, former ids included, for requests and allow lists of keys. */
  readonly aliases: readonly string[];
  /** The publisher, not the vendor (docs/spec/models.md#entries). */
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
  /** Billed fields of a request and their prices: other billed fields are refused. */
  readonly pricedFields: PricedFields;
  /** Further fields that its upstream gets at the model's own price. */
  readonly passFields: ReadonlySet<string>;
  readonly imagePricing: ImagePricing;
  /** Of an image model: its upstream serves OpenAI's `/images/variations`. */
  readonly hasVariations: boolean;
  /** Rates of charges: `prices` and `longContext` with fallback prices applied. */
  readonly rates: RateCard;
  /** In tokens. */
  readonly contextLength: number | null;
  /** Of a text model: most output tokens of one answer; null: unknown. */
  readonly maxOutputTokens: number | null;
  readonly voices: readonly string[];
  /** Draws crypto and pack credits, never tier credits. */
  readonly paidOnly: boolean;
  /** Requests a minute of one account; 0.5 is one in two minutes. */
  readonly perUserRpm: number | null;
  /** The default of its modality, for requests without a model. */
  readonly isDefault: boolean;
  /** Canonical ids, tried in this order when the upstream fails. */
  readonly fallbacks: readonly string[];
  /** In the stated order. */
  readonly routes: Routes;
  /** Orders the routes of one priority. */
  readonly routing: Routing;
  /** Milliseconds without a first token until a stream is asked of a second route too; null: never. */
  readonly hedgeAfterMs: number | null;
  readonly addedAt: Date;
  /** When its upstream stops to serve it. Null: not known. */
  readonly retiresAt: Date | null;
  readonly requiredSafetyFeatures: readonly SafetyFeature[];
  /** Registered by an account, with the handle `owner`. */
  readonly isCommunity: boolean;
  readonly isAgent: boolean;
  /** Null: not an agent. */
  readonly agentType: AgentType | null;
  readonly owner: string | null;
  /** The row of a registered model. */
  readonly communityModelId: string | null;
  /** Registered by an account, and callable only by its owner. */
  readonly isPrivate: boolean;
  /** The scheduled change; null: none. */
  readonly pendingChange: PendingModelChange | null;
}

/** A model after its scheduled change (docs/spec/community-models.md#pending-changes). Null: unchanged. */
export interface PendingModelChange {
  readonly effectiveAt: Date;
  readonly visibility: "public" | null;
  readonly paidOnly: boolean | null;
  readonly imagePricing: ImagePricing | null;
  /** All of its rates, if one of them changes. */
  readonly pricing: Pick<Model, "modality" | "imagePricing" | "rates"> | null;
}

/** Origins of entries in order of precedence: operator, bundled, local server, sandbox. */
export type Origin = "operator" | "bundled" | "local" | "sandbox";

/** A source's statements about a model; `toModel` computes the rest. */
export interface ModelDefinition {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly title: string;
  readonly modality: Modality;
  /** At least one. */
  readonly routes: readonly RouteDefinition[];
  /** Default: `weight`. */
  readonly routing?: Routing | undefined;
  /** Default: null. */
  readonly hedgeAfterMs?: number | undefined;
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
  readonly variations?: boolean | undefined;
  readonly contextLength?: number | null | undefined;
  readonly maxOutputTokens?: number | null | undefined;
  readonly voices?: readonly string[] | undefined;
  readonly paidOnly?: boolean | undefined;
  readonly perUserRpm?: number | null | undefined;
  /** Requested by the source; the catalog decides. */
  readonly isDefault?: boolean | undefined;
  /** Ids or aliases. */
  readonly fallbacks?: readonly string[] | undefined;
  readonly addedAt?: Date | undefined;
  readonly retiresAt?: Date | undefined;
  readonly requiredSafetyFeatures?: readonly SafetyFeature[] | undefined;
}

/** The upstreams and models of one origin, models in order of preference. */
export interface CatalogSource {
  readonly origin: Origin;
  readonly upstreams: readonly Upstream[];
  readonly models: readonly ModelDefinition[];
  /** Models that further configuration would add. */
  readonly dormant?: readonly DormantModel[];
}

/** A known model that cannot be called, because none of its vendors is configured, or its routes are disabled. */
export interface DormantModel extends Pick<ModelDefinition, "id" | "aliases" | "modality"> {
  /** Environment variables, any of which makes it callable. */
  readonly variables: readonly string[];
  /** An operator has disabled all of its routes. */
  readonly isDisabled?: boolean | undefined;
}

/** Unspecified: the date of entries without one: the first edition of this catalog. */
const FIRST_EDITION = new Date("2026-11-21T00:00:00Z");

const NONE_PRICED: PricedFields = new Map();
const NONE_PASSED: ReadonlySet<string> = new Set();

/** Decisions of the catalog about a definition: its names, and whether it is a default. */
export interface ModelStanding {
  readonly aliases: readonly string[];
  readonly fallbacks: readonly string[];
  readonly isDefault: boolean;
}

/** `find` knows the upstreams of the definition's routes, for their vendors and keys. */
export function toModel(definition: ModelDefinition, standing: ModelStanding, find: FindUpstream = () => undefined): Model {
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
    imagePricing,
    hasVariations: definition.variations ?? false,
    rates,
    contextLength: definition.contextLength ?? null,
    maxOutputTokens: definition.maxOutputTokens ?? null,
    voices: definition.voices ?? [],
    paidOnly: definition.paidOnly ?? false,
    perUserRpm: definition.perUserRpm ?? null,
    isDefault: standing.isDefault,
    fallbacks: standing.fallbacks,
    routes: toRoutes(definition.routes, { modality, imagePricing }, find),
    routing: definition.routing ?? "weight",
    hedgeAfterMs: definition.hedgeAfterMs ?? null,
    addedAt: definition.addedAt ?? FIRST_EDITION,
    retiresAt: definition.retiresAt ?? null,
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

/** A text model has vision exactly when it accepts images: one follows from the other. */
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
