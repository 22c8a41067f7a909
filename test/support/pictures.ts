/** Real pictures for tests, and the answers of an image upstream that hold them. */
import sharp from "sharp";

/** One colour in the asked size: PNG unless said otherwise. */
export function picture(
  width = 64,
  height = 64,
  format: "png" | "jpeg" | "webp" | "gif" = "png",
  background = "#3366cc80",
): Promise<Buffer> {
  return sharp({ create: { width, height, channels: 4, background } })
    .toFormat(format)
    .toBuffer();
}

/** OpenAI's images object. */
export function imagesObject(images: readonly (Uint8Array | string)[], more: object = {}): object {
  const toItem = (image: Uint8Array | string) =>
    typeof image === "string" ? { url: image } : { b64_json: Buffer.from(image).toString("base64") };
  return { created: 1_700_000_000, data: images.map(toItem), ...more };
}

export function imageUsage(text: number, image: number, output: number): object {
  return {
    usage: {
      input_tokens: text + image,
      input_tokens_details: { text_tokens: text, image_tokens: image },
      output_tokens: output,
      total_tokens: text + image + output,
    },
  };
}
