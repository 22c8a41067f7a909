/** What speech and music are asked with (docs/spec/audio.md#speech): as JSON and GraphQL state it, and as the strings of a query. */
import * as z from "zod";
import { invalidInput } from "../../../errors.js";
import { inUnit } from "../../../lib/issue-words.js";
import { MUSIC_SECONDS_MAX, MUSIC_SECONDS_MIN, SPEECH_INPUT_CHARS_MAX, SPEECH_SPEED_MAX, SPEECH_SPEED_MIN } from "../../../limits.js";
import { SPEECH_FORMATS } from "../../../providers/media.js";
import type { Model } from "../../catalog/model.js";
import { queryFlag, queryInteger, queryNumber } from "../../requests/query-values.js";
import { SAFE_PATTERN } from "../../safety/features.js";

/** The 35 voices (docs/spec/audio.md#voices). */
export const VOICES: readonly string[] = (
  "alloy echo fable onyx nova shimmer ash ballad coral sage verse rachel domi bella elli charlotte dorothy sarah emily lily matilda " +
  "adam antoni arnold josh sam daniel charlie james fin callum liam george brian bill"
).split(" ");
const DEFAULT_VOICE = "alloy";
/** How much of a caller's own words an error message repeats. */
const QUOTED_CHARS_MAX = 100;

/** Prices are per character: what a reader would count, not how it is encoded. */
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
/** The features that are asked for, or all of the usual ones. */
const safe = z
  .union([z.string().meta({ pattern: SAFE_PATTERN }), z.boolean()])
  .transform((value) => (typeof value === "boolean" ? (value ? "true" : null) : value))
  .nullish();
const modelName = z.string().min(1).max(253);
const speed = z.number().min(SPEECH_SPEED_MIN).max(SPEECH_SPEED_MAX);
const musicSeconds = inUnit(z.number().min(MUSIC_SECONDS_MIN).max(MUSIC_SECONDS_MAX), "seconds");
const seed = z.int().min(-1);

/** POST /v1/audio/speech: what is not named here travels on to the upstream untouched. */
export const speechInput = z.looseObject({
  model: modelName.nullish(),
  input: spokenText,
  voice: z.string().min(1).nullish(),
  response_format: format,
  speed: speed.nullish(),
  instructions: boundedText.nullish(),
  /** OpenAI's: the sound itself, or events that carry it. Whichever it is, an upstream is asked for the sound. */
  stream_format: z.enum(["audio", "sse"]).nullish(),
  safe,
});
export type SpeechInput = z.output<typeof speechInput>;

/** GraphQL's generateMusic, and GET /audio/{text} with a music model. */
export const musicInput = z.looseObject({
  model: modelName.nullish(),
  prompt: spokenText,
  /** Seconds. */
  duration: musicSeconds.nullish(),
  response_format: format,
  /** -1: a random one. */
  seed: seed.nullish(),
  safe,
});
export type MusicInput = z.output<typeof musicInput>;

/** What GET /audio/{text} has in its path. */
export const audioPath = z.object({ text: spokenText });

/** GET /audio/{text}. What it holds is checked again as the input of whichever it turns out to be. */
export const audioQuery = z.strictObject({
  model: modelName.optional(),
  voice: z.string().min(1).optional(),
  duration: queryNumber(musicSeconds).optional(),
  /** Omitted is 0 on the GET routes (docs/spec/generation.md#seeds). */
  seed: queryInteger(seed).default(0),
  response_format: z.enum(SPEECH_FORMATS).optional(),
  speed: queryNumber(speed).optional(),
  instructions: boundedText.optional(),
  safe: z.string().meta({ pattern: SAFE_PATTERN }).optional(),
  "no-cache": queryFlag.default(false),
});
export type AudioQuery = z.output<typeof audioQuery>;

/** A model that names its voices has those and no others. Throws BAD_REQUEST that lists them. */
export function chooseVoice(model: Model, asked: string | null | undefined): string {
  const voices = model.voices.length > 0 ? model.voices : VOICES;
  if (asked == null) return voices.includes(DEFAULT_VOICE) ? DEFAULT_VOICE : (voices[0] ?? DEFAULT_VOICE);
  if (voices.includes(asked)) return asked;
  const quoted = JSON.stringify(asked.length > QUOTED_CHARS_MAX ? `${asked.slice(0, QUOTED_CHARS_MAX)}…` : asked);
  throw invalidInput(`${model.id} has no voice ${quoted}. Its voices are: ${voices.join(", ")}.`, "voice");
}
