/**
 * Video (docs/spec/video.md): a video for a prompt, billed per second of output.
 *
 * The hold covers the requested length, or the longest possible one. The charge is by the length of the file, else the upstream's reported
 * length, else the requested length.
 */
import { randomInt } from "node:crypto";
import type { RequestContext } from "../../../context.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { withFields } from "../../../lib/own-values.js";
import { NO_USAGE, USAGE_AMOUNT_MAX } from "../../../lib/usage.js";
import { VIDEO_SECONDS_MAX } from "../../../limits.js";
import type { InputFile, MediaFile, VideoAnswer } from "../../../providers/media.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { BillableQuantities } from "../../catalog/pricing.js";
import type { RequestFields } from "../../catalog/request-rates.js";
import { parseInput } from "../../requests/input.js";
import type { ChatCompletions } from "../chat/chat.js";
import type { ContentCache, PreparedAnswer } from "../content-cache/content-cache.js";
import type { Generations, GenerationWork } from "../generations.js";
import type { GenerationJob } from "../jobs/job.js";
import type { GenerationJobs } from "../jobs/jobs.js";
import type { PreparedGeneration } from "../jobs/runner.js";
import type { Metered } from "../metered.js";
import { judged, lengthBounds } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import type { Upstreams } from "../upstreams.js";
import type { ImageQuery } from "./images-input.js";
import { ENHANCE_NOTE, enhancePrompt, type ImageReferences } from "./images-references.js";
import type { MediaInspector } from "./media-inspector.js";
import { toSize, type VideoInput, videoInput } from "./videos-input.js";

/** Seeds that every upstream accepts. */
const RANDOM_SEED_BELOW = 2 ** 31;

export interface VideosDependencies {
  readonly catalog: Catalog;
  readonly inspector: MediaInspector;
  readonly generations: Generations;
  readonly upstreams: Upstreams;
  readonly contentCache: ContentCache;
  readonly references: ImageReferences;
  readonly chat: ChatCompletions;
  readonly jobs: GenerationJobs;
}

export interface GeneratedVideo {
  readonly file: MediaFile;
  readonly receipt: Receipt;
}

export interface PrepareOptions {
  readonly onProgress?: (percent: number) => void;
  readonly ignored?: readonly string[];
  readonly files?: readonly InputFile[];
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface SentWithVideo {
  readonly files?: readonly Pick<InputFile, "bytes">[];
  readonly extra?: Readonly<Record<string, unknown>>;
}

interface MeasuredVideo extends VideoAnswer {
  /** The length is measured, not reported by the upstream. */
  readonly isMeasured: boolean;
}

export interface VideoQueryRequest {
  readonly input: VideoInput;
  readonly noCache: boolean;
  readonly ignored: readonly string[];
}

export class Videos {
  constructor(private readonly deps: VideosDependencies) {}

  /** GET /video/{prompt}, and GET /image/{prompt} with a video model: from the content cache, or generated. */
  ask(ctx: RequestContext, request: VideoQueryRequest): PreparedAnswer {
    const { catalog, contentCache } = this.deps;
    const { input, ignored, noCache } = request;
    const model = resolveRequested(ctx, catalog, input.model, "video");
    const query = { operation: "video", model, parameters: toParameters(input), noCache } as const;
    return contentCache.ask(ctx, query, "video/mp4", async (producing) => this.run(producing, this.prepare(producing, input, { ignored })));
  }

  async generate(ctx: RequestContext, input: VideoInput): Promise<GeneratedVideo> {
    return this.run(ctx, this.prepare(ctx, input));
  }

  prepare(
    ctx: RequestContext,
    input: VideoInput,
    { onProgress = ignore, ignored = [], files = [], extra = {} }: PrepareOptions = {},
  ): PreparedGeneration<MeasuredVideo> {
    const { generations, upstreams, references } = this.deps;
    const seconds = input.duration ?? null;
    const expectedMs = (seconds ?? VIDEO_SECONDS_MAX) * 1000;
    const { least, most, notes } = lengthBounds(expectedMs, seconds !== null, lasting);
    const bounds = { least, most, notes: () => [...notes(), ...(input.enhance ? [ENHANCE_NOTE] : [])] };
    const plan = generations.plan(ctx, "video", input.model, billedFieldsOf(input, extra), () => lasting(expectedMs), bounds);
    references.check(input.image ?? []);
    const negativePrompt = input.negative_prompt ?? "";
    const seed = input.seed == null ? null : drawSeed(input.seed);
    let preparing: ReturnType<Videos["readSources"]> | undefined;
    const work: GenerationWork<MeasuredVideo> = {
      words: { texts: [input.prompt, negativePrompt], extra },
      safe: input.safe,
      including: input.enhance ? (own) => enhancePrompt(this.deps.chat, own, input.prompt, own.signal) : undefined,
      call: async (candidate, signal, { texts: [prompt = "", negative = ""], extra }) => {
        // Once for all candidates, and only after admission.
        preparing ??= this.readSources(ctx, input, files, prompt, signal);
        const sources = await preparing;
        const answer = await upstreams.serving(ctx, candidate, "video").generate({
          upstreamModel: candidate.route.upstreamModel,
          ...sources,
          size: toSize(input.width, input.height),
          aspectRatio: input.aspectRatio ?? null,
          seconds,
          hasAudio: input.audio ?? false,
          seed,
          negativePrompt: negative === "" ? null : negative,
          extra,
          onProgress,
          signal,
        });
        return this.measure(answer, plan.caller.accountId);
      },
      meter: (answer) => meter(answer, expectedMs),
      warnings: ({ warnings }) => [...warnings, ...ignored.map((name) => `${name}: has no effect on video.`)],
    };
    return { plan, work, toFile: ({ bytes, contentType }) => ({ bytes, contentType }) };
  }

  /** As `generate`, as a job: resolves when it is under way; refusals reject at once. */
  async start(ctx: RequestContext, input: VideoInput, sent: SentWithVideo = {}): Promise<GenerationJob> {
    const { jobs, references } = this.deps;
    requireCaller(ctx);
    const files = await references.accept(sent.files ?? [], "input_reference");
    return jobs.start(ctx, input, (job, onProgress) => this.prepare(job, input, { extra: sent.extra ?? {}, files, onProgress }));
  }

  private async readSources(ctx: RequestContext, input: VideoInput, files: readonly InputFile[], prompt: string, signal: AbortSignal) {
    const { references, chat } = this.deps;
    const named = await references.load(input.image ?? [], signal);
    return { images: [...files, ...named], prompt: input.enhance ? await enhancePrompt(chat, ctx, prompt, signal) : prompt };
  }

  /** Checks that the output is video, ignoring the upstream's type, and measures it. */
  private async measure(answer: VideoAnswer, accountId: string): Promise<MeasuredVideo> {
    const facts = await this.deps.inspector.video({ accountId, bytes: answer.bytes, isAnswer: true });
    if (facts === null) throw new ProviderError("invalid-response", "The upstream answered something that is not a video.");
    const isMeasured = facts.durationMs !== null;
    return { ...answer, contentType: facts.contentType, durationMs: facts.durationMs ?? answer.durationMs, isMeasured };
  }

  private async run(ctx: RequestContext, { plan, work, toFile }: PreparedGeneration<MeasuredVideo>): Promise<GeneratedVideo> {
    const { answer, receipt } = await this.deps.generations.run(ctx, plan, work);
    return { file: toFile(answer), receipt };
  }
}

export function fromVideoQuery(prompt: string, query: ImageQuery): VideoQueryRequest {
  const { "no-cache": noCache, quality, transparent, reasoning, nologo, ...stated } = query;
  const useless = { quality, transparent, reasoning, nologo };
  const ignored = Object.entries(useless).filter(([, value]) => value !== undefined && value !== false);
  return {
    input: parseInput(videoInput, { prompt, ...stated, safe: toSafe(stated.safe) }),
    noCache,
    ignored: ignored.map(([name]) => name),
  };
}

/** Options that decide the price per second beside the model. */
function billedFieldsOf({ width, height }: VideoInput, extra: RequestFields): RequestFields {
  const size = toSize(width, height);
  return withFields(extra, { size: size && `${size.width}x${size.height}` });
}

/** The upstream's length of a file without one is believed up to the requested length. */
function meter({ durationMs, isMeasured }: MeasuredVideo, expectedMs: number): Metered {
  if (durationMs === null) return { quantities: lasting(expectedMs), source: "estimated" };
  const reported = lasting(Math.min(durationMs, USAGE_AMOUNT_MAX));
  return isMeasured || durationMs <= expectedMs ? judged(reported, reported) : judged(reported, lasting(expectedMs));
}

function lasting(milliseconds: number): BillableQuantities {
  return { ...NO_USAGE, outputVideoMilliseconds: milliseconds };
}

/** Replaces -1 by a random seed (docs/spec/generation.md#seeds). */
function drawSeed(seed: number): number {
  return seed === -1 ? randomInt(RANDOM_SEED_BELOW) : seed;
}

/** Everything that decides the answer, in the content cache's form. */
function toParameters({ model: _, image, ...stated }: VideoInput): Record<string, string | number | boolean | null> {
  const values = Object.entries({ ...stated, image: image?.join("|") });
  return Object.fromEntries(values.map(([name, value]) => [name, value ?? null]));
}

/** `safe` may be a boolean (docs/spec/safety.md#features). Null: only the model's features. */
function toSafe(safe: string | undefined): string | null {
  if (safe === "1") return "true";
  return safe === undefined || safe === "" || safe === "0" || safe === "false" ? null : safe;
}

function ignore(): void {}
