/** Moderations as a mutation (docs/spec/moderations.md). */
import { ownValue } from "../../lib/own-values.js";
import {
  type ModerationObject,
  type ModerationResultObject,
  type ModerationsResult,
  moderationsInput,
} from "../../services/generation/moderations.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { PROVIDER_DESCRIPTION, ProviderInput, wishedInput } from "../wishes.js";
import { Model, SafetyFeature } from "./models.js";
import { Receipt } from "./receipts.js";

const ModerationImageInput = builder.inputType("ModerationImageInput", {
  description: "An image to moderate.",
  fields: (t) => ({ url: t.string({ required: true, description: "An https or data: URL." }) }),
});

const ModerationPartInput = builder.inputType("ModerationPartInput", {
  description: "An input to moderate. Set exactly one field.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "Text." }),
    image: t.field({ type: ModerationImageInput, description: "An image.", extensions: { wireName: "image_url" } }),
  }),
});

const CreateModerationInput = builder.inputType("CreateModerationInput", {
  description: "Parameters of `createModeration`.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default moderation model." }),
    input: t.field({
      type: [ModerationPartInput],
      required: true,
      description: "The inputs. Texts are classified separately. With an image among them, all inputs are classified together.",
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

interface ModerationCategoryObject {
  readonly name: string;
  readonly flagged: boolean;
  readonly score: number | null;
}

const ModerationCategory = builder.objectRef<ModerationCategoryObject>("ModerationCategory").implement({
  description: "A category of harmful content.",
  fields: (t) => ({
    name: t.exposeString("name", { description: "The name, such as `violence/graphic`." }),
    isFlagged: t.exposeBoolean("flagged", { description: "Whether the content belongs to the category." }),
    score: t.exposeFloat("score", { nullable: true, description: "The confidence of the model, 0 to 1." }),
  }),
});

const ModerationResult = builder.objectRef<ModerationResultObject>("ModerationResult").implement({
  description: "The moderation result of one input.",
  fields: (t) => ({
    isFlagged: t.exposeBoolean("flagged", { description: "Whether any category is flagged." }),
    categories: t.field({
      type: [ModerationCategory],
      description: "All categories that the model classifies.",
      resolve: toCategories,
    }),
    raw: t.field({ type: "JSON", description: "The result in the format of POST /v1/moderations.", resolve: (result) => result }),
  }),
});

const Moderation = builder.objectRef<ModerationObject>("Moderation").implement({
  description: "A moderation of texts and images.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The ID, as in POST /v1/moderations." }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    results: t.field({
      type: [ModerationResult],
      description: "One result per text. With an image among the inputs, one result for all.",
      resolve: ({ results }) => [...results],
    }),
  }),
});

const CreateModerationPayload = builder.objectRef<ModerationsResult>("CreateModerationPayload").implement({
  description: "The result of `createModeration`.",
  fields: (t) => ({
    moderation: t.expose("moderation", { type: Moderation, description: "The moderation." }),
    receipt: t.field({ type: Receipt, description: "The receipt of the generation.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createModeration", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateModerationPayload,
    nullable: true,
    description: "Moderates texts and images. The charge is committed before the answer is returned.",
    args: { input: t.arg({ type: CreateModerationInput, required: true, description: "The inputs to moderate." }) },
    resolve: async (_root, { input }, ctx) => {
      const wished = await wishedInput(ctx, input, moderationsInput, () => toBody(input));
      return ctx.services.moderations.create(wished.ctx, wished.input);
    },
  }),
);

function toBody(input: typeof CreateModerationInput.$inferInput): Record<string, unknown> {
  const { model, input: judged, safe, extra } = input;
  return withExtra({ model, input: toInputs(judged), safe: toSafeText(safe) }, extra);
}

/** Plain texts get one result each. Parts get one result together. */
function toInputs(judged: (typeof CreateModerationInput.$inferInput)["input"]): unknown[] {
  const texts = judged.flatMap(({ text }) => text ?? []);
  if (texts.length === judged.length) return texts;
  return judged.map(({ text, image }) => (image ? { type: "image_url", image_url: image } : { type: "text", text }));
}

function toCategories({ categories, category_scores: scores }: ModerationResultObject): ModerationCategoryObject[] {
  return Object.entries(categories).map(([name, flagged]) => ({ name, flagged, score: ownValue(scores, name) ?? null }));
}
