/** What the routes about community models answer; a part of `answers.ts`. */
import * as z from "zod";
import { PRICE_FIELDS } from "../../services/catalog/pricing.js";

const price = z.number().min(0).describe("Credits per unit: what it comes to when it is not stated.");
const prices = Object.fromEntries(PRICE_FIELDS.map((field) => [field, price]));
const perUserRpm = z.number().nullable().describe("Requests a minute of one account; 0.5 is one in two minutes. Null: no limit.");
const imagePricing = z.enum(["request", "tokens"]);
const api = z.enum(["chat_completions", "responses"]);

const common = {
  id: z.string(),
  modelId: z.string().describe("`community/<owner>/<name>`: what it is called by."),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.enum(["private", "public"]),
  requiredSafetyFeatures: z.array(z.string()),
  pending: z
    .looseObject({
      effectiveAt: z.string(),
      visibility: z.literal("public").optional(),
      paidOnly: z.boolean().optional(),
      imagePricing: imagePricing.optional(),
      ...Object.fromEntries(PRICE_FIELDS.map((field) => [field, price.optional()])),
    })
    .nullable()
    .describe("What the model will be from a moment on."),
  createdAt: z.string(),
  updatedAt: z.string(),
};

const proxy = {
  ...common,
  type: z.literal("proxy"),
  upstreamModel: z.string(),
  imagePricing,
  inputModalities: z.array(z.string()),
  advertised: z.looseObject({ capabilities: z.array(z.string()), contextLength: z.int().nullable() }),
  perUserRpm,
  paidOnly: z.boolean(),
  fallbacks: z.array(z.string()),
  ...prices,
};

const communityModel = z.union([
  z.looseObject({ ...proxy, modality: z.literal("text"), api, url: z.string().describe("The exact endpoint.") }),
  z.looseObject({
    ...proxy,
    modality: z.enum(["image", "video", "transcription", "speech", "embedding"]),
    baseUrl: z.string().describe("The base of the media API, or the endpoint."),
  }),
  z.looseObject({
    ...common,
    type: z.literal("endpoint_agent"),
    inputModalities: z.array(z.string()),
    outputModalities: z.array(z.string()),
    api,
    url: z.string(),
    upstreamModel: z.string(),
    perUserRpm,
  }),
  z.looseObject({ ...common, type: z.enum(["prompt_agent", "code_agent"]) }),
]);

export const MY_MODEL_ANSWERS = {
  CommunityModel: communityModel,
  CommunityModelList: z.object({
    data: z.array(communityModel),
    provider: z.looseObject({ name: z.string().nullable(), url: z.string().nullable(), iconUrl: z.string().nullable() }),
  }),
  CommunityModelTest: z.object({
    ok: z.boolean(),
    status: z.int().nullable().describe("The upstream's; null when it gave none."),
    upstreamCode: z.string().nullable().describe("Why, in a word of the gateway's own, such as model_not_found."),
    latencyMs: z.int().nullable(),
    message: z.string(),
  }),
  DeletedCommunityModel: z.object({ id: z.string() }),
  FallbackCandidateList: z.object({
    data: z.array(
      z.looseObject({
        modelId: z.string().describe("What `fallbacks` holds."),
        title: z.string(),
        description: z.string().nullable(),
        isOwn: z.boolean(),
        ...prices,
      }),
    ),
  }),
} as const satisfies Record<string, z.ZodType>;
