/** What the routes of the catalog answer; a part of `answers.ts`. */
import * as z from "zod";

const nullableText = z.string().nullable();
const amount = z.int().min(0);

const openAiModel = z.looseObject({
  id: z.string(),
  object: z.literal("model"),
  created: z.int().describe("Unix time in seconds."),
  owned_by: z.string(),
  aliases: z.array(z.string()),
  context_length: amount.nullable(),
  capabilities: z.array(z.string()),
  pricing: z.looseObject({ currency: z.literal("credits") }),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
});

const catalogEntry = z.looseObject({
  name: z.string().describe("The canonical id."),
  aliases: z.array(z.string()),
  publisher: z.string(),
  brand_url: nullableText,
  title: z.string(),
  description: nullableText,
  category: z.enum(["text", "image", "video", "audio", "embedding", "realtime"]),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
  capabilities: z.array(z.string()),
  flags: z.looseObject({ paid: z.boolean(), alpha: z.boolean() }),
  pricing: z.looseObject({ currency: z.literal("credits") }),
  context_length: amount.nullable(),
  voices: z.array(z.string()),
  community: z.boolean().describe("Registered by an account, whose handle is `owner`."),
  agent: z.boolean(),
  owner: nullableText,
  per_user_rpm: z.number().nullable().describe("Requests a minute of one account."),
  health: z
    .object({ status: z.enum(["unknown", "healthy", "unreliable"]), success_rate: z.number().nullable(), requests: amount })
    .describe("Of others' calls of a registered model in the last 24 hours."),
  added_at: z.string(),
  pending_change: z
    .looseObject({
      effective_at: z.string(),
      visibility: z.literal("public").optional(),
      paid_only: z.boolean().optional(),
      image_pricing: z.enum(["request", "tokens"]).optional(),
      pricing: z.looseObject({ currency: z.literal("credits") }).optional(),
    })
    .nullable()
    .describe("What a registered model will be from a moment on. Only what changes is there."),
});

export const CATALOG_ANSWERS = {
  Model: openAiModel,
  ModelList: z.object({ object: z.literal("list"), data: z.array(openAiModel) }),
  Catalog: z.array(catalogEntry),
} as const satisfies Record<string, z.ZodType>;
