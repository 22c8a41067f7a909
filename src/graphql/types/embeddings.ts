/** Embeddings as a mutation (docs/spec/embeddings.md). */
import { invalidInput } from "../../errors.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { type EmbeddingsResult, embeddingsInput, toBase64, toNumbers } from "../../services/generation/embeddings.js";
import { builder } from "../builder.js";
import { withExtra } from "../extra.js";
import { Receipt } from "./chat.js";

const CreateEmbeddingsInput = builder.inputType("CreateEmbeddingsInput", {
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default embedding model." }),
    input: t.stringList({ description: "The texts, at most 2,048 of them." }),
    tokens: t.field({
      type: t.listRef(t.listRef("Int")),
      description: "Instead of `input`: the texts as token numbers of the model's own vocabulary.",
    }),
    dimensions: t.int({ description: "How long the vectors shall be, where the model lets one choose." }),
    user: t.string({ description: "The caller's own user, told to the upstream." }),
    safe: t.string({ description: "`true`, or safety features separated by commas." }),
    extra: t.field({
      type: "JSON",
      description:
        "An object of further fields, by their wire names; they reach the upstream as they are, but for those that are billed (400).",
    }),
  }),
});

interface EmbeddingObject {
  readonly index: number;
  readonly vector: EmbeddingsResult["vectors"][number];
}

const Embedding = builder.objectRef<EmbeddingObject>("Embedding").implement({
  fields: (t) => ({
    index: t.exposeInt("index", { description: "Of the input." }),
    vector: t.floatList({ resolve: ({ vector }) => toNumbers(vector) }),
    base64: t.string({ description: "The same as base64 of little-endian 32-bit floats.", resolve: ({ vector }) => toBase64(vector) }),
  }),
});

const CreateEmbeddingsPayload = builder.objectRef<EmbeddingsResult>("CreateEmbeddingsPayload").implement({
  fields: (t) => ({
    embeddings: t.field({
      type: [Embedding],
      description: "One for each input, in order.",
      resolve: ({ vectors }) => vectors.map((vector, index) => ({ index, vector })),
    }),
    receipt: t.field({ type: Receipt, resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createEmbeddings", (t) =>
  t.field({
    type: CreateEmbeddingsPayload,
    nullable: true,
    description: "Turns texts into vectors. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: CreateEmbeddingsInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.embeddings.create(
        ctx,
        parsePermitted(ctx, requireCaller, embeddingsInput, () => toBody(input)),
      ),
  }),
);

/** The body of POST /v1/embeddings. Throws BAD_REQUEST. */
function toBody(input: typeof CreateEmbeddingsInput.$inferInput): Record<string, unknown> {
  const { input: texts, tokens, extra, model, dimensions, user, safe } = input;
  if (texts && tokens) throw invalidInput("Send either input or tokens.", "tokens");
  return withExtra({ model, input: texts ?? tokens, dimensions, user, safe }, extra);
}
