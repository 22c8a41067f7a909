/** Input of operations that create or change a registered model (docs/spec/community-models.md). One schema each for both faces. */
import { z } from "zod";
import { parsePicocredits, toPlainDecimal } from "../../lib/money.js";
import {
  ADVERTISED_CONTEXT_LENGTH_MAX,
  FALLBACKS_MAX,
  MODEL_NAME_CHARS_MAX,
  MODEL_REFERENCE_CHARS_MAX,
  PRICE_CREDITS_MAX,
} from "../../limits.js";
import { COMMUNITY_PUBLISHER } from "../catalog/community.js";
import { CONTENT_KINDS, IMAGE_PRICINGS } from "../catalog/modality.js";
import { UPSTREAM_APIS } from "../catalog/model.js";
import { PRICE_FIELDS, type PriceField } from "../catalog/pricing.js";
import { distinct, storableText } from "../requests/input.js";
import { modelDescription, modelName, modelTitle, modelVisibility, requiredSafetyFeatures } from "./common-input.js";
import { BEARER_TOKEN_CHARS_MAX } from "./limits.js";

const PICOCREDITS_MAX = BigInt(PRICE_CREDITS_MAX) * 10n ** 12n;

/**
 * The one schema of prices: a JSON number (REST), or picocredits that a face has parsed (GraphQL's Price). Credits per unit, to
 * picocredits; from 0 to PRICE_CREDITS_MAX.
 */
const priceAmount = z
  .union([z.number(), z.bigint()])
  .transform((value, issues) => {
    const picocredits = typeof value === "bigint" ? value : parsePicocredits(toPlainDecimal(value) ?? "");
    if (picocredits !== null && picocredits >= 0n && picocredits <= PICOCREDITS_MAX) return picocredits;
    issues.addIssue({
      code: "custom",
      message: `must be 0 to ${PRICE_CREDITS_MAX} credits per unit (per token, not per million tokens) with at most 12 decimals`,
    });
    return z.NEVER;
  })
  // Described in the form of REST.
  .meta({
    anyOf: undefined,
    type: "number",
    minimum: 0,
    maximum: PRICE_CREDITS_MAX,
    description: "Credits per unit, with at most 12 decimals.",
  });

/** Of a proxy (docs/spec/community-models.md#record). */
export const PROXY_MODALITIES = ["text", "image", "video", "transcription", "speech", "embedding"] as const;
export type ProxyModality = (typeof PROXY_MODALITIES)[number];
const MEDIA_MODALITIES = ["image", "video", "transcription", "speech", "embedding"] as const;

/** Capabilities that an owner may claim for a text model (docs/spec/community-models.md#record). */
export const ADVERTISED_CAPABILITIES = ["tool_calling", "reasoning"] as const;
export type AdvertisedCapability = (typeof ADVERTISED_CAPABILITIES)[number];

/** Inputs of a registered model (docs/spec/community-models.md#record). */
export const INPUT_KINDS = ["text", "image", "audio", "video"] as const;
export type InputKind = (typeof INPUT_KINDS)[number];

const FALLBACK_ID = new RegExp(`^${COMMUNITY_PUBLISHER}/[^/\\u0000]+/[A-Za-z0-9._:-]{1,${MODEL_NAME_CHARS_MAX}}$`);
/** For the description only: the outbound guard decides which addresses are allowed. */
const WEB_ADDRESS = "^https?://[^/?#\\s\\u0000][^\\s\\u0000]*$";
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

/** Sent in a header. No error message repeats it. */
export const bearerToken = z
  .string()
  .min(1)
  .max(BEARER_TOKEN_CHARS_MAX)
  .regex(VISIBLE_ASCII, "may only hold visible ASCII characters, without spaces; leave out the word Bearer");

/** The outbound guard checks the address, its length included. */
export const upstreamUrl = storableText.min(1).meta({ pattern: WEB_ADDRESS });
export const upstreamModel = storableText.min(1).max(MODEL_REFERENCE_CHARS_MAX);
const inputModalities = distinct(z.array(z.enum(INPUT_KINDS)).min(1));
const outputModalities = distinct(z.array(z.enum(CONTENT_KINDS)).min(1));
/** Requests a minute of one account; null: no limit. A JSON number too large for a double is refused as infinite. */
const perUserRpm = z.number().positive().nullable();
export const upstreamApi = z.enum(UPSTREAM_APIS);

/** Null is the same as an empty object. */
const advertised = z
  .strictObject({
    capabilities: distinct(z.array(z.enum(ADVERTISED_CAPABILITIES))).default([]),
    contextLength: z.int().min(1).max(ADVERTISED_CONTEXT_LENGTH_MAX).nullable().default(null),
  })
  .nullable();

const fallbacks = distinct(
  z
    .array(z.string().max(MODEL_REFERENCE_CHARS_MAX).regex(FALLBACK_ID, "must be the id of a registered model: community/<owner>/<name>"))
    .max(FALLBACKS_MAX),
);

/** Null: not stated, so that its fallback price applies. */
const price = priceAmount.nullable().optional();
const prices = Object.fromEntries(PRICE_FIELDS.map((field) => [field, price])) as Record<PriceField, typeof price>;

const createFields = {
  name: modelName,
  title: modelTitle,
  description: modelDescription.default(null),
  visibility: modelVisibility.default("private"),
  bearerToken,
  /** Defaults to the name. */
  upstreamModel: upstreamModel.optional(),
  imagePricing: z.enum(IMAGE_PRICINGS).default("request"),
  inputModalities: inputModalities.optional(),
  requiredSafetyFeatures: requiredSafetyFeatures.default([]),
  advertised: advertised.default(null),
  perUserRpm: perUserRpm.default(null),
  paidOnly: z.boolean().default(false),
  fallbacks: fallbacks.default([]),
  ...prices,
};

const textModel = z.strictObject({ ...createFields, modality: z.literal("text").default("text"), api: upstreamApi, url: upstreamUrl });
const mediaModel = z.strictObject({ ...createFields, modality: z.enum(MEDIA_MODALITIES), baseUrl: upstreamUrl });

export const createCommunityModelInput = z.discriminatedUnion("modality", [textModel, mediaModel]);
export type CreateCommunityModelInput = z.output<typeof createCommunityModelInput>;

/** An agent that its owner runs (docs/spec/community-models.md#record), without credential and price. */
export const createEndpointAgentInput = z.strictObject({
  name: modelName,
  title: modelTitle,
  description: modelDescription.default(null),
  visibility: modelVisibility.default("private"),
  requiredSafetyFeatures: requiredSafetyFeatures.default([]),
  inputModalities: inputModalities.default(["text"]),
  outputModalities: outputModalities.default(["text"]),
  api: upstreamApi,
  url: upstreamUrl,
  upstreamModel: upstreamModel.optional(),
  perUserRpm: perUserRpm.default(null),
});
export type CreateEndpointAgentInput = z.output<typeof createEndpointAgentInput>;

/** Absent fields do not change. The model's type and modality decide which fields it has. */
export const updateCommunityModelInput = z
  .strictObject({
    name: modelName,
    title: modelTitle,
    description: modelDescription,
    visibility: modelVisibility,
    bearerToken,
    upstreamModel,
    imagePricing: z.enum(IMAGE_PRICINGS),
    inputModalities,
    outputModalities,
    requiredSafetyFeatures,
    advertised,
    perUserRpm,
    paidOnly: z.boolean(),
    fallbacks,
    ...prices,
    api: upstreamApi,
    url: upstreamUrl,
    baseUrl: upstreamUrl,
  })
  .partial();
export type UpdateCommunityModelInput = z.output<typeof updateCommunityModelInput>;
