/** Input of videos (docs/spec/video.md). The query is that of GET /image (images-input.ts), as the two routes are one. */
import * as z from "zod";
import { inUnit } from "../../../lib/issue-words.js";
import {
  IMAGE_INPUTS_MAX,
  IMAGE_SIDE_DEFAULT,
  IMAGE_SIDE_MAX,
  IMAGE_SIDE_MIN,
  VIDEO_SECONDS_MAX,
  VIDEO_SECONDS_MIN,
} from "../../../limits.js";
import { nonBlankText, storableText } from "../../requests/input.js";

export const VIDEO_ASPECT_RATIOS = ["16:9", "9:16"] as const;
export type VideoAspectRatio = (typeof VIDEO_ASPECT_RATIOS)[number];

/** Allowed difference of a stated size from the stated aspect ratio: encoders round sides to multiples of 16. */
const RATIO_TOLERANCE = 0.05;
const SEED_MAX = Number.MAX_SAFE_INTEGER;

export const imageSide = inUnit(z.int().min(IMAGE_SIDE_MIN).max(IMAGE_SIDE_MAX), "pixels");
export const videoSeconds = inUnit(z.int().min(VIDEO_SECONDS_MIN).max(VIDEO_SECONDS_MAX), "seconds");
export const videoImageUrl = z.string().regex(/^https?:\/\//i, "must be an http or https URL");

/** Field names are those of the query, so that errors name the same field on both faces. */
export const videoInput = z
  .strictObject({
    prompt: nonBlankText,
    model: z.string().min(1).max(253).nullish(),
    width: imageSide.nullish(),
    height: imageSide.nullish(),
    duration: videoSeconds.nullish(),
    aspectRatio: z.enum(VIDEO_ASPECT_RATIOS).nullish(),
    audio: z.boolean().nullish(),
    seed: z.int().min(-1).max(SEED_MAX).nullish(),
    negative_prompt: storableText.nullish(),
    image: z.array(videoImageUrl).max(IMAGE_INPUTS_MAX).nullish(),
    safe: z.string().nullish(),
    enhance: z.boolean().nullish(),
  })
  .superRefine(({ width, height, aspectRatio }, ctx) => {
    const size = toSize(width, height);
    if (!size || !aspectRatio) return;
    const wanted = aspectRatio === "16:9" ? 16 / 9 : 9 / 16;
    if (Math.abs(size.width / size.height / wanted - 1) <= RATIO_TOLERANCE) return;
    ctx.addIssue({
      code: "custom",
      path: ["aspectRatio"],
      message: `${size.width}x${size.height} is not ${aspectRatio}: leave one of them out`,
    });
  });
export type VideoInput = z.output<typeof videoInput>;

/** `image` splits on `|`, else on `,` (docs/spec/images.md#get-image). */
export function splitImageUrls(text: string): string[] {
  return text
    .split(text.includes("|") ? "|" : ",")
    .map((url) => url.trim())
    .filter((url) => url !== "");
}

/** Null: the upstream's default. A missing side is 1024 (docs/spec/video.md#fields). */
export function toSize(width: number | null | undefined, height: number | null | undefined): { width: number; height: number } | null {
  if (width == null && height == null) return null;
  return { width: width ?? IMAGE_SIDE_DEFAULT, height: height ?? IMAGE_SIDE_DEFAULT };
}
