/** OpenAI's `POST /v1/videos`: its fields in its words, and what becomes of them. */
import * as z from "zod";
import { VIDEO_SECONDS_MAX, VIDEO_SECONDS_MIN } from "../../limits.js";
import { parseInput } from "../input.js";
import { readSize } from "./images-input.js";
import { type VideoInput, videoInput } from "./videos-input.js";

const SECONDS_MESSAGE = `must be a whole number of seconds from ${VIDEO_SECONDS_MIN} to ${VIDEO_SECONDS_MAX}`;

/** OpenAI writes seconds as text. What is not named here is one of GET /video's fields, or reaches the upstream as it is. */
const body = z.looseObject({
  prompt: z.string(),
  model: z.string().nullish(),
  seconds: z
    .union(
      [
        z.int(),
        z
          .string()
          .regex(/^\d{1,2}$/)
          .transform(Number),
      ],
      SECONDS_MESSAGE,
    )
    .refine((seconds) => seconds >= VIDEO_SECONDS_MIN && seconds <= VIDEO_SECONDS_MAX, SECONDS_MESSAGE)
    .nullish(),
  size: z
    .string()
    .refine((text) => readSize(text) !== null, "must be WIDTHxHEIGHT in pixels")
    .nullish(),
  /** An address; as a file it comes beside the form. */
  input_reference: z.looseObject({ image_url: z.string() }).nullish(),
});
export type VideoBody = z.output<typeof body>;
export const videoBody = body;

const flag = z.preprocess((value) => (value === "true" ? true : value === "false" ? false : value), z.boolean().nullish());
const wholeNumber = z.preprocess(
  (value) => (typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value),
  z.int().nullish(),
);

/** The same as a form, whose fields are texts. */
export const videoForm = body.extend({ audio: flag, enhance: flag, seed: wholeNumber });

const OWN_FIELDS = ["aspectRatio", "audio", "seed", "negative_prompt", "safe", "enhance"] as const;

export interface VideoBodyRequest {
  readonly input: VideoInput;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Throws BAD_REQUEST. */
export function fromVideoBody({ prompt, model, seconds, size, input_reference: reference, ...others }: VideoBody): VideoBodyRequest {
  const own = Object.fromEntries(OWN_FIELDS.map((name) => [name, others[name]]));
  const extra = Object.fromEntries(Object.entries(others).filter(([name]) => !OWN_FIELDS.some((known) => known === name)));
  const sides = typeof size === "string" ? readSize(size) : null;
  const safe = typeof own.safe === "boolean" ? (own.safe ? "true" : null) : own.safe;
  const image = reference ? [reference.image_url] : undefined;
  return { input: parseInput(videoInput, { ...own, ...sides, safe, prompt, model, duration: seconds, image }), extra };
}
