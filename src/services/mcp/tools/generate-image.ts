/** `generate_image`: pictures from a prompt, or from a prompt and other pictures. */
import * as z from "zod";
import type { MediaLinks } from "../../files/media-links.js";
import type { Images } from "../../generation/media/images.js";
import { imageGenerationInput } from "../../generation/media/images-input.js";
import { parseInput } from "../../requests/input.js";
import { deliver, linked } from "./delivery.js";
import { DELIVERIES, type GatewayTool, model, optional, toReceiptJson } from "./tool.js";

const { shape } = imageGenerationInput;

const input = z.strictObject({
  prompt: shape.prompt.describe("What the picture shows."),
  model: model(shape.model),
  size: optional(shape.size, "WIDTHxHEIGHT in pixels."),
  n: optional(shape.n, "How many pictures."),
  quality: optional(shape.quality, "How much care is taken."),
  seed: optional(shape.seed, "The same seed gives the same picture as far as the model can; -1 is a random one."),
  negative_prompt: optional(shape.negative_prompt, "What the picture does not show."),
  image: z.array(z.string().min(1)).optional().describe("URLs of pictures to work from."),
  transparent: optional(shape.transparent, "Without a background."),
  output_format: optional(shape.output_format, "The format of the file."),
  enhance: optional(shape.enhance, "Let a text model write the prompt out first."),
  safe: optional(shape.safe, "Safety features for the prompt: true for the usual ones, or their names separated by commas."),
  delivery: z.enum(DELIVERIES).optional().describe("inline: in the result, as far as it fits; url: as a link that works for 14 days."),
});

export function createImageTool(
  images: Pick<Images, "generate">,
  mediaLinks: Pick<MediaLinks, "publish">,
): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_image",
    title: "Generate an image",
    description: "Draws pictures for a prompt.",
    input,
    isReadOnly: false,
    call: async (ctx, { delivery, ...options }) => {
      const response_format = delivery === "url" ? "url" : "b64_json";
      const made = await images.generate(ctx, parseInput(imageGenerationInput, { ...options, response_format }));
      const urls = made.images.flatMap(({ url }) => url ?? []);
      const files = made.images.map(({ file: { bytes, contentType } }) => ({ bytes, contentType }));
      const delivered = delivery === "url" ? linked(urls) : await deliver(ctx, mediaLinks, "image", files);
      const revised = made.images.flatMap(({ revisedPrompt }) => revisedPrompt ?? []);
      return {
        isError: false,
        content: delivered.content,
        structuredContent: {
          ...toReceiptJson(made.receipt),
          ...(delivered.urls.length > 0 && { urls: delivered.urls }),
          ...(revised.length > 0 && { revised_prompts: revised }),
        },
      };
    },
  };
}
