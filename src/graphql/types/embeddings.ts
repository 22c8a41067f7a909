/** Embeddings as a mutation (docs/spec/embeddings.md). */
import { wrongField } from "../../errors.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { type EmbeddingsResult, embeddingsInput, toBase64, toNumbers } from "../../services/generation/embeddings.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { MODELS_DESCRIPTION, PROVIDER_DESCRIPTION, ProviderInput, wished } from "../wishes.js";
import { SafetyFeature } from "./models.js";
import { Receipt } from "./receipts.js";

const EmbeddingInput = builder.inputType("EmbeddingInput", {
  description: "An input to embed. Set exactly one field.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "Text." }),
    tokens: t.intList({ description: "Text as token IDs of the model's own vocabulary." }),
  }),
});

const CreateEmbeddingsInput = builder.inputType("CreateEmbeddingsInput", {
  description: "Parameters of `createEmbeddings`.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default embedding model." }),
    input: t.field({
      type: [EmbeddingInput],
      required: true,
      description: "The inputs: all texts or all tokens, at most 2,048.",
    }),
    dimensions: t.int({ description: "The number of dimensions, for models that support a choice." }),
    user: t.string({ description: "An ID of the end user, passed to the upstream." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    models: t.stringList({ description: MODELS_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

interface EmbeddingObject {
  readonly index: number;
  readonly vector: EmbeddingsResult["vectors"][number];
}

const Embedding = builder.objectRef<EmbeddingObject>("Embedding").implement({
  description: "The embedding of one input.",
  fields: (t) => ({
    index: t.exposeInt("index", { description: "The index of the input, from 0." }),
    vector: t.floatList({ description: "The vector.", resolve: ({ vector }) => toNumbers(vector) }),
    base64: t.string({ description: "The vector as base64 of little-endian 32-bit floats.", resolve: ({ vector }) => toBase64(vector) }),
  }),
});

const CreateEmbeddingsPayload = builder.objectRef<EmbeddingsResult>("CreateEmbeddingsPayload").implement({
  description: "The result of `createEmbeddings`.",
  fields: (t) => ({
    embeddings: t.field({
      type: [Embedding],
      description: "The embeddings, one per input, in the same order.",
      resolve: ({ vectors }) => vectors.map((vector, index) => ({ index, vector })),
    }),
    receipt: t.field({ type: Receipt, description: "The receipt of the generation.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createEmbeddings", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateEmbeddingsPayload,
    nullable: true,
    description: "Creates embeddings. The charge is committed before the answer is returned.",
    args: { input: t.arg({ type: CreateEmbeddingsInput, required: true, description: "The inputs and the options." }) },
    resolve: async (_root, { input }, ctx) => {
      const { ctx: wishing, body } = await wished(ctx, input, () => toBody(input));
      return ctx.services.embeddings.create(wishing, parsePermitted(ctx, requireCaller, embeddingsInput, body));
    },
  }),
);

/** Builds the body of POST /v1/embeddings. Throws BAD_REQUEST. */
function toBody(input: typeof CreateEmbeddingsInput.$inferInput): Record<string, unknown> {
  const { input: given, extra, model, dimensions, user, safe } = input;
  const inputs = given.map(({ text, tokens }) => text ?? tokens);
  if (new Set(inputs.map((one) => typeof one)).size > 1) throw wrongField("input", "must be all texts or all tokens");
  return withExtra({ model, input: inputs, dimensions, user, safe: toSafeText(safe) }, extra);
}
