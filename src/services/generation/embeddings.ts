/** Embeddings (docs/spec/embeddings.md, POST /v1/embeddings): texts, or token numbers of the model's own vocabulary, as vectors. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { AnswerName } from "../../lib/answer-name.js";
import { withoutFields } from "../../lib/own-values.js";
import { countTexts } from "../../lib/tokenizer.js";
import { NO_USAGE } from "../../lib/usage.js";
import { EMBEDDING_DIMENSIONS_MAX, EMBEDDING_INPUTS_MAX } from "../../limits.js";
import type { EmbeddingAnswer, EmbeddingVector } from "../../providers/media.js";
import { parsedOften } from "../requests/input.js";
import { isChecked, safeInput, toSafeText } from "../safety/features.js";
import type { Generations, PricedPlan } from "./generations.js";
import { inputTokensOf, isJudged, judged, judgedPrompt, promptBounds } from "./plausible.js";
import type { Receipt } from "./receipt.js";
import type { Upstreams } from "./upstreams.js";

const text = z.string().min(1);
const token = z.int().min(0);

export const embeddingsInput = parsedOften(
  z.looseObject({
    model: z.string().min(1).max(253).nullish(),
    input: z.union([
      text,
      z.array(text).min(1).max(EMBEDDING_INPUTS_MAX),
      z.array(token).min(1),
      z.array(z.array(token).min(1)).min(1).max(EMBEDDING_INPUTS_MAX),
    ]),
    encoding_format: z.enum(["float", "base64"]).nullish(),
    dimensions: z.int().min(1).max(EMBEDDING_DIMENSIONS_MAX).nullish(),
    user: z.string().nullish(),
    safe: safeInput,
  }),
);
export type EmbeddingsInput = z.output<typeof embeddingsInput>;

const READ_FIELDS: ReadonlySet<string> = new Set(["model", "input", "encoding_format", "dimensions", "safe"]);

type Input = string | readonly number[];

export interface EmbeddingsResult {
  readonly vectors: readonly EmbeddingVector[];
  /** The JSON document of OpenAI's format, in the requested encoding. */
  readonly bytes: () => Uint8Array;
  readonly receipt: Receipt;
}

export class Embeddings {
  constructor(
    private readonly generations: Generations,
    private readonly upstreams: Upstreams,
  ) {}

  /** `notes` are warnings about the request itself. */
  async create(ctx: RequestContext, input: EmbeddingsInput, notes: readonly string[] = []): Promise<EmbeddingsResult> {
    const { model: modelName, input: given, encoding_format: format, dimensions = null, safe } = input;
    const extra = withoutFields(input, READ_FIELDS);
    const inputs = toInputs(given);
    const counted = { ...NO_USAGE, inputTextTokens: countInputs(inputs) };
    const texts = inputs.filter((one) => typeof one === "string");
    const read = { counted, texts: () => texts };
    const planned = this.generations.plan(ctx, "embedding", modelName, extra, () => counted, promptBounds(read));
    const plan = notes.length === 0 ? planned : { ...planned, notes: [...planned.notes, ...notes] };
    if (texts.length < inputs.length) assertReadable(plan, safe);
    const { answer, receipt } = await this.generations.run(ctx, plan, {
      words: { texts, extra },
      safe: toSafeText(safe),
      call: (candidate, signal, words) =>
        this.upstreams.serving(ctx, candidate, "embedding").embed({
          upstreamModel: candidate.route.upstreamModel,
          signal,
          extra: words.extra,
          inputs: texts.length > 0 ? words.texts : inputs,
          isSingle: !isList(given),
          dimensions,
          encodingFormat: format ?? null,
        }),
      meter: ({ usage }, served) => {
        if (!usage) return { quantities: counted, source: "estimated" };
        return isJudged(plan, served) ? judgedPrompt(usage, read) : judged(usage, usage);
      },
      warnings: ({ warnings }) => warnings,
    });
    return { vectors: answer.vectors, bytes: () => toDocument(answer, receipt, format === "base64"), receipt };
  }
}

/** Little-endian 32-bit floats in base64, as OpenAI's clients request. */
export function toBase64(vector: EmbeddingVector): string {
  if (typeof vector === "string") return vector;
  const bytes = Buffer.allocUnsafe(vector.length * Float32Array.BYTES_PER_ELEMENT);
  for (const [index, number] of vector.entries()) bytes.writeFloatLE(number, index * Float32Array.BYTES_PER_ELEMENT);
  return bytes.toString("base64");
}

export function toNumbers(vector: EmbeddingVector): number[] {
  if (typeof vector !== "string") return Array.from(vector);
  const bytes = Buffer.from(vector, "base64");
  return Array.from({ length: bytes.length / Float32Array.BYTES_PER_ELEMENT }, (_, index) =>
    bytes.readFloatLE(index * Float32Array.BYTES_PER_ELEMENT),
  );
}

function toInputs(input: EmbeddingsInput["input"]): readonly Input[] {
  return isList(input) ? input : [input];
}

function isList(input: EmbeddingsInput["input"]): input is string[] | number[][] {
  return typeof input !== "string" && typeof input[0] !== "number";
}

function countInputs(inputs: readonly Input[]): number {
  let tokens = 0;
  for (const one of inputs) if (typeof one !== "string") tokens += one.length;
  return tokens + countTexts(inputs.filter((one) => typeof one === "string"));
}

/** Token numbers cannot be read without the model's vocabulary, so they cannot be checked. */
function assertReadable({ caller, model }: PricedPlan, safe: EmbeddingsInput["safe"]): void {
  if (isChecked(caller, model, safe))
    throw invalidInput("Safety features read texts: send the input as text, not as token numbers.", "input");
}

/** The document as received, under the model's own id, or a new one; a report that was not believed is left out. */
function toDocument({ document, vectors }: EmbeddingAnswer, { model, usage, usageSource }: Receipt, isEncoded: boolean): Uint8Array {
  const passed = document && usageSource === "provider" ? new AnswerName(model).inBytes(document.bytes, document.object) : null;
  if (passed) return passed;
  const data = vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: isEncoded ? toBase64(vector) : toNumbers(vector),
  }));
  const tokens = inputTokensOf(usage);
  return Buffer.from(JSON.stringify({ object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } }));
}
