/** OpenAI's images object (docs/spec/images.md). Pictures are large, so their text is laid into the document as it is, and not read again. */
import type { UsageQuantities } from "../../lib/usage.js";
import type { GeneratedImage, GeneratedImages } from "../../services/generation/media/images.js";

/** The JSON document, in pieces. */
export function toImagesJson({ createdAt, images, usage }: GeneratedImages): readonly Uint8Array[] {
  const rest = JSON.stringify({ ...(usage && { usage: toUsageJson(usage) }), created: Math.floor(createdAt.getTime() / 1000) });
  const items = images.flatMap((image, index) => [Buffer.from(index === 0 ? "" : ","), ...toItem(image)]);
  return [Buffer.from('{"data":['), ...items, Buffer.from(`],${rest.slice(1)}`)];
}

/** Base64 holds nothing that JSON escapes. */
function toItem({ file, url, revisedPrompt }: GeneratedImage): Uint8Array[] {
  const revised = revisedPrompt === null ? "" : `,"revised_prompt":${JSON.stringify(revisedPrompt)}`;
  if (url !== null) return [Buffer.from(`{"url":${JSON.stringify(url)}${revised}}`)];
  return [Buffer.from('{"b64_json":"'), file.base64 ?? toBase64(file.bytes), Buffer.from(`"${revised}}`)];
}

function toBase64({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(Buffer.from(buffer, byteOffset, byteLength).toString("base64"), "latin1");
}

function toUsageJson(usage: UsageQuantities) {
  const { inputImageTokens: imageTokens } = usage;
  const textTokens = usage.inputTextTokens + usage.inputCachedTokens + usage.inputCacheWriteTokens + usage.inputAudioTokens;
  const outputTokens = usage.outputTextTokens + usage.outputReasoningTokens + usage.outputAudioTokens + usage.outputImageTokens;
  return {
    input_tokens: textTokens + imageTokens,
    output_tokens: outputTokens,
    total_tokens: textTokens + imageTokens + outputTokens,
    input_tokens_details: { text_tokens: textTokens, image_tokens: imageTokens },
  };
}
