/** Moderations as a mutation (docs/spec/moderations.md). */
import { ownValue } from "../../lib/own-values.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { type ModerationResultObject, type ModerationsResult, moderationsInput } from "../../services/generation/moderations.js";
import { builder } from "../builder.js";
import { withExtra } from "../extra.js";
import { Receipt } from "./chat.js";

const CreateModerationInput = builder.inputType("CreateModerationInput", {
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default moderation model." }),
    input: t.field({
      type: "JSON",
      required: true,
      description: 'A text, a list of texts, or content parts such as `{ type: "image_url", image_url: { url: "https://..." } }`.',
    }),
    safe: t.string({ description: "`true`, or safety features separated by commas." }),
    extra: t.field({
      type: "JSON",
      description:
        "An object of further fields, by their wire names; they reach the upstream as they are, but for those that are billed (400).",
    }),
  }),
});

interface ModerationCategoryObject {
  readonly name: string;
  readonly flagged: boolean;
  readonly score: number | null;
}

const ModerationCategory = builder.objectRef<ModerationCategoryObject>("ModerationCategory").implement({
  fields: (t) => ({
    name: t.exposeString("name", { description: "Such as `violence/graphic`." }),
    flagged: t.exposeBoolean("flagged"),
    score: t.exposeFloat("score", { nullable: true, description: "0 to 1." }),
  }),
});

const ModerationResult = builder.objectRef<ModerationResultObject>("ModerationResult").implement({
  fields: (t) => ({
    flagged: t.exposeBoolean("flagged"),
    categories: t.field({ type: [ModerationCategory], resolve: toCategories }),
    raw: t.field({ type: "JSON", description: "The result as POST /v1/moderations gives it.", resolve: (result) => result }),
  }),
});

const CreateModerationPayload = builder.objectRef<ModerationsResult>("CreateModerationPayload").implement({
  fields: (t) => ({
    id: t.id({ resolve: ({ moderation }) => moderation.id }),
    results: t.field({
      type: [ModerationResult],
      description: "One for each text; of content parts, one for all of them.",
      resolve: ({ moderation }) => [...moderation.results],
    }),
    receipt: t.field({ type: Receipt, resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createModeration", (t) =>
  t.field({
    type: CreateModerationPayload,
    nullable: true,
    description: "Judges texts and pictures. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: CreateModerationInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.moderations.create(
        ctx,
        parsePermitted(ctx, requireCaller, moderationsInput, () => toBody(input)),
      ),
  }),
);

function toBody(input: typeof CreateModerationInput.$inferInput): Record<string, unknown> {
  const { model, input: judged, safe, extra } = input;
  return withExtra({ model, input: judged, safe }, extra);
}

function toCategories({ categories, category_scores: scores }: ModerationResultObject): ModerationCategoryObject[] {
  return Object.entries(categories).map(([name, flagged]) => ({ name, flagged, score: ownValue(scores, name) ?? null }));
}
