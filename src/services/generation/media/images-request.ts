/** The common form of all image requests. */

import { ownValue, withFields, withoutFields } from "../../../lib/own-values.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import { NO_USAGE, type ReportedUsage, type UsageQuantities } from "../../../lib/usage.js";
import { IMAGE_SIDE_DEFAULT } from "../../../limits.js";
import type { InputFile } from "../../../providers/media.js";
import type { Model } from "../../catalog/model.js";
import type { BillableQuantities, RateCard } from "../../catalog/pricing.js";
import { toSafeText } from "../../safety/features.js";
import type { Metered } from "../metered.js";
import { type AmountBounds, boundInput, boundOutput, judged, outputTokensOf, promptTokensMost, vocabularyMargin } from "../plausible.js";
import {
  IMAGE_SIZE_DEFAULT,
  type ImageEditInput,
  type ImageGenerationInput,
  type ImageQuery,
  type ImageSize,
  type ImageVariationInput,
  isTransparent,
  readSize,
  unlessAuto,
} from "./images-input.js";
import { ENHANCE_NOTE } from "./images-references.js";

export interface ImageFiles {
  readonly images: readonly InputFile[];
  readonly mask: InputFile | null;
}

export interface ImageRequest {
  readonly model: string | null;
  readonly prompt: string;
  readonly size: ImageSize | null;
  readonly count: number;
  /** -1: random; null: absent. */
  readonly seed: number | null;
  readonly negativePrompt: string | null;
  readonly quality: string | null;
  readonly isTransparent: boolean;
  readonly format: "jpeg" | "png" | "webp" | null;
  readonly reasoning: boolean | null;
  readonly enhance: boolean;
  readonly safe: string | null;
  /** URLs, in order; files follow. */
  readonly imageUrls: readonly string[];
  readonly maskUrl: string | null;
  readonly files: ImageFiles;
  /** Of the one image, without a prompt. */
  readonly isVariation?: boolean;
  readonly isPublished: boolean;
  /** Larger images in total are answered as links; absent: never. */
  readonly inlineBytesMax?: number;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly ignored: readonly string[];
}

export const NO_FILES: ImageFiles = { images: [], mask: null };

/** Generations default to 1024x1024 (docs/spec/images.md#generations). */
export function fromGenerationInput(input: ImageGenerationInput): ImageRequest {
  return fromBody(input, unlessAuto(input.size) ?? IMAGE_SIZE_DEFAULT);
}

export function fromEditInput(input: ImageEditInput, files: ImageFiles): ImageRequest {
  const body = fromBody(input as ImageEditInput & ImageGenerationInput, unlessAuto(input.size), READ_FIELDS_OF_EDITS);
  return { ...body, maskUrl: input.mask ?? null, files };
}

/** Without a size the upstream decides, as of an edit. */
export function fromVariationInput({ image, ...input }: ImageVariationInput, files: ImageFiles): ImageRequest {
  const body = fromBody({ ...input, prompt: "" }, unlessAuto(input.size), READ_FIELDS_OF_EDITS);
  return { ...body, imageUrls: image === undefined ? [] : [image], files, isVariation: true };
}

const READ_FIELDS: ReadonlySet<string> = new Set([
  ...["prompt", "model", "n", "size", "response_format", "quality", "seed", "nologo", "enhance", "safe", "image"],
  ...["negative_prompt", "transparent", "background", "reasoning", "output_format", "stream"],
]);

const READ_FIELDS_OF_EDITS: ReadonlySet<string> = new Set([...READ_FIELDS, "mask"]);

function fromBody(input: ImageGenerationInput, sides: string | null, readFields = READ_FIELDS): ImageRequest {
  const { prompt, model, n, response_format, quality, seed, enhance, safe, image } = input;
  const { negative_prompt, transparent, background, reasoning, output_format } = input;
  const extra = withoutFields(input, readFields);
  return {
    model: model ?? null,
    prompt,
    size: sides === null ? null : readSize(sides),
    count: n ?? 1,
    seed: seed ?? null,
    negativePrompt: negative_prompt || null,
    quality: unlessAuto(quality),
    isTransparent: isTransparent({ transparent, background }),
    format: output_format ?? null,
    reasoning: reasoning ?? null,
    enhance: enhance ?? false,
    safe: toSafeText(safe),
    imageUrls: image ?? [],
    maskUrl: null,
    files: NO_FILES,
    isPublished: response_format === "url",
    extra: background && background !== "transparent" ? withFields(extra, { background }) : extra,
    ignored: [],
  };
}

/** GET /image answers JPEG, and PNG for transparency (docs/spec/images.md#get-image). */
export function fromQuery(prompt: string, query: ImageQuery): ImageRequest {
  const ofVideos = (["duration", "aspectRatio", "audio"] as const).filter((name) => query[name]);
  return {
    model: query.model ?? null,
    prompt,
    size: { width: query.width ?? IMAGE_SIDE_DEFAULT, height: query.height ?? IMAGE_SIDE_DEFAULT },
    count: 1,
    seed: query.seed,
    negativePrompt: query.negative_prompt || null,
    quality: query.quality ?? null,
    isTransparent: query.transparent,
    format: query.transparent ? "png" : "jpeg",
    reasoning: query.reasoning ?? null,
    enhance: query.enhance,
    safe: toSafeText(query.safe),
    imageUrls: query.image ?? [],
    maskUrl: null,
    files: NO_FILES,
    isPublished: false,
    extra: {},
    ignored: ofVideos,
  };
}

// Amounts billed for images: `request` counts images, `tokens` uses the upstream's report. Both are always computed, because a fallback may
// have the other pricing, and the requested model's price applies.

/**
 * OpenAI's table of output tokens ("Image generation", cost and latency) for 1024x1024; its larger sizes cost in proportion to their area,
 * to within 2%.
 */
const OUTPUT_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1_056, standard: 1_056, high: 4_160, hd: 4_160 };
const OUTPUT_TOKENS_PIXELS = 1_024 * 1_024;
/** The same source: 65 tokens, and 129 for each of two tiles, which every usual aspect ratio has. */
const INPUT_TOKENS = 65 + 2 * 129;

/** The amounts of the hold; unspecified: also the usage assumed of an upstream without a report. */
export function estimateImages(request: ImageRequest, count = request.count): BillableQuantities {
  const { width, height } = request.size ?? { width: IMAGE_SIDE_DEFAULT, height: IMAGE_SIDE_DEFAULT };
  const atDefaultSize = ownValue(OUTPUT_TOKENS, request.quality ?? "medium") ?? 0;
  const outputTokens = Math.ceil((atDefaultSize * width * height) / OUTPUT_TOKENS_PIXELS);
  const inputs = request.imageUrls.length + request.files.images.length;
  return {
    ...NO_USAGE,
    inputTextTokens: countTextTokens(request.prompt) + countTextTokens(request.negativePrompt ?? ""),
    inputImageTokens: inputs * INPUT_TOKENS,
    outputImageTokens: count * outputTokens,
    imageRequests: count,
  };
}

/** The table's highest quality: the most for an image at the requested size. Without one, models choose a size. */
const OUTPUT_TOKENS_MOST = 4_160;
/** OpenAI's largest size, which a model may choose by default. */
const UNSTATED_PIXELS = 1_536 * 1_024;
/** OpenAI's "input fidelity": 6,240 more tokens for an image of 1536x1024. */
const INPUT_TOKENS_MOST = INPUT_TOKENS + 6_240;

export function meterImages(
  model: Model,
  request: ImageRequest,
  count: number,
  usage: UsageQuantities | null,
  isReportJudged: boolean,
): Metered {
  // With a price per image no tokens are charged, so the usage row has none.
  const counted = () => (model.imagePricing === "tokens" ? estimateImages(request, count) : { ...NO_USAGE, imageRequests: count });
  // Zeros are no report of an image.
  const isBelieved = !isReportJudged || model.imagePricing !== "tokens" || (usage !== null && outputTokensOf(usage) > 0);
  if (usage !== null && isBelieved) {
    const bound = isReportJudged && model.imagePricing === "tokens" ? boundImages(request, count, usage) : usage;
    const reported = judged(usage, bound);
    return { ...reported, quantities: { ...reported.quantities, imageRequests: count }, counted };
  }
  return { quantities: counted(), source: "estimated" };
}

function boundImages(request: ImageRequest, count: number, usage: ReportedUsage): ReportedUsage {
  const { input, output } = tokensMost(request, count);
  return boundOutput(boundInput(usage, input), output);
}

function tokensMost({ prompt, negativePrompt, size, imageUrls, maskUrl, files }: ImageRequest, count: number) {
  const pixels = size === null ? UNSTATED_PIXELS : Math.max(size.width * size.height, OUTPUT_TOKENS_PIXELS);
  const texts = [prompt, negativePrompt ?? ""];
  const pictures = imageUrls.length + files.images.length + Number(maskUrl !== null || files.mask !== null);
  const counted = texts.reduce((sum, text) => sum + countTextTokens(text) + vocabularyMargin(text), 0);
  return {
    input: promptTokensMost(counted + pictures * INPUT_TOKENS_MOST),
    output: count * Math.ceil((OUTPUT_TOKENS_MOST * pixels) / OUTPUT_TOKENS_PIXELS),
  };
}

/** An upstream may answer fewer images than requested, and at a price by tokens any report above zero is believed. */
export function boundsOfImages(request: ImageRequest, rates: () => RateCard): AmountBounds {
  return {
    least: () => ({ ...NO_USAGE, imageRequests: 1, inputTextTokens: 1, outputImageTokens: 1 }),
    most: () => {
      const { input, output } = tokensMost(request, request.count);
      const kind = rates().inputImageTokens > rates().inputTextTokens ? "inputImageTokens" : "inputTextTokens";
      return { ...NO_USAGE, imageRequests: request.count, [kind]: input, outputImageTokens: output };
    },
    notes: () => {
      const notes = request.enhance ? [ENHANCE_NOTE] : [];
      if (rates().outputImageTokens > 0n)
        notes.push("The tokens of an image are known when it is made: most is the most plausible report.");
      return notes;
    },
  };
}
