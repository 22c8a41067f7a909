/** Moderations (docs/spec/moderations.md, POST /v1/moderations): a moderation model's findings in texts and images. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { countChatTokens } from "../../formats/openai-chat/count.js";
import { withoutFields } from "../../lib/own-values.js";
import { countTexts } from "../../lib/tokenizer.js";
import { NO_USAGE } from "../../lib/usage.js";
import { MODERATION_INPUTS_MAX } from "../../limits.js";
import type { ModerationInput, ModerationResult } from "../../providers/media.js";
import { safeInput, toSafeText } from "../safety/features.js";
import type { Generations } from "./generations.js";
import { isJudged, judged, judgedPrompt, PICTURE_TOKENS_MOST, promptBounds } from "./plausible.js";
import type { Receipt } from "./receipt.js";
import type { Upstreams } from "./upstreams.js";

const text = z.string().min(1);
const textPart = z.looseObject({ type: z.literal("text"), text });
const imagePart = z.looseObject({ type: z.literal("image_url"), image_url: z.looseObject({ url: z.string().min(1) }) });
const part = z.discriminatedUnion("type", [textPart, imagePart]);

export const moderationsInput = z.looseObject({
  model: z.string().min(1).max(253).nullish(),
  input: z.union([text, z.array(text).min(1).max(MODERATION_INPUTS_MAX), z.array(part).min(1).max(MODERATION_INPUTS_MAX)]),
  safe: safeInput,
});
export type ModerationsInput = z.output<typeof moderationsInput>;

export interface ModerationObject {
  readonly id: string;
  readonly model: string;
  /** One per text; one for all content parts together. */
  readonly results: readonly ModerationResultObject[];
}

export interface ModerationResultObject {
  readonly flagged: boolean;
  readonly categories: Readonly<Record<string, boolean>>;
  readonly category_scores: Readonly<Record<string, number>>;
  readonly category_applied_input_types?: Readonly<Record<string, unknown>>;
}

export interface ModerationsResult {
  readonly moderation: ModerationObject;
  readonly receipt: Receipt;
}

const READ_FIELDS: ReadonlySet<string> = new Set(["model", "input", "safe"]);

export class Moderations {
  constructor(
    private readonly generations: Generations,
    private readonly upstreams: Upstreams,
  ) {}

  async create(ctx: RequestContext, input: ModerationsInput): Promise<ModerationsResult> {
    const { model: modelName, input: given, safe } = input;
    const extra = withoutFields(input, READ_FIELDS);
    const inputs: readonly ModerationInput[] = typeof given === "string" ? [given] : given;
    const counted = { ...NO_USAGE, inputTextTokens: countInputs(inputs) };
    const texts = inputs.filter((one) => typeof one === "string");
    const parts = inputs.filter((one) => typeof one !== "string");
    const pictures = parts.filter(({ type }) => type !== "text").length;
    const written = () => inputs.map((input) => (typeof input === "string" ? input : String(input.text ?? "")));
    const read = { counted, more: (pictures * PICTURE_TOKENS_MOST) / 2, texts: written };
    const plan = this.generations.plan(ctx, "moderation", modelName, extra, () => counted, promptBounds(read));
    const { answer, receipt } = await this.generations.run(ctx, plan, {
      words: { texts, extra, parts: { input: parts } },
      safe: toSafeText(safe),
      call: (candidate, signal, words) =>
        this.upstreams.serving(ctx, candidate, "moderation").moderate({
          upstreamModel: candidate.route.upstreamModel,
          signal,
          extra: words.extra,
          inputs: [...words.texts, ...((words.parts?.input ?? []) as typeof parts)],
        }),
      meter: ({ usage }, served) => {
        if (!usage) return { quantities: counted, source: "estimated" };
        return isJudged(plan, served) ? judgedPrompt(usage, read) : judged(usage, usage);
      },
      warnings: ({ warnings }) => warnings,
    });
    const id = `modr-${receipt.generationId.replaceAll("-", "")}`;
    return { moderation: { id, model: receipt.model, results: answer.results.map(toResultObject) }, receipt };
  }
}

function toResultObject({ flagged, categories, scores, appliedInputTypes }: ModerationResult): ModerationResultObject {
  return {
    flagged,
    categories,
    category_scores: scores,
    ...(appliedInputTypes && { category_applied_input_types: appliedInputTypes }),
  };
}

function countInputs(inputs: readonly ModerationInput[]): number {
  const texts = inputs.filter((input) => typeof input === "string");
  return texts.length === inputs.length ? countTexts(texts) : countChatTokens([{ content: inputs }]);
}
