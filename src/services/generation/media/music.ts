/**
 * Music (docs/spec/audio.md#music): a piece for a prompt, billed per second of output. The hold covers the requested length, or the
 * default; the charge is by the length of the file, else the upstream's reported length, else the held length.
 */
import { randomInt } from "node:crypto";
import type { RequestContext } from "../../../context.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { NO_USAGE, USAGE_AMOUNT_MAX } from "../../../lib/usage.js";
import { MUSIC_SECONDS_DEFAULT } from "../../../limits.js";
import { type MediaFile, type MusicAnswer, SPEECH_CONTENT_TYPES, type SpeechFormat } from "../../../providers/media.js";
import type { BillableQuantities } from "../../catalog/pricing.js";
import type { Generations, GenerationWork } from "../generations.js";
import type { GenerationJob } from "../jobs/job.js";
import type { GenerationJobs } from "../jobs/jobs.js";
import type { PreparedGeneration } from "../jobs/runner.js";
import type { Metered } from "../metered.js";
import { lengthBounds } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import type { Upstreams } from "../upstreams.js";
import type { MediaInspector } from "./media-inspector.js";
import type { MusicInput } from "./speech.js";

/** Seeds that every upstream accepts. */
const RANDOM_SEED_BELOW = 2 ** 31;
/** 16-bit mono at 24 kHz (OpenAI's "Create speech"): raw samples have no header. */
const PCM_BYTES_PER_SECOND = 48_000;

export interface MusicResult {
  readonly file: MediaFile;
  readonly durationMs: number | null;
  readonly receipt: Receipt;
}

export class Music {
  constructor(
    private readonly deps: {
      readonly generations: Generations;
      readonly upstreams: Upstreams;
      readonly jobs: GenerationJobs;
      readonly inspector: MediaInspector;
    },
  ) {}

  /** `notes` are warnings about options without effect. */
  async generate(ctx: RequestContext, input: MusicInput, notes: readonly string[] = []): Promise<MusicResult> {
    const { plan, work, toFile } = this.prepare(ctx, input, notes);
    const { answer, receipt } = await this.deps.generations.run(ctx, plan, work);
    return { file: toFile(answer), durationMs: answer.durationMs, receipt };
  }

  /** As `generate`, as a job: resolves when it is under way; refusals reject at once. */
  start(ctx: RequestContext, input: MusicInput): Promise<GenerationJob> {
    return this.deps.jobs.start(ctx, input, (job) => this.prepare(job, input, []));
  }

  private prepare(ctx: RequestContext, input: MusicInput, notes: readonly string[]): PreparedGeneration<MusicAnswer> {
    const { model: name, prompt, duration, response_format, seed: statedSeed, safe, ...extra } = input;
    const { generations, upstreams, inspector } = this.deps;
    const expectedMs = Math.round((duration ?? MUSIC_SECONDS_DEFAULT) * 1000);
    const bounds = lengthBounds(expectedMs, duration != null, lasting);
    const plan = generations.plan(ctx, "music", name, extra, () => lasting(expectedMs), bounds);
    const format = response_format ?? "mp3";
    const seed = statedSeed === -1 ? randomInt(RANDOM_SEED_BELOW) : (statedSeed ?? null);
    const work: GenerationWork<MusicAnswer> = {
      words: { texts: [prompt], extra },
      safe,
      call: async (candidate, signal, { texts: [text = ""], extra }) => {
        const call = { upstreamModel: candidate.route.upstreamModel, prompt: text, seconds: duration ?? null, format, seed, extra, signal };
        return believe(await upstreams.serving(ctx, candidate, "music").generate(call), format, plan.caller.accountId, inspector);
      },
      meter: (made) => meter(made, expectedMs),
      warnings: ({ warnings }) => [...warnings, ...notes],
    };
    return { plan, work, toFile: ({ bytes, contentType }) => ({ bytes, contentType }) };
  }
}

/** Checks that the output is audio, ignoring the upstream's type, and measures it. */
async function believe(answer: MusicAnswer, format: SpeechFormat, accountId: string, inspector: MediaInspector): Promise<MusicAnswer> {
  if (format === "pcm")
    return {
      ...answer,
      contentType: SPEECH_CONTENT_TYPES.pcm,
      durationMs: Math.round((answer.bytes.byteLength * 1000) / PCM_BYTES_PER_SECOND),
    };
  const facts = await inspector.audio({ accountId, bytes: answer.bytes, isAnswer: true });
  if (facts === null) throw new ProviderError("invalid-response", "The upstream's answer is not audio.");
  return { ...answer, contentType: facts.contentType, durationMs: facts.durationMs };
}

function meter({ durationMs }: MusicAnswer, expectedMs: number): Metered {
  const cameMs = Math.min(durationMs ?? expectedMs, USAGE_AMOUNT_MAX);
  return { quantities: lasting(cameMs), source: durationMs === null ? "estimated" : "provider" };
}

function lasting(milliseconds: number): BillableQuantities {
  return { ...NO_USAGE, outputAudioMilliseconds: milliseconds };
}
