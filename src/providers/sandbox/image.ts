/** The sandbox's image model: pictures drawn from prompt and seed (docs/sandbox-models.md). */
import { ownValue } from "../../lib/own-values.js";
import { countTextTokens } from "../../lib/tokenizer.js";
import type { ImageAnswer, ImageCall, ImageProvider } from "../media.js";
import { SANDBOX_IMAGE_SIDE_MAX, SANDBOX_IMAGE_SIDE_MIN, SANDBOX_IMAGES_MAX } from "./limits.js";
import { begin, promptOf, reportTokens, runPaced, type SandboxMedia } from "./media/calls.js";
import { refuse } from "./refusal.js";

/** Output and input pictures count one token for each square of so many pixels a side. */
const TOKEN_SIDE = 32;
/** Of the lossy formats, by the caller's word for it. */
const QUALITIES: Readonly<Record<string, number>> = { low: 55, medium: 82, standard: 82, high: 92, hd: 96 };
const QUALITY_DEFAULT = 82;

export function createSandboxImageProvider(media: SandboxMedia): ImageProvider {
  return { generate: (call) => generate(media, call) };
}

async function generate(media: SandboxMedia, call: ImageCall): Promise<ImageAnswer> {
  const directives = await begin(call.prompt, "prompt", call.signal, media.timeouts);
  checkBounds(call);
  const warnings = warningsOf(call);
  const format = call.format ?? (call.isTransparent ? "png" : "jpeg");
  const { images } = await runPaced<"image">(
    media,
    {
      kind: "image",
      prompt: promptOf(directives),
      seed: call.seed ?? 0,
      size: call.size,
      count: call.count,
      format,
      quality: ownValue(QUALITIES, call.quality ?? "") ?? QUALITY_DEFAULT,
      isTransparent: call.isTransparent && format !== "jpeg",
      sources: call.images.map(({ bytes }) => bytes),
      mask: call.mask?.bytes ?? null,
    },
    directives,
    call.signal,
  );
  const tokens = images.map(({ width, height }) => Math.ceil(width / TOKEN_SIDE) * Math.ceil(height / TOKEN_SIDE));
  return {
    images: images.map(({ bytes }) => ({ bytes, contentType: `image/${format}`, revisedPrompt: null })),
    usage: reportTokens(directives, {
      inputText: countTextTokens(call.prompt),
      inputImage: call.images.length * (tokens[0] ?? 0),
      outputImage: tokens.reduce((sum, each) => sum + each, 0),
    }),
    warnings,
  };
}

function checkBounds({ size, count, mask, images }: ImageCall): void {
  if (count < 1 || count > SANDBOX_IMAGES_MAX) throw refuse(`The sandbox draws 1 to ${SANDBOX_IMAGES_MAX} pictures.`, "n");
  if (mask !== null && images.length === 0) throw refuse("A mask needs a picture to edit.", "mask");
  if (size === null) return;
  const isWithin = (side: number) => Number.isInteger(side) && side >= SANDBOX_IMAGE_SIDE_MIN && side <= SANDBOX_IMAGE_SIDE_MAX;
  if (!isWithin(size.width) || !isWithin(size.height)) {
    throw refuse(`The sandbox draws pictures of ${SANDBOX_IMAGE_SIDE_MIN} to ${SANDBOX_IMAGE_SIDE_MAX} pixels a side.`, "size");
  }
}

function warningsOf(call: ImageCall): readonly string[] {
  const warnings: string[] = [];
  if (call.negativePrompt !== null) warnings.push("The sandbox does not read negative_prompt.");
  if (call.reasoning === true) warnings.push("The sandbox does not reason about pictures.");
  if (call.quality !== null && ownValue(QUALITIES, call.quality) === undefined)
    warnings.push("The sandbox knows the qualities low, medium, high and hd.");
  if (call.isTransparent && call.format === "jpeg") warnings.push("JPEG has no transparency.");
  return warnings;
}
