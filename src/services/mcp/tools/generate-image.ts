/** `generate_image`: images from a prompt, with or without input images. */
import * as z from "zod";
import type { Images } from "../../generation/media/images.js";
import { imageGenerationInput } from "../../generation/media/images-input.js";
import { parseInput } from "../../requests/input.js";
import { MCP_INLINE_BYTES_MAX, MCP_REVISED_PROMPT_CHARS_MAX } from "../limits.js";
import { inlined, linked } from "./delivery.js";
import { DELIVERIES, type GatewayTool, model, optional, toReceiptJson } from "./tool.js";

const { shape } = imageGenerationInput;

const input = z.strictObject({
  prompt: shape.prompt.describe("A description of the image."),
  model: model(shape.model),
  size: optional(shape.size, "WIDTHxHEIGHT in pixels."),
  n: optional(shape.n, "The number of images."),
  quality: optional(shape.quality, "The quality."),
  seed: optional(shape.seed, "The random seed, for repeatable images where the model supports it. -1 draws a random one."),
  negative_prompt: optional(shape.negative_prompt, "A description of unwanted content."),
  image: z.array(z.string().min(1)).optional().describe("URLs of reference images."),
  transparent: optional(shape.transparent, "Whether the background is transparent."),
  output_format: optional(shape.output_format, "The format of the file."),
  enhance: optional(shape.enhance, "Whether a text model improves the prompt first."),
  safe: optional(shape.safe, "Safety checks of the prompt: true for the default ones, or a comma-separated list."),
  delivery: z.enum(DELIVERIES).optional().describe("inline: in the result, when it fits; url: as a link that works for 14 days."),
});

export function createImageTool(images: Pick<Images, "generate">): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_image",
    title: "Generate an image",
    description: "Generates images from a prompt.",
    input,
    isReadOnly: false,
    call: async (ctx, { delivery, ...options }) => {
      const response_format = delivery === "url" ? "url" : "b64_json";
      const request = parseInput(imageGenerationInput, { ...options, response_format });
      const { images: made, receipt } = await images.generate(ctx, request, MCP_INLINE_BYTES_MAX);
      const revised = made.flatMap(({ revisedPrompt }) => (revisedPrompt === null ? [] : shorten(revisedPrompt)));
      const about = { ...toReceiptJson(receipt), ...(revised.length > 0 && { revised_prompts: revised }) };
      const urls = made.flatMap(({ url }) => url ?? []);
      if (urls.length > 0) return linked(urls, about);
      const files = made.map(({ file: { bytes, contentType } }) => ({ bytes, contentType }));
      return inlined("image", files, about);
    },
  };
}

/** Cuts a prompt, and removes characters that JSON escapes, so that each takes at most three bytes. */
function shorten(prompt: string): string {
  return prompt
    .slice(0, MCP_REVISED_PROMPT_CHARS_MAX)
    .replace(/\p{Cc}/gu, " ")
    .toWellFormed();
}
