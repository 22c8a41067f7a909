/**
 * What pictures are billed by: `request` counts pictures, `tokens` what the upstream reports. Both are always worked out, because a
 * fallback may be priced the other way and the price of the model that was asked for applies.
 */
import { ownValue } from "../../../lib/own-values.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import { NO_USAGE, type UsageQuantities } from "../../../lib/usage.js";
import { IMAGE_SIDE_DEFAULT } from "../../../limits.js";
import type { Model } from "../../catalog/model.js";
import type { BillableQuantities } from "../../catalog/pricing.js";
import type { Metered } from "../run.js";
import type { ImageRequest } from "./images-request.js";

/**
 * OpenAI's table of output tokens ("Image generation", cost and latency) for 1024x1024; its larger sizes cost in proportion to their
 * area, to within 2%.
 */
const OUTPUT_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1_056, standard: 1_056, high: 4_160, hd: 4_160 };
const OUTPUT_TOKENS_PIXELS = 1_024 * 1_024;
/** The same source: 65 tokens, and 129 for each of two tiles, which is what a picture of any usual shape is cut into. */
const INPUT_TOKENS = 65 + 2 * 129;

/** What the hold covers; unspecified: what an upstream that reports no usage is taken to have used. */
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

/** `count` pictures were delivered. */
export function meterImages(model: Model, request: ImageRequest, count: number, usage: UsageQuantities | null): Metered {
  if (usage !== null) return { quantities: { ...usage, imageRequests: count }, source: "provider" };
  // Priced by the picture, no token was charged, and the usage row claims none.
  const counted = model.imagePricing === "tokens" ? estimateImages(request, count) : { ...NO_USAGE, imageRequests: count };
  return { quantities: counted, source: "estimated" };
}
