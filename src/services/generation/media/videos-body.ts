/** OpenAI's `POST /v1/videos`: its fields, and their conversion. */
import * as z from "zod";
import { withoutFields } from "../../../lib/own-values.js";
import { VIDEO_SECONDS_MAX, VIDEO_SECONDS_MIN } from "../../../limits.js";
import { nonBlankText, parseInput } from "../../requests/input.js";
import { formFlag, formInteger } from "../../requests/query-values.js";
import { SAFE_PATTERN } from "../../safety/features.js";
import { readSize, SIDES_PATTERN } from "./images-input.js";
import { type VideoInput, videoImageUrl, videoInput, videoSeconds } from "./videos-input.js";

const SECONDS_MESSAGE = `must be a whole number from ${VIDEO_SECONDS_MIN} to ${VIDEO_SECONDS_MAX} seconds`;
const { aspectRatio, audio, seed, negative_prompt, enhance } = videoInput.shape;

/** OpenAI writes seconds as text. Other fields are passed on to the upstream unchanged. */
const body = z.looseObject({
  prompt: nonBlankText,
  model: z.string().min(1).max(253).nullish(),
  seconds: z
    .union(
      [
        videoSeconds,
        z
          .string()
          .regex(/^(?:[1-9]|10)$/, SECONDS_MESSAGE)
          .transform(Number),
      ],
      SECONDS_MESSAGE,
    )
    .nullish(),
  size: z
    .string()
    .refine((text) => readSize(text) !== null, "must be WIDTHxHEIGHT in pixels")
    .meta({ pattern: `^${SIDES_PATTERN}$` })
    .nullish(),
  /** A URL; files are beside the form. */
  input_reference: z.looseObject({ image_url: videoImageUrl }).nullish(),
  ...{ aspectRatio, audio, seed, negative_prompt, enhance },
  safe: z.union([z.string().meta({ pattern: SAFE_PATTERN }), z.boolean()]).nullish(),
});
export type VideoBody = z.output<typeof body>;
export const videoBody = body;

export const videoForm = body.extend({
  audio: formFlag(z.boolean()),
  enhance: formFlag(z.boolean()),
  seed: formInteger(seed.unwrap().unwrap()),
});

const OWN_FIELDS = ["aspectRatio", "audio", "seed", "negative_prompt", "safe", "enhance"] as const;
const READ_FIELDS: ReadonlySet<string> = new Set([...OWN_FIELDS, "prompt", "model", "seconds", "size", "input_reference"]);

export interface VideoBodyRequest {
  readonly input: VideoInput;
  readonly extra: Readonly<Record<string, unknown>>;
}

export function fromVideoBody(body: VideoBody): VideoBodyRequest {
  const { prompt, model, seconds, size, input_reference: reference } = body;
  const own = Object.fromEntries(OWN_FIELDS.map((name) => [name, body[name]]));
  const extra = withoutFields(body, READ_FIELDS);
  const sides = typeof size === "string" ? readSize(size) : null;
  const safe = typeof own.safe === "boolean" ? (own.safe ? "true" : null) : own.safe;
  const image = reference ? [reference.image_url] : undefined;
  return { input: parseInput(videoInput, { ...own, ...sides, safe, prompt, model, duration: seconds, image }), extra };
}
