/** The one form in which every way to ask for pictures reaches the service. */
import { IMAGE_SIDE_DEFAULT } from "../../../limits.js";
import type { InputFile } from "../../../providers/media.js";
import { toSafeText } from "../../safety/features.js";
import {
  IMAGE_SIZE_DEFAULT,
  type ImageEditInput,
  type ImageGenerationInput,
  type ImageQuery,
  type ImageSize,
  isTransparent,
  readSize,
  unlessAuto,
} from "./images-input.js";

/** Pictures that the caller brings along: references, or what is to be edited. */
export interface ImageFiles {
  readonly images: readonly InputFile[];
  readonly mask: InputFile | null;
}

export interface ImageRequest {
  readonly model: string | null;
  readonly prompt: string;
  readonly size: ImageSize | null;
  readonly count: number;
  /** -1: a random one; null: none is stated. */
  readonly seed: number | null;
  readonly negativePrompt: string | null;
  readonly quality: string | null;
  readonly isTransparent: boolean;
  readonly format: "jpeg" | "png" | "webp" | null;
  readonly reasoning: boolean | null;
  /** Rewrite the prompt with the default text model first. */
  readonly enhance: boolean;
  /** As admission takes it. */
  readonly safe: string | null;
  /** URLs, in order; files come after them. */
  readonly imageUrls: readonly string[];
  readonly maskUrl: string | null;
  readonly files: ImageFiles;
  /** Answered as links instead of bytes. */
  readonly isPublished: boolean;
  readonly extra: Readonly<Record<string, unknown>>;
  /** What was stated and has no effect on a picture. */
  readonly ignored: readonly string[];
}

export const NO_FILES: ImageFiles = { images: [], mask: null };

/** A generation asks for 1024x1024 unless it says otherwise (docs/spec/images.md#generations). */
export function fromGenerationInput(input: ImageGenerationInput): ImageRequest {
  return fromBody({ ...input, size: unlessAuto(input.size) ?? IMAGE_SIZE_DEFAULT });
}

export function fromEditInput({ mask, ...input }: ImageEditInput, files: ImageFiles): ImageRequest {
  return { ...fromBody(input as Omit<ImageEditInput, "mask"> & ImageGenerationInput), maskUrl: mask ?? null, files };
}

function fromBody(input: ImageGenerationInput): ImageRequest {
  const { prompt, model, n, size, response_format, quality, seed, nologo, enhance, safe, image, ...others } = input;
  const { negative_prompt, transparent, background, reasoning, output_format, stream, ...extra } = others;
  const sides = unlessAuto(size);
  return {
    model: model ?? null,
    prompt,
    size: sides === null ? null : readSize(sides),
    count: n ?? 1,
    seed: seed ?? null,
    negativePrompt: negative_prompt || null,
    quality: unlessAuto(quality),
    isTransparent: isTransparent({ transparent, background }),
    format: output_format ?? null,
    reasoning: reasoning ?? null,
    enhance: enhance ?? false,
    safe: toSafeText(safe),
    imageUrls: image ?? [],
    maskUrl: null,
    files: NO_FILES,
    isPublished: response_format === "url",
    extra: background && background !== "transparent" ? { ...extra, background } : extra,
    ignored: [],
  };
}

/** GET /image answers JPEG, and PNG where it is to be transparent (docs/spec/images.md#get-image). */
export function fromQuery(prompt: string, query: ImageQuery): ImageRequest {
  const ofVideos = (["duration", "aspectRatio", "audio"] as const).filter((name) => query[name]);
  return {
    model: query.model ?? null,
    prompt,
    size: { width: query.width ?? IMAGE_SIDE_DEFAULT, height: query.height ?? IMAGE_SIDE_DEFAULT },
    count: 1,
    seed: query.seed,
    negativePrompt: query.negative_prompt || null,
    quality: query.quality ?? null,
    isTransparent: query.transparent,
    format: query.transparent ? "png" : "jpeg",
    reasoning: query.reasoning ?? null,
    enhance: query.enhance,
    safe: toSafeText(query.safe),
    imageUrls: query.image ?? [],
    maskUrl: null,
    files: NO_FILES,
    isPublished: false,
    extra: {},
    ignored: ofVideos,
  };
}
