/**
 * Images (docs/spec/images.md): from a prompt, from a prompt and other images, from one image, and by GET with the content cache.
 *
 * 1. Addresses of the client's images are checked: forbidden ones are neither fetched nor paid for.
 * 2. `Generations` holds, calls and settles. Within the call, once for all candidates, the client's images are fetched and the prompt
 *    is rewritten on request, and the answer is converted to the requested format. It is published before the charge.
 */
import { randomInt } from "node:crypto";
import type { RequestContext } from "../../../context.js";
import { wrongField } from "../../../errors.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { convertPicture } from "../../../lib/content-types.js";
import { withFields } from "../../../lib/own-values.js";
import type { UsageQuantities } from "../../../lib/usage.js";
import { IMAGE_INPUT_PIXELS_MAX, IMAGE_INPUTS_MAX } from "../../../limits.js";
import type { ImageAnswer, InputFile, MediaFile } from "../../../providers/media.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import { qualityFor, type RequestFields } from "../../catalog/request-rates.js";
import type { MediaLinks } from "../../files/media-links.js";
import type { MediaQuotas } from "../../files/media-quotas.js";
import type { ChatCompletions } from "../chat/chat.js";
import type { ContentCache, PreparedAnswer } from "../content-cache/content-cache.js";
import type { Generations, GenerationWork, PricedPlan } from "../generations.js";
import type { GenerationJob } from "../jobs/job.js";
import type { GenerationJobs } from "../jobs/jobs.js";
import type { PreparedGeneration } from "../jobs/runner.js";
import { isJudged } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import type { Candidate } from "../routing/candidate.js";
import type { Upstreams } from "../upstreams.js";
import type { ImageEditInput, ImageGenerationInput, ImageJobInput, ImageQuery, ImageVariationInput } from "./images-input.js";
import { enhancePrompt, type ImageReferences } from "./images-references.js";
import {
  boundsOfImages,
  estimateImages,
  fromEditInput,
  fromGenerationInput,
  fromQuery,
  fromVariationInput,
  type ImageFiles,
  type ImageRequest,
  meterImages,
  NO_FILES,
} from "./images-request.js";
import { nameForVariations } from "./images-variations.js";
import { fromVideoQuery, type Videos } from "./videos.js";

export interface ImagesDependencies {
  readonly catalog: Catalog;
  readonly generations: Generations;
  readonly upstreams: Upstreams;
  readonly contentCache: ContentCache;
  readonly references: ImageReferences;
  readonly chat: ChatCompletions;
  readonly mediaLinks: MediaLinks;
  readonly mediaQuotas: MediaQuotas;
  readonly videos: Videos;
  readonly jobs: GenerationJobs;
}

export interface GeneratedImage {
  /** Bytes, or base64 that is decoded on demand. */
  readonly file: Picture;
  readonly url: string | null;
  /** The prompt that the model got instead of the client's. */
  readonly revisedPrompt: string | null;
}

export interface GeneratedImages {
  readonly createdAt: Date;
  readonly images: readonly GeneratedImage[];
  /** As reported by the upstream, if believed. */
  readonly usage: UsageQuantities | null;
  readonly receipt: Receipt;
  readonly release: () => void;
}

interface Made extends Pick<GeneratedImages, "usage" | "release"> {
  images: readonly GeneratedImage[];
  readonly warnings: readonly string[];
}

/** Seeds that every upstream accepts. */
const RANDOM_SEED_BELOW = 2 ** 31;

export class Images {
  constructor(private readonly deps: ImagesDependencies) {}

  /**
   * POST /v1/images/generations. Resolves when the charge is committed. Images of more than `inlineBytesMax` in total are published before,
   * even if no links were requested.
   */
  generate(ctx: RequestContext, input: ImageGenerationInput, inlineBytesMax = Number.POSITIVE_INFINITY): Promise<GeneratedImages> {
    return this.run(ctx, { ...fromGenerationInput(input), inlineBytesMax });
  }

  /** POST /v1/images/edits: the images are URLs, files, or both. */
  async edit(ctx: RequestContext, input: ImageEditInput, files: ImageFiles = NO_FILES): Promise<GeneratedImages> {
    requireCaller(ctx);
    const count = input.image.length + files.images.length;
    if (count === 0) throw wrongField("image", "is required");
    if (count > IMAGE_INPUTS_MAX) throw wrongField("image", `must have at most ${IMAGE_INPUTS_MAX} items`);
    if (input.mask && files.mask) throw wrongField("mask", "may be given only once");
    const { references } = this.deps;
    const images = await references.accept(files.images);
    const [mask = null] = await references.accept(files.mask ? [files.mask] : [], "mask");
    return this.run(ctx, fromEditInput(input, { images, mask }));
  }

  /** POST /v1/images/variations: the image is a URL or a file. Rejects with BAD_REQUEST for a model that makes none. */
  async vary(ctx: RequestContext, input: ImageVariationInput, file: InputFile | null = null): Promise<GeneratedImages> {
    requireCaller(ctx);
    if (input.image === undefined && file === null) throw wrongField("image", "is required");
    if (input.image !== undefined && file !== null) throw wrongField("image", "may be given only once");
    const { catalog, references } = this.deps;
    const model = await nameForVariations(ctx, catalog, input.model);
    const images = await references.accept(file === null ? [] : [file]);
    return this.run(ctx, { ...fromVariationInput(input, { images, mask: null }), model });
  }

  /** GET /image/{prompt}: from the content cache, or generated; with a video model a video. */
  ask(ctx: RequestContext, prompt: string, query: ImageQuery): PreparedAnswer {
    const { catalog, contentCache, videos } = this.deps;
    const noCache = query["no-cache"];
    const caller = requireCaller(ctx);
    const isVideo = query.model !== undefined && catalog.findFor(caller, query.model)?.modality === "video";
    if (isVideo) return videos.ask(ctx, fromVideoQuery(prompt, query));
    const model = resolveRequested(ctx, catalog, query.model, "image", ["image", "video"]);
    const request = fromQuery(prompt, query);
    this.deps.references.check(request.imageUrls);
    const cacheQuery = { operation: "image", model, parameters: toCacheParameters(request), noCache } as const;
    return contentCache.ask(ctx, cacheQuery, query.transparent ? "image/png" : "image/jpeg", (producing) =>
      this.produce(producing, request),
    );
  }

  /**
   * As `generate`, as a job with one image: resolves when it is under way; refusals reject at once. Inline images are not stored with the
   * job's input.
   */
  start(ctx: RequestContext, input: ImageJobInput): Promise<GenerationJob> {
    const request = fromGenerationInput(input);
    const named = { ...input, image: request.imageUrls.filter((url) => !url.startsWith("data:")) };
    return this.deps.jobs.start(ctx, named, (job) => this.prepare(job, request));
  }

  private async produce(ctx: RequestContext, request: ImageRequest) {
    const { images, receipt } = await this.run(ctx, request);
    return { file: toFile({ images }), receipt };
  }

  private async run(ctx: RequestContext, request: ImageRequest): Promise<GeneratedImages> {
    const { generations, mediaQuotas } = this.deps;
    const { plan, work } = this.prepare(ctx, request);
    if (request.isPublished) await mediaQuotas.assertNotFull(ctx);
    const { answer, receipt } = await generations.run(ctx, plan, work);
    const { images, release } = answer;
    const usage = answer.usage === null || receipt.usageSource === "provider" ? answer.usage : receipt.usage;
    return { createdAt: new Date(), images, usage, receipt, release };
  }

  private prepare(ctx: RequestContext, request: ImageRequest): PreparedGeneration<Made> {
    const { generations, references } = this.deps;
    const bounds = boundsOfImages(request, () => planned.model.rates);
    const expect = () => estimateImages(request);
    const planned: PricedPlan = generations.plan(ctx, "image", request.model, billedFieldsOf(request), expect, bounds);
    const { isVariation = false } = request;
    const plan = isVariation ? { ...planned, candidates: planned.candidates.filter(({ model }) => model.hasVariations) } : planned;
    references.check(request.imageUrls);
    references.check(request.maskUrl === null ? [] : [request.maskUrl], "mask");
    let preparing: Promise<Prepared> | undefined;
    const work: GenerationWork<Made> = {
      words: { texts: [request.prompt, request.negativePrompt ?? ""], extra: request.extra },
      safe: request.safe,
      including: request.enhance ? (own) => enhancePrompt(this.deps.chat, own, request.prompt, own.signal) : undefined,
      call: async (candidate, signal, { texts: [prompt = "", negativePrompt = ""], extra }) => {
        preparing ??= this.readSources(ctx, request, prompt, signal);
        return this.call(ctx, candidate, { ...request, negativePrompt, extra }, await preparing, signal);
      },
      meter: (made, served) => {
        const metered = () => meterImages(plan.model, request, made.images.length, made.usage, isJudged(plan, served));
        return isPublished(request, made.images) ? this.publish(ctx, made).then(metered) : metered();
      },
      warnings: ({ warnings }) => [...warnings, ...request.ignored.map((name) => `${name} has no effect on a picture.`)],
    };
    return { plan, work, toFile };
  }

  private async readSources(ctx: RequestContext, request: ImageRequest, prompt: string, signal: AbortSignal): Promise<Prepared> {
    const { chat, references } = this.deps;
    const { imageUrls, maskUrl, files, seed } = request;
    const [images, masks, written] = await Promise.all([
      references.load(imageUrls, signal),
      references.load(maskUrl === null ? [] : [maskUrl], signal, "mask"),
      request.enhance ? enhancePrompt(chat, ctx, prompt, signal) : prompt,
    ]);
    return {
      prompt: written,
      seed: seed === -1 ? randomInt(RANDOM_SEED_BELOW) : seed,
      images: [...images, ...files.images],
      mask: files.mask ?? masks[0] ?? null,
      revisedPrompt: written === prompt ? null : written,
    };
  }

  private async call(
    ctx: RequestContext,
    candidate: Candidate,
    request: ImageRequest,
    { revisedPrompt, ...prepared }: Prepared,
    signal: AbortSignal,
  ): Promise<Made> {
    const answer = await this.deps.upstreams.serving(ctx, candidate, "image").generate({
      ...prepared,
      upstreamModel: candidate.route.upstreamModel,
      size: request.size,
      count: request.count,
      negativePrompt: request.negativePrompt || null,
      quality: qualityFor(candidate.model, request.quality),
      isTransparent: request.isTransparent,
      format: request.format,
      reasoning: request.reasoning,
      isVariation: request.isVariation ?? false,
      extra: request.extra,
      signal,
    });
    // More images than requested are not charged.
    const wanted = answer.images.slice(0, request.count);
    if (wanted.length === 0) throw new ProviderError("invalid-response", "The upstream's answer holds no pictures.");
    const made = await Promise.all(
      wanted.map(async (image) => ({
        file: await toFormat(image, request.format),
        url: null,
        revisedPrompt: image.revisedPrompt ?? revisedPrompt,
      })),
    );
    return { images: made, usage: answer.usage, warnings: answer.warnings, release: () => answer.release?.() };
  }

  /** After the call: a failing file store is not the model's fault. */
  private async publish(ctx: RequestContext, made: Made): Promise<void> {
    const { mediaLinks } = this.deps;
    made.images = await Promise.all(made.images.map(async (image) => ({ ...image, url: (await mediaLinks.publish(ctx, image.file)).url })));
  }
}

/** Without a bound nothing is measured, so that base64 stays undecoded. */
function isPublished({ isPublished: isRequested, inlineBytesMax }: ImageRequest, images: readonly GeneratedImage[]): boolean {
  if (isRequested || inlineBytesMax === undefined || inlineBytesMax === Number.POSITIVE_INFINITY) return isRequested;
  return images.reduce((sum, { file }) => sum + file.bytes.byteLength, 0) > inlineBytesMax;
}

function toFile({ images: [image] }: Pick<Made, "images">): MediaFile {
  if (!image) throw new Error("A generation without a picture was charged.");
  return { bytes: image.file.bytes, contentType: image.file.contentType };
}

interface Prepared {
  readonly prompt: string;
  readonly seed: number | null;
  readonly images: readonly InputFile[];
  readonly mask: InputFile | null;
  readonly revisedPrompt: string | null;
}

/** Options that decide the price beside the model. */
function billedFieldsOf({ extra, size, quality }: ImageRequest): RequestFields {
  return withFields(extra, { size: size && `${size.width}x${size.height}`, quality });
}

type Picture = Pick<ImageAnswer["images"][number], "bytes" | "contentType" | "base64">;

/** An unreadable image is the upstream's failure: a fallback may follow. */
async function toFormat(picture: Picture, format: ImageRequest["format"]): Promise<Picture> {
  if (format === null || picture.contentType === `image/${format}`) return picture;
  try {
    return { bytes: await convertPicture(picture.bytes, format, IMAGE_INPUT_PIXELS_MAX), contentType: `image/${format}` };
  } catch (error) {
    throw new ProviderError("invalid-response", "The upstream answered a picture that cannot be read.", { cause: error });
  }
}

function toCacheParameters(request: ImageRequest) {
  const { prompt, size, seed, negativePrompt, quality, isTransparent, reasoning, enhance, safe, imageUrls } = request;
  return {
    prompt,
    width: size?.width ?? null,
    height: size?.height ?? null,
    seed,
    negative_prompt: negativePrompt,
    quality,
    transparent: isTransparent,
    reasoning,
    enhance,
    safe,
    image: imageUrls.join("|"),
  };
}
