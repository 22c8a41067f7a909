/** Moderations as a mutation (docs/spec/moderations.md). */
import { ownValue } from "../../lib/own-values.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import {
  type ModerationObject,
  type ModerationResultObject,
  type ModerationsResult,
  moderationsInput,
} from "../../services/generation/moderations.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { Receipt } from "./chat.js";
import { Model, SafetyFeature } from "./models.js";

const ModerationImageInput = builder.inputType("ModerationImageInput", {
  description: "A picture to be judged.",
  fields: (t) => ({ url: t.string({ required: true, description: "An https address or a data: URL." }) }),
});

const ModerationPartInput = builder.inputType("ModerationPartInput", {
  description: "What is judged: exactly one of these.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "A text." }),
    image: t.field({ type: ModerationImageInput, description: "A picture.", extensions: { wireName: "image_url" } }),
  }),
});

const CreateModerationInput = builder.inputType("CreateModerationInput", {
  description: "What is judged.",
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default moderation model." }),
    input: t.field({
      type: [ModerationPartInput],
      required: true,
      description: "Texts, each judged by itself; with a picture among them, all of it is judged together.",
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

interface ModerationCategoryObject {
  readonly name: string;
  readonly flagged: boolean;
  readonly score: number | null;
}

const ModerationCategory = builder.objectRef<ModerationCategoryObject>("ModerationCategory").implement({
  description: "A kind of content that a moderation model looks for.",
  fields: (t) => ({
    name: t.exposeString("name", { description: "Such as `violence/graphic`." }),
    isFlagged: t.exposeBoolean("flagged", { description: "The model has found it." }),
    score: t.exposeFloat("score", { nullable: true, description: "How sure the model is: 0 to 1." }),
  }),
});

const ModerationResult = builder.objectRef<ModerationResultObject>("ModerationResult").implement({
  description: "What a moderation model has found.",
  fields: (t) => ({
    isFlagged: t.exposeBoolean("flagged", { description: "The model has found something." }),
    categories: t.field({
      type: [ModerationCategory],
      description: "Each kind of content that the model looks for.",
      resolve: toCategories,
    }),
    raw: t.field({ type: "JSON", description: "The result as POST /v1/moderations gives it.", resolve: (result) => result }),
  }),
});

const Moderation = builder.objectRef<ModerationObject>("Moderation").implement({
  description: "A judgement of texts and pictures.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "As POST /v1/moderations calls it." }),
    modelId: t.exposeID("model", { description: "The canonical id of the model asked for." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model asked for. Null: it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    results: t.field({
      type: [ModerationResult],
      description: "One for each text; with a picture among them, one for all.",
      resolve: ({ results }) => [...results],
    }),
  }),
});

const CreateModerationPayload = builder.objectRef<ModerationsResult>("CreateModerationPayload").implement({
  description: "A judgement, and what it cost.",
  fields: (t) => ({
    moderation: t.expose("moderation", { type: Moderation, description: "The judgement." }),
    receipt: t.field({ type: Receipt, description: "What it cost.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createModeration", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateModerationPayload,
    nullable: true,
    description: "Judges texts and pictures. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: CreateModerationInput, required: true, description: "What is judged." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.moderations.create(
        boundedBy(ctx, input.maxCost),
        parsePermitted(ctx, requireCaller, moderationsInput, () => toBody(input)),
      ),
  }),
);

function toBody(input: typeof CreateModerationInput.$inferInput): Record<string, unknown> {
  const { model, input: judged, safe, extra } = input;
  return withExtra({ model, input: toInputs(judged), safe: toSafeText(safe) }, extra);
}

/** Texts by themselves have a result each, which parts have not. */
function toInputs(judged: (typeof CreateModerationInput.$inferInput)["input"]): unknown[] {
  const texts = judged.flatMap(({ text }) => text ?? []);
  if (texts.length === judged.length) return texts;
  return judged.map(({ text, image }) => (image ? { type: "image_url", image_url: image } : { type: "text", text }));
}

function toCategories({ categories, category_scores: scores }: ModerationResultObject): ModerationCategoryObject[] {
  return Object.entries(categories).map(([name, flagged]) => ({ name, flagged, score: ownValue(scores, name) ?? null }));
}
