/**
 * Draft of a model or agent, with all fields as text. It is stored in the tab's session storage and survives a reload. The credential is never
 * stored.
 */
import { useEffect, useState } from "react";
import type {
  AdvertisedCapability,
  ContentKind,
  CreateCodeAgentInput,
  CreateCommunityModelInput,
  CreateEndpointAgentInput,
  CreatePromptAgentInput,
  ImagePricing,
  McpServer,
  Modality,
  MyModelWholeFragment,
  SafetyFeature,
  UpdateAgentInput,
  UpdateCommunityModelInput,
  UpstreamApi,
  Visibility,
} from "../../client/generated/graphql.js";
import { toExactPrice, toTypedPrice } from "./typed-prices.js";

export type Kind = "proxy" | "prompt" | "code" | "endpoint";

export const PRICE_FIELDS = [
  "promptTextPrice",
  "promptCachedPrice",
  "promptCacheWritePrice",
  "promptAudioPrice",
  "promptImagePrice",
  "completionTextPrice",
  "completionReasoningPrice",
  "completionAudioPrice",
  "completionImagePrice",
  "completionVideoPrice",
] as const;
export type PriceField = (typeof PRICE_FIELDS)[number];

/** Price fields by modality, the most common first. */
const PRICES_OF: ReadonlyMap<Modality, readonly PriceField[]> = new Map([
  [
    "TEXT",
    [
      "promptTextPrice",
      "completionTextPrice",
      "promptCachedPrice",
      "promptCacheWritePrice",
      "completionReasoningPrice",
      "promptImagePrice",
      "promptAudioPrice",
      "completionAudioPrice",
    ],
  ],
  ["IMAGE", ["completionImagePrice", "promptTextPrice", "promptImagePrice"]],
  ["VIDEO", ["completionVideoPrice"]],
  ["TRANSCRIPTION", ["promptAudioPrice"]],
  ["SPEECH", ["completionAudioPrice"]],
  ["EMBEDDING", ["promptTextPrice"]],
]);

export function pricesOf(modality: Modality): readonly PriceField[] {
  return PRICES_OF.get(modality) ?? PRICE_FIELDS;
}

export interface Draft {
  readonly kind: Kind;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly visibility: Visibility;
  readonly requiredSafetyFeatures: readonly SafetyFeature[];
  readonly modality: Modality;
  readonly api: UpstreamApi;
  readonly url: string;
  readonly bearerToken: string;
  readonly upstreamModel: string;
  readonly inputModalities: readonly ContentKind[];
  readonly outputModalities: readonly ContentKind[];
  readonly capabilities: readonly AdvertisedCapability[];
  readonly contextLength: string;
  readonly perUserRpm: string;
  readonly isPaidOnly: boolean;
  readonly fallbackIds: readonly string[];
  readonly imagePricing: ImagePricing;
  /** As typed, for the unit of `priceUnitOf`. */
  readonly prices: Readonly<Partial<Record<PriceField, string>>>;
  readonly systemPrompt: string;
  readonly baseModelId: string;
  readonly mcpServers: readonly McpServer[];
  readonly repository: string;
}

const EMPTY: Draft = {
  kind: "prompt",
  name: "",
  title: "",
  description: "",
  visibility: "PRIVATE",
  requiredSafetyFeatures: [],
  modality: "TEXT",
  api: "CHAT_COMPLETIONS",
  url: "",
  bearerToken: "",
  upstreamModel: "",
  inputModalities: ["TEXT"],
  outputModalities: ["TEXT"],
  capabilities: [],
  contextLength: "",
  perUserRpm: "",
  isPaidOnly: false,
  fallbackIds: [],
  imagePricing: "REQUEST",
  prices: {},
  systemPrompt: "",
  baseModelId: "",
  mcpServers: [],
  repository: "",
};

/** The prices of earlier drafts were per token. */
const KEY = "sluice-new-model-per-million";

function readStoredDraft(): Draft {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Partial<Draft> | null;
    return { ...EMPTY, ...stored };
  } catch {
    return EMPTY;
  }
}

export function forgetDraft(): void {
  sessionStorage.removeItem(KEY);
}

export function useStoredDraft() {
  const [draft, setDraft] = useState(readStoredDraft);
  useEffect(() => sessionStorage.setItem(KEY, JSON.stringify({ ...draft, bearerToken: "" })), [draft]);
  return [draft, setDraft] as const;
}

const toNumber = (text: string): number | null => (text.trim() === "" || !Number.isFinite(Number(text)) ? null : Number(text));

function pricesIn(draft: Draft): Partial<Record<PriceField, string>> {
  const entries = pricesOf(draft.modality).flatMap((field) => {
    const price = toExactPrice(draft, field);
    return price === null ? [] : [[field, price] as const];
  });
  return Object.fromEntries(entries);
}

const shared = ({ name, title, description, visibility, requiredSafetyFeatures }: Draft) => ({
  name,
  title,
  ...(description !== "" && { description }),
  visibility,
  requiredSafetyFeatures,
});

export function toProxy(draft: Draft): CreateCommunityModelInput {
  const isText = draft.modality === "TEXT";
  const contextLength = toNumber(draft.contextLength);
  return {
    ...shared(draft),
    modality: draft.modality,
    ...(isText ? { api: draft.api, url: draft.url } : { baseUrl: draft.url }),
    bearerToken: draft.bearerToken,
    ...(draft.upstreamModel !== "" && { upstreamModel: draft.upstreamModel }),
    ...(isText && { inputModalities: draft.inputModalities, advertised: { capabilities: draft.capabilities, contextLength } }),
    perUserRpm: toNumber(draft.perUserRpm),
    isPaidOnly: draft.isPaidOnly,
    imagePricing: draft.imagePricing,
    ...pricesIn(draft),
  };
}

export function toEndpoint(draft: Draft): CreateEndpointAgentInput {
  return {
    ...shared(draft),
    api: draft.api,
    url: draft.url,
    inputModalities: draft.inputModalities,
    outputModalities: draft.outputModalities,
    ...(draft.upstreamModel !== "" && { upstreamModel: draft.upstreamModel }),
    perUserRpm: toNumber(draft.perUserRpm),
  };
}

export function toPrompt(draft: Draft): CreatePromptAgentInput {
  const { systemPrompt, baseModelId, mcpServers } = draft;
  return { ...shared(draft), systemPrompt, baseModelId, mcpServers };
}

export function toCode({ repository, visibility, requiredSafetyFeatures }: Draft): CreateCodeAgentInput {
  return { repository, visibility, requiredSafetyFeatures };
}

const KINDS: ReadonlyMap<string, Kind> = new Map([
  ["ProxyModel", "proxy"],
  ["PromptAgent", "prompt"],
  ["CodeAgent", "code"],
  ["EndpointAgentModel", "endpoint"],
]);

export function kindOf({ __typename }: Pick<MyModelWholeFragment, "__typename">): Kind {
  return KINDS.get(__typename) ?? "proxy";
}

/** Draft with the current values of a model. */
export function draftOf(model: MyModelWholeFragment): Draft {
  const base: Draft = {
    ...EMPTY,
    kind: kindOf(model),
    name: model.name,
    title: model.title,
    description: model.description ?? "",
    visibility: model.visibility,
    requiredSafetyFeatures: model.requiredSafetyFeatures,
  };
  switch (model.__typename) {
    case "ProxyModel": {
      const stated = PRICE_FIELDS.filter((field) => model.statedPrices.some((name) => toFieldName(name) === field));
      return {
        ...base,
        modality: model.modality,
        api: model.api ?? "CHAT_COMPLETIONS",
        url: model.url ?? model.baseUrl ?? "",
        upstreamModel: model.upstreamModel,
        inputModalities: model.inputModalities,
        capabilities: model.advertised.capabilities,
        contextLength: textOf(model.advertised.contextLength),
        perUserRpm: textOf(model.perUserRpm),
        isPaidOnly: model.isPaidOnly,
        fallbackIds: model.fallbackIds,
        imagePricing: model.imagePricing,
        prices: Object.fromEntries(stated.map((field) => [field, toTypedPrice(model, field, model[field])])),
      };
    }
    case "EndpointAgentModel":
      return {
        ...base,
        api: model.api ?? "CHAT_COMPLETIONS",
        url: model.url ?? "",
        upstreamModel: model.upstreamModel,
        inputModalities: model.inputModalities,
        outputModalities: model.outputModalities,
        perUserRpm: textOf(model.perUserRpm),
      };
    case "PromptAgent":
      return { ...base, systemPrompt: model.systemPrompt, baseModelId: model.baseModelId, mcpServers: model.mcpServers };
    case "CodeAgent":
      return { ...base, repository: model.repository };
  }
}

const textOf = (value: number | null) => (value === null ? "" : String(value));
/** Converts `PROMPT_TEXT_PRICE` to `promptTextPrice`. */
const toFieldName = (name: string) => name.toLowerCase().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function changedFields(before: Draft, after: Draft): ReadonlySet<keyof Draft> {
  const names = Object.keys(EMPTY) as (keyof Draft)[];
  return new Set(names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name])));
}

export function toUpdate(id: string, before: Draft, after: Draft): UpdateCommunityModelInput {
  const fields = changedFields(before, after);
  const isText = after.kind === "endpoint" || after.modality === "TEXT";
  const has = (name: keyof Draft) => fields.has(name);
  return {
    id,
    ...identityOf(after, fields),
    ...(has("api") && { api: after.api }),
    ...(has("url") && (isText ? { url: after.url } : { baseUrl: after.url })),
    ...(after.bearerToken !== "" && { bearerToken: after.bearerToken }),
    ...(has("upstreamModel") && { upstreamModel: after.upstreamModel }),
    ...(has("inputModalities") && { inputModalities: after.inputModalities }),
    ...(has("outputModalities") && { outputModalities: after.outputModalities }),
    ...((has("capabilities") || has("contextLength")) && {
      advertised: { capabilities: after.capabilities, contextLength: toNumber(after.contextLength) },
    }),
    ...(has("perUserRpm") && { perUserRpm: toNumber(after.perUserRpm) }),
    ...(has("isPaidOnly") && { isPaidOnly: after.isPaidOnly }),
    ...(has("fallbackIds") && { fallbackIds: after.fallbackIds }),
    ...(has("imagePricing") && { imagePricing: after.imagePricing }),
    ...Object.fromEntries(
      PRICE_FIELDS.filter((field) => (before.prices[field] ?? "") !== (after.prices[field] ?? "")).map((field) => [
        field,
        toExactPrice(after, field),
      ]),
    ),
  };
}

export function toAgentUpdate(id: string, before: Draft, after: Draft): UpdateAgentInput {
  const fields = changedFields(before, after);
  return {
    id,
    ...identityOf(after, fields),
    ...(fields.has("systemPrompt") && { systemPrompt: after.systemPrompt }),
    ...(fields.has("baseModelId") && { baseModelId: after.baseModelId }),
    ...(fields.has("mcpServers") && { mcpServers: after.mcpServers }),
  };
}

function identityOf(after: Draft, fields: ReadonlySet<keyof Draft>) {
  return {
    ...(fields.has("name") && { name: after.name }),
    ...(fields.has("title") && { title: after.title }),
    ...(fields.has("description") && { description: after.description === "" ? null : after.description }),
    ...(fields.has("visibility") && { visibility: after.visibility }),
    ...(fields.has("requiredSafetyFeatures") && { requiredSafetyFeatures: after.requiredSafetyFeatures }),
  };
}
