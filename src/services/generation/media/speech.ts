/**
 * Speech (docs/spec/audio.md#speech): text to speech, whole or streamed. Billed per character of the text, so its price is known
 * beforehand.
 */

import * as z from "zod";
import type { RequestContext } from "../../../context.js";
import { invalidInput } from "../../../errors.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { inUnit } from "../../../lib/issue-words.js";
import { withoutFields } from "../../../lib/own-values.js";
import { NO_USAGE } from "../../../lib/usage.js";
import {
  MUSIC_SECONDS_MAX,
  MUSIC_SECONDS_MIN,
  SPEECH_INPUT_CHARS_MAX,
  SPEECH_SPEED_MAX,
  SPEECH_SPEED_MIN,
  UPSTREAM_BODY_BYTES_MAX,
} from "../../../limits.js";
import { type MediaFile, SPEECH_FORMATS, type SpeechStream } from "../../../providers/media.js";
import type { Model } from "../../catalog/model.js";
import { queryFlag, queryInteger, queryNumber } from "../../requests/query-values.js";
import { SAFE_PATTERN } from "../../safety/features.js";
import { takeGenerationId, type Words } from "../admission.js";
import type { Generations } from "../generations.js";
import { MODEL_TEXT, NO_CACHE_TEXT, SAFE_TEXT, SEED_TEXT } from "../query-texts.js";
import type { Receipt } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import { GenerationStream } from "../stream.js";
import type { Upstreams } from "../upstreams.js";
import { openSpeech, type PreparedSpeech, type SpokenStream } from "./speech-stream.js";

// Input of speech and music (docs/spec/audio.md#speech), as JSON and GraphQL and as a query string.

/** The 35 voices (docs/spec/audio.md#voices). */
export const VOICES: readonly string[] = (
  "alloy echo fable onyx nova shimmer ash ballad coral sage verse rachel domi bella elli charlotte dorothy sarah emily lily matilda " +
  "adam antoni arnold josh sam daniel charlie james fin callum liam george brian bill"
).split(" ");
const DEFAULT_VOICE = "alloy";
/** Characters of a client's text in an error message. */
const QUOTED_CHARS_MAX = 100;

/** Prices are per character as readers count them, independent of encoding. */
export function countCharacters(text: string): number {
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}

const boundedText = z
  .string()
  .refine((text) => countCharacters(text) <= SPEECH_INPUT_CHARS_MAX, `must have at most ${SPEECH_INPUT_CHARS_MAX} characters`)
  .meta({ maxLength: SPEECH_INPUT_CHARS_MAX });
const spokenText = boundedText.refine((text) => text.trim() !== "", "must not be empty").meta({ pattern: "\\S" });
const format = z.enum(SPEECH_FORMATS).nullish();
/** The requested features, or `true` for the usual ones. */
const safe = z
  .union([z.string().meta({ pattern: SAFE_PATTERN }), z.boolean()])
  .transform((value) => (typeof value === "boolean" ? (value ? "true" : null) : value))
  .nullish();
const modelName = z.string().min(1).max(253);
const speed = z.number().min(SPEECH_SPEED_MIN).max(SPEECH_SPEED_MAX);
const musicSeconds = inUnit(z.number().min(MUSIC_SECONDS_MIN).max(MUSIC_SECONDS_MAX), "seconds");
const seed = z.int().min(-1);

export const speechInput = z.looseObject({
  model: modelName.nullish(),
  input: spokenText,
  voice: z.string().min(1).nullish(),
  response_format: format,
  speed: speed.nullish(),
  instructions: boundedText.nullish(),
  /** OpenAI's field: plain audio, or events with audio. The upstream is asked for audio in either case. */
  stream_format: z.enum(["audio", "sse"]).nullish(),
  safe,
});
type SpeechInput = z.output<typeof speechInput>;

/** GraphQL's generateMusic, and GET /audio/{text} with a music model. */
export const musicInput = z.looseObject({
  model: modelName.nullish(),
  prompt: spokenText,
  /** Seconds. */
  duration: musicSeconds.nullish(),
  response_format: format,
  /** -1: random. */
  seed: seed.nullish(),
  safe,
});
export type MusicInput = z.output<typeof musicInput>;

export const audioPath = z.object({ text: spokenText });

/** GET /audio/{text}. Validated again as input of speech or music. */
export const audioQuery = z.strictObject({
  model: modelName.optional().describe(MODEL_TEXT),
  voice: z.string().min(1).optional().describe("One of the voices of the model."),
  duration: queryNumber(musicSeconds).optional().describe("The length of the music in seconds."),
  /** Default 0 on GET routes (docs/spec/generation.md#seeds). */
  seed: queryInteger(seed).default(0).describe(SEED_TEXT),
  response_format: z.enum(SPEECH_FORMATS).optional().describe("The audio format: mp3, opus, aac, flac, wav or pcm."),
  speed: queryNumber(speed).optional().describe("The speed, 0.25 to 4. 1 is normal."),
  instructions: boundedText.optional().describe("Instructions for the delivery. Some models ignore it."),
  safe: z.string().meta({ pattern: SAFE_PATTERN }).optional().describe(SAFE_TEXT),
  "no-cache": queryFlag.default(false).describe(NO_CACHE_TEXT),
});
export type AudioQuery = z.output<typeof audioQuery>;

/** A model with listed voices has only those. Throws BAD_REQUEST listing them. */
export function chooseVoice(model: Model, requested: string | null | undefined): string {
  const voices = model.voices.length > 0 ? model.voices : VOICES;
  if (requested == null) return voices.includes(DEFAULT_VOICE) ? DEFAULT_VOICE : (voices[0] ?? DEFAULT_VOICE);
  if (voices.includes(requested)) return requested;
  const quoted = JSON.stringify(requested.length > QUOTED_CHARS_MAX ? `${requested.slice(0, QUOTED_CHARS_MAX)}…` : requested);
  throw invalidInput(`${model.id} has no voice ${quoted}. Its voices are: ${voices.join(", ")}.`, "voice");
}

export interface SpeechDependencies {
  readonly generations: Generations;
  readonly upstreams: Upstreams;
  readonly totalMs: number;
}

export interface SpeechResult {
  readonly file: MediaFile;
  readonly receipt: Receipt;
}

export interface SpeechOptions {
  readonly notes?: readonly string[];
  /** Called with the whole file: when it fails, nothing is charged. */
  readonly beforeCharge?: ((file: MediaFile) => Promise<void>) | undefined;
}

const READ_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "input",
  "voice",
  "response_format",
  "speed",
  "instructions",
  "stream_format",
  "safe",
]);

export class Speech {
  constructor(private readonly deps: SpeechDependencies) {}

  /** See SpokenStream. Throws nothing: a refusal rejects `opened`. */
  stream(ctx: RequestContext, input: SpeechInput): SpokenStream {
    const { generations, totalMs } = this.deps;
    const generationId = takeGenerationId(ctx);
    let admitted: { readonly prepared: PreparedSpeech; readonly words: Words };
    const stream = new GenerationStream({
      admit: async () => {
        const prepared = this.prepare(ctx, input, generationId);
        const { words, safety } = await generations.admit(ctx, prepared.plan, prepared.work);
        admitted = { prepared, words };
        return generations.begin(ctx, { ...prepared.plan, safety }, { isStreamed: true });
      },
      open: (run) => {
        const { prepared, words } = admitted;
        const call = (candidate: Candidate) => prepared.work.call(candidate, run.cancellation.signal, words);
        return openSpeech({ run, plan: prepared.plan, call, withhold: withheldOf(input), totalMs });
      },
    });
    const { admitted: isAdmitted, opened, events } = stream;
    return { generationId, admitted: isAdmitted, opened, chunks: events, receipt: () => stream.receipt() };
  }

  /** The whole audio; resolves when the charge is committed. */
  async create(ctx: RequestContext, input: SpeechInput, { notes = [], beforeCharge }: SpeechOptions = {}): Promise<SpeechResult> {
    const { plan, work } = this.prepare(ctx, input);
    const { answer, receipt } = await this.deps.generations.run(ctx, plan, {
      ...work,
      call: async (candidate, signal, words) => readWhole(await work.call(candidate, signal, words)),
      meter: async (file) => {
        await beforeCharge?.(file);
        return { quantities: plan.expected, source: "estimated" };
      },
      warnings: ({ warnings }) => [...warnings, ...notes],
    });
    return { file: { bytes: answer.bytes, contentType: answer.contentType }, receipt };
  }

  private prepare(ctx: RequestContext, input: SpeechInput, generationId?: string): PreparedSpeech {
    const { model: name, input: text, voice: requested, response_format: format, speed, instructions, safe } = input;
    const extra = withoutFields(input, READ_FIELDS);
    const { generations, upstreams } = this.deps;
    const expected = { ...NO_USAGE, characters: countCharacters(text) };
    const plan = generations.plan(ctx, "speech", name, extra, () => expected, {}, generationId);
    const voice = chooseVoice(plan.model, requested);
    return {
      plan,
      work: {
        words: { texts: [text, instructions ?? ""], extra },
        safe,
        call: (candidate, signal, { texts: [spoken = "", manner = ""], extra }) =>
          upstreams.serving(ctx, candidate, "speech").stream({
            upstreamModel: candidate.route.upstreamModel,
            input: spoken,
            voice,
            format: format ?? "mp3",
            speed: speed ?? null,
            instructions: manner === "" ? null : manner,
            extra,
            signal,
          }),
      },
    };
  }
}

const SAMPLE_BYTES = 2;

/**
 * The last byte waits for the charge. With events, the event after the audio waits instead, and only half a sample is withheld, so that
 * events can be played as they arrive.
 */
function withheldOf({ stream_format, response_format }: SpeechInput): (bytes: number) => number {
  if (stream_format !== "sse") return () => 1;
  return response_format === "pcm" ? (bytes) => bytes % SAMPLE_BYTES : () => 0;
}

async function readWhole({ contentType, chunks, warnings }: SpeechStream): Promise<MediaFile & Pick<SpeechStream, "warnings">> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.byteLength;
    if (size > UPSTREAM_BODY_BYTES_MAX) {
      throw new ProviderError("invalid-response", `The upstream's answer is larger than ${UPSTREAM_BODY_BYTES_MAX} bytes.`);
    }
  }
  if (size === 0) throw new ProviderError("invalid-response", "The upstream answered no sound.");
  return { bytes: Buffer.concat(parts, size), contentType, warnings };
}
