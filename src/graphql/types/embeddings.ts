/** Embeddings as a mutation (docs/spec/embeddings.md). */
import { wrongField } from "../../errors.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import { type EmbeddingsResult, embeddingsInput, toBase64, toNumbers } from "../../services/generation/embeddings.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { Receipt } from "./chat.js";
import { SafetyFeature } from "./models.js";

const EmbeddingInput = builder.inputType("EmbeddingInput", {
  description: "What is turned into a vector: exactly one of these.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "A text." }),
    tokens: t.intList({ description: "A text as token numbers of the model's own vocabulary." }),
  }),
});

const CreateEmbeddingsInput = builder.inputType("CreateEmbeddingsInput", {
  description: "What is turned into vectors, and how.",
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default embedding model." }),
    input: t.field({
      type: [EmbeddingInput],
      required: true,
      description: "Texts, or texts as tokens: all of one kind, at most 2,048 of them.",
    }),
    dimensions: t.int({ description: "How long the vectors shall be, where the model lets one choose." }),
    user: t.string({ description: "The caller's own user, told to the upstream." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

interface EmbeddingObject {
  readonly index: number;
  readonly vector: EmbeddingsResult["vectors"][number];
}

const Embedding = builder.objectRef<EmbeddingObject>("Embedding").implement({
  description: "What an input means, as a vector.",
  fields: (t) => ({
    index: t.exposeInt("index", { description: "Of the input, from 0." }),
    vector: t.floatList({ description: "Its numbers.", resolve: ({ vector }) => toNumbers(vector) }),
    base64: t.string({ description: "The same as base64 of little-endian 32-bit floats.", resolve: ({ vector }) => toBase64(vector) }),
  }),
});

const CreateEmbeddingsPayload = builder.objectRef<EmbeddingsResult>("CreateEmbeddingsPayload").implement({
  description: "Vectors, and what they cost.",
  fields: (t) => ({
    embeddings: t.field({
      type: [Embedding],
      description: "One for each input, in order.",
      resolve: ({ vectors }) => vectors.map((vector, index) => ({ index, vector })),
    }),
    receipt: t.field({ type: Receipt, description: "What they cost.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createEmbeddings", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateEmbeddingsPayload,
    nullable: true,
    description: "Turns texts into vectors. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: CreateEmbeddingsInput, required: true, description: "What is turned into vectors, and how." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.embeddings.create(
        boundedBy(ctx, input.maxCost),
        parsePermitted(ctx, requireCaller, embeddingsInput, () => toBody(input)),
      ),
  }),
);

/** The body of POST /v1/embeddings. Throws BAD_REQUEST. */
function toBody(input: typeof CreateEmbeddingsInput.$inferInput): Record<string, unknown> {
  const { input: given, extra, model, dimensions, user, safe } = input;
  const inputs = given.map(({ text, tokens }) => text ?? tokens);
  if (new Set(inputs.map((one) => typeof one)).size > 1) throw wrongField("input", "must be all texts or all tokens");
  return withExtra({ model, input: inputs, dimensions, user, safe: toSafeText(safe) }, extra);
}
