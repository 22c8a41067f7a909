/** Input of images (docs/spec/images.md): OpenAI's bodies, the same as a form, and the query of GET /image. */

import * as z from "zod";
import {
  IMAGE_INPUTS_MAX,
  IMAGE_PROMPT_CHARS_MAX,
  IMAGE_SIDE_DEFAULT,
  IMAGE_SIDE_MAX,
  IMAGE_SIDE_MIN,
  IMAGES_PER_REQUEST_MAX,
} from "../../../limits.js";
import { nonBlankText } from "../../requests/input.js";
import { formFlag, formInteger, queryFlag, queryInteger } from "../../requests/query-values.js";
import { SAFE_PATTERN, safeInput } from "../../safety/features.js";
import { MODEL_TEXT, NO_CACHE_TEXT, SAFE_TEXT, SEED_TEXT } from "../query-texts.js";
import { imageSide, splitImageUrls, VIDEO_ASPECT_RATIOS, videoSeconds } from "./videos-input.js";

// Qualities of an image (docs/spec/images.md#quality). OpenAI has two more on `/v1`: `standard`, its older word for medium, as `hd` is for
// high, and `auto`, the same as an absent one, so that no upstream chooses a more expensive quality than is held.

const IMAGE_QUALITIES = ["low", "medium", "high", "hd"] as const;
/** Bodies of `/v1`, and GraphQL, which takes the same (docs/spec/images.md#quality). */
export const BODY_IMAGE_QUALITIES = [...IMAGE_QUALITIES, "standard", "auto"] as const;

export const IMAGE_FORMATS = ["png", "jpeg", "webp"] as const;
export const IMAGE_RESPONSE_FORMATS = ["b64_json", "url"] as const;

const SIZE = /^(\d{1,4})x(\d{1,4})$/;
const SIZE_MESSAGE = `must be WIDTHxHEIGHT, each from ${IMAGE_SIDE_MIN} to ${IMAGE_SIDE_MAX} pixels, or auto`;
/** OpenAI's word for an absent size or quality (docs/spec/images.md#size). */
const AUTO = "auto";
export const IMAGE_SIZE_DEFAULT = `${IMAGE_SIDE_DEFAULT}x${IMAGE_SIDE_DEFAULT}`;

/** Sides of 64 to 4096, for the description. */
const SIDE_PATTERN = "(?:6[4-9]|[7-9]\\d|[1-9]\\d{2}|[1-3]\\d{3}|40[0-8]\\d|409[0-6])";
export const SIDES_PATTERN = `${SIDE_PATTERN}x${SIDE_PATTERN}`;
const prompt = nonBlankText.max(IMAGE_PROMPT_CHARS_MAX);
const size = z
  .string()
  .regex(/^(?:auto|\d{1,4}x\d{1,4})$/, SIZE_MESSAGE)
  .refine((text) => text === AUTO || readSize(text) !== null, SIZE_MESSAGE)
  .meta({ pattern: `^(?:auto|${SIDES_PATTERN})$`, examples: ["1024x1024"] });
const seed = z.int().min(-1);
const imageUrl = z.string().min(1).meta({ pattern: "^(?:https?://|data:)", description: "An https or data: URL." });
const imageUrlList = z.array(imageUrl).max(IMAGE_INPUTS_MAX);
const imageUrlsOf = (list: typeof imageUrlList) =>
  z.union([imageUrl, list], "expected a URL or an array of URLs").transform((urls) => (typeof urls === "string" ? [urls] : urls));
const imageUrls = imageUrlsOf(imageUrlList);
/** Unspecified: images are answered whole, so a request for a stream is refused. */
const notStreamed = z.literal(false, "must be left out: images are not streamed");

const options = {
  prompt,
  model: z.string().min(1).max(253).nullish(),
  n: z.int().min(1).max(IMAGES_PER_REQUEST_MAX).nullish(),
  response_format: z.enum(IMAGE_RESPONSE_FORMATS).nullish(),
  quality: z.enum(BODY_IMAGE_QUALITIES).nullish(),
  seed: seed.nullish(),
  nologo: z.boolean().nullish(),
  enhance: z.boolean().nullish(),
  safe: safeInput,
  negative_prompt: z.string().max(IMAGE_PROMPT_CHARS_MAX).nullish(),
  transparent: z.boolean().nullish(),
  background: z.string().nullish(),
  reasoning: z.boolean().nullish(),
  output_format: z.enum(IMAGE_FORMATS).nullish(),
  stream: notStreamed.nullish(),
} as const;

interface Look {
  readonly transparent?: boolean | null | undefined;
  readonly background?: string | null | undefined;
  readonly output_format?: string | null | undefined;
}

const mustShowThrough = (look: Look) => !(isTransparent(look) && look.output_format === "jpeg");
const jpegIsOpaque = { message: "JPEG cannot be transparent: ask for png or webp", path: ["output_format"] };

export const imageGenerationInput = z
  .looseObject({
    ...options,
    size: size.nullish(),
    /** Unspecified: reference images, as on GET /image. */
    image: imageUrls.nullish(),
  })
  .refine(mustShowThrough, jpegIsOpaque);

const editFields = {
  ...options,
  /** Unspecified: when absent the upstream decides, which usually keeps the image's own size. */
  size: size.nullish(),
  mask: imageUrl.nullish(),
} as const;

/** OpenAI's form of an image in JSON. Unspecified: files that are stored with the vendor are refused. */
const imageReference = z
  .object({ file_id: z.null("must be left out: send the image as image_url, an https or data: URL").optional(), image_url: imageUrl })
  .meta({ id: "ImageReference" });

/** The fields of the JSON body. */
export const imageEditBody = z.looseObject({
  ...editFields,
  image: imageUrlsOf(imageUrlList.min(1)).nullish(),
  images: z.array(imageReference).min(1).max(IMAGE_INPUTS_MAX).nullish().describe("OpenAI's form of `image`."),
  mask: z.union([imageUrl, imageReference], "expected a URL, or an object with image_url").nullish(),
});

export const imageEditInput = imageEditBody
  .refine(mustShowThrough, jpegIsOpaque)
  .transform(({ images, image, mask, ...others }, issues) => {
    const named = image ?? images?.map(({ image_url }) => image_url);
    const refuse = (path: string, message: string) => issues.addIssue({ code: "custom", path: [path], message });
    if (image && images) refuse("images", "may not be sent beside image");
    if (!named) refuse("image", "is required");
    return { ...others, image: named ?? [], mask: typeof mask === "object" ? (mask?.image_url ?? null) : mask };
  });

/** The same as a form, whose fields are texts; images may be files. */
export const imageEditForm = z
  .looseObject({
    ...editFields,
    n: formInteger(z.int().min(1).max(IMAGES_PER_REQUEST_MAX)),
    seed: formInteger(seed),
    nologo: formFlag(z.boolean()),
    enhance: formFlag(z.boolean()),
    transparent: formFlag(z.boolean()),
    reasoning: formFlag(z.boolean()),
    stream: formFlag(notStreamed),
    image: imageUrls.default([]),
  })
  .refine(mustShowThrough, jpegIsOpaque);

const PROMPTLESS = "must be left out: a variation has no prompt, POST /v1/images/edits takes one";

/** OpenAI's variations: one image, and no prompt. */
const variationFields = {
  model: options.model,
  n: options.n,
  size: size.nullish(),
  response_format: options.response_format,
  seed: options.seed,
  output_format: options.output_format,
  safe: safeInput,
  stream: options.stream,
  prompt: z.null(PROMPTLESS).optional(),
  mask: z.null("must be left out: a variation has no mask, POST /v1/images/edits takes one").optional(),
} as const;

export const imageVariationInput = z.looseObject({ ...variationFields, image: imageUrl });

/** The same as a form, whose image may be a file. */
export const imageVariationForm = z.looseObject({
  ...variationFields,
  n: formInteger(z.int().min(1).max(IMAGES_PER_REQUEST_MAX)),
  seed: formInteger(seed),
  stream: formFlag(notStreamed),
  image: imageUrl.optional(),
});
export type ImageVariationInput = z.output<typeof imageVariationForm>;

export type ImageGenerationInput = z.output<typeof imageGenerationInput>;
/** A job makes one image, fetched as its result. */
export type ImageJobInput = ImageGenerationInput & { readonly n?: never; readonly response_format?: never };
export type ImageEditInput = z.output<typeof imageEditForm>;

const side = queryInteger(imageSide);

/** GET /image/{prompt}, whose model may make images or videos: parameters of both. */
export const imageQuery = z.strictObject({
  model: z.string().min(1).max(253).optional().describe(MODEL_TEXT),
  width: side.optional().describe("The width in pixels, 64 to 4096."),
  height: side.optional().describe("The height in pixels, 64 to 4096."),
  /** Default 0 on GET routes (docs/spec/generation.md#seeds). */
  seed: queryInteger(seed).default(0).describe(SEED_TEXT),
  enhance: queryFlag.default(false).describe("Lets a text model improve the prompt first."),
  negative_prompt: z.string().optional().describe("A description of unwanted content. Some models ignore it."),
  safe: z.string().meta({ pattern: SAFE_PATTERN }).optional().describe(SAFE_TEXT),
  quality: z.enum(IMAGE_QUALITIES).optional().describe("The quality: low, medium, high or hd."),
  image: z
    .string()
    .transform(splitImageUrls)
    .refine((urls) => urls.length <= IMAGE_INPUTS_MAX, `must have at most ${IMAGE_INPUTS_MAX} URLs`)
    .refine((urls) => urls.every((url) => /^https?:\/\//i.test(url)), "must be http or https URLs, separated by | or by commas")
    .meta({ pattern: "^https?://[^|,\\s]+(?:,https?://[^|,\\s]+)*$" })
    .optional()
    .describe("URLs of reference images, separated by `|` or `,`."),
  transparent: queryFlag.default(false).describe("Generates an image with a transparent background."),
  reasoning: queryFlag.optional().describe("Lets the model reason about text and layout first."),
  nologo: queryFlag.default(false).describe("Accepted for compatibility. Images never have a logo."),
  "no-cache": queryFlag.default(false).describe(NO_CACHE_TEXT),
  duration: queryInteger(videoSeconds).optional().describe("The length of a video in seconds, 1 to 10."),
  aspectRatio: z.enum(VIDEO_ASPECT_RATIOS).optional().describe("The aspect ratio: 16:9 or 9:16."),
  audio: queryFlag.optional().describe("Generates the video with sound."),
});
export type ImageQuery = z.output<typeof imageQuery>;

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Null for `auto`. */
export function unlessAuto(stated: string | null | undefined): string | null {
  return stated == null || stated === AUTO ? null : stated;
}

/** `1024x768`; null for malformed text, and for sides out of bounds. */
export function readSize(text: string): ImageSize | null {
  const [, width, height] = SIZE.exec(text) ?? [];
  const sides = { width: Number(width), height: Number(height) };
  const isGood = Object.values(sides).every((pixels) => pixels >= IMAGE_SIDE_MIN && pixels <= IMAGE_SIDE_MAX);
  return isGood ? sides : null;
}

export function isTransparent({ transparent, background }: Look): boolean {
  return transparent === true || background === "transparent";
}
