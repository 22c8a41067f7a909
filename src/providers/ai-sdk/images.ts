import type { ImageModelV3, ImageModelV3File, ImageModelV3Usage, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { ProviderError, refuse } from "../../formats/upstream-error.js";
import { pictureTypeOf } from "../../lib/content-types.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { NO_USAGE, USAGE_AMOUNT_MAX, type UsageQuantities } from "../../lib/usage.js";
import type { ImageAnswer, ImageCall, ImageProvider, InputFile } from "../media.js";
import { type AiSdkClient, statedOptions, toWarnings } from "./client.js";
import type { ImageTraits } from "./vendor.js";

// Sizes for upstreams that only accept aspect ratios.

/** Aspect ratios common to vendors. */
const RATIOS = ["1:1", "4:3", "3:4", "3:2", "2:3", "16:9", "9:16", "21:9"] as const;

/** The ratio nearest to a size, on a logarithmic scale. */
function nearestAspectRatio(width: number, height: number): (typeof RATIOS)[number] {
  const wanted = Math.log2(width / height);
  const distance = (ratio: string) => {
    const [across = 1, down = 1] = ratio.split(":").map(Number);
    return Math.abs(Math.log2(across / down) - wanted);
  };
  return [...RATIOS].sort((one, other) => distance(one) - distance(other))[0] ?? "1:1";
}

export class AiSdkImageProvider implements ImageProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: ImageTraits,
  ) {}

  generate(call: ImageCall): Promise<ImageAnswer> {
    return this.client.call(call.signal, async (models, { signal }) => {
      if (!models.imageModel) throw refuse("This upstream has no image models.", "model");
      const model = models.imageModel(call.upstreamModel);
      const warnings = new Set<string>();
      const counts = split(call.count, await this.countPerCall(model));
      const options = this.toOptions(call, warnings);
      const results = await Promise.all(
        counts.map((n, index) => model.doGenerate({ ...options, n, seed: seedOf(call, index), abortSignal: signal })),
      );
      for (const { warnings: own } of results) for (const warning of toWarnings(own)) warnings.add(warning);
      const images = await Promise.all(results.flatMap((result) => [...result.images]).map(toImage));
      if (images.length < call.count) throw new ProviderError("invalid-response", "The upstream made fewer pictures than were asked for.");
      return { images, usage: sumUsage(results.map((result) => result.usage)), warnings: [...warnings] };
    });
  }

  private async countPerCall(model: ImageModelV3): Promise<number> {
    if (this.traits.countPerCall) return this.traits.countPerCall(model.modelId);
    const { maxImagesPerCall: max } = model;
    return (typeof max === "function" ? await max({ modelId: model.modelId }) : max) ?? 1;
  }

  private toOptions(call: ImageCall, warnings: Set<string>): Omit<Parameters<ImageModelV3["doGenerate"]>[0], "n" | "seed"> {
    const { optionsName } = this.client.vendor;
    const own = { ...this.traits.options, ...this.ownOptions(call, warnings), ...statedOptions(call.extra, optionsName) };
    const unknown = Object.keys(call.extra).filter((name) => name !== "provider_options" && name !== "providerOptions");
    for (const name of unknown) warnings.add(`${name}: this upstream has no such option.`);
    return {
      prompt: call.prompt,
      ...this.toShape(call, warnings),
      files: call.images.length > 0 ? call.images.map(toFile) : undefined,
      mask: call.mask === null ? undefined : toFile(call.mask),
      providerOptions: { [optionsName]: own } as SharedV3ProviderOptions,
    };
  }

  private toShape({ size }: ImageCall, warnings: Set<string>) {
    if (size === null) return { size: undefined, aspectRatio: undefined };
    const { width, height } = size;
    if (this.traits.shape === "size") return { size: `${width}x${height}` as const, aspectRatio: undefined };
    const aspectRatio = nearestAspectRatio(width, height);
    warnings.add(`size: this upstream makes pictures of an aspect ratio, ${aspectRatio} for ${width}x${height}.`);
    return { size: undefined, aspectRatio };
  }

  private ownOptions(call: ImageCall, warnings: Set<string>): Record<string, unknown> {
    const { negativePrompt, quality, format, severalImages } = this.traits;
    const own: Record<string, unknown> = {};
    const take = (name: string, value: unknown, option: string | undefined) => {
      if (value === null || value === false) return;
      if (option === undefined) warnings.add(`${name}: this upstream has no such option.`);
      else setOwnValue(own, option, value);
    };
    take("negative_prompt", call.negativePrompt, negativePrompt);
    take("quality", quality && call.quality !== null ? (ownValue(quality.values, call.quality) ?? null) : call.quality, quality?.option);
    take("transparent", call.isTransparent, undefined);
    take("reasoning", call.reasoning, undefined);
    // The gateway converts other formats.
    const named = call.format === null ? undefined : format?.values[call.format];
    if (format && named !== undefined) setOwnValue(own, format.option, named);
    if (call.images.length > 1) Object.assign(own, severalImages);
    return own;
  }
}

function toFile({ bytes, contentType }: InputFile): ImageModelV3File {
  return { type: "file", mediaType: contentType, data: bytes };
}

/** Requests for one image each with the same seed would all return the same image. */
function seedOf({ seed }: ImageCall, index: number): number | undefined {
  return seed === null ? undefined : seed + index;
}

/** 5 images, 2 a request: 2, 2, 1. */
function split(count: number, most: number): number[] {
  return Array.from({ length: Math.ceil(count / most) }, (_, index) => Math.min(most, count - index * most));
}

async function toImage(image: string | Uint8Array) {
  const bytes = typeof image === "string" ? Buffer.from(image, "base64") : image;
  const contentType = pictureTypeOf(bytes);
  if (contentType === null) throw new ProviderError("invalid-response", "The upstream answered something that is not a picture.");
  return { bytes, contentType, revisedPrompt: null };
}

/** Null unless every request reported its usage. */
function sumUsage(usages: readonly (ImageModelV3Usage | undefined)[]): UsageQuantities | null {
  let inputTextTokens = 0;
  let outputImageTokens = 0;
  for (const usage of usages) {
    const { inputTokens, outputTokens } = usage ?? {};
    if (!isAmount(inputTokens) || !isAmount(outputTokens)) return null;
    inputTextTokens += inputTokens;
    outputImageTokens += outputTokens;
  }
  return { ...NO_USAGE, inputTextTokens, outputImageTokens };
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= USAGE_AMOUNT_MAX;
}
