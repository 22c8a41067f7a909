/** Images (docs/spec/images.md): POST /v1/images/generations, /v1/images/edits and /v1/images/variations in OpenAI's format, GET /image/{prompt} as bytes. */
import * as z from "zod";
import type { UploadedFiles } from "../../http/uploads.js";
import type { UsageQuantities } from "../../lib/usage.js";
import { IMAGE_INPUT_BYTES_MAX, IMAGE_INPUTS_BYTES_MAX, IMAGE_INPUTS_MAX } from "../../limits.js";
import type { GeneratedImage, GeneratedImages } from "../../services/generation/media/images.js";
import {
  imageEditForm,
  imageEditInput,
  imageGenerationInput,
  imageQuery,
  imageVariationForm,
  imageVariationInput,
} from "../../services/generation/media/images-input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { json, sent, writtenJson } from "../openapi/answer.js";
import { MILL, nonBlankPathText, PIXEL, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendGenerated } from "../stored-file.js";

/** Bytes of a form beside its files: texts and boundaries. */
const FORM_FIELDS_BYTES_MAX = 1024 * 1024;

const imagesAnswer = writtenJson(
  json(
    "Images",
    z.looseObject({
      created: seconds,
      data: z.array(z.looseObject({ b64_json: z.string().optional(), url: z.string().optional(), revised_prompt: z.string().optional() })),
    }),
  ),
);

export function addImageRoutes(route: Route, endpoint: Endpoint, { images }: Pick<Services, "images">): void {
  route("/v1/images/generations", {
    POST: endpoint({
      id: "createImage",
      tag: "Images",
      summary: "Generates images, in OpenAI's wire format.",
      answer: imagesAnswer,
      example: { body: { model: "sandbox/image", prompt: MILL, size: "256x256" } },
      isForAgents: true,
      isGeneration: true,
      body: imageGenerationInput,
      handler: async (ctx, { body, exchange }) => {
        const generated = await images.generate(ctx, body);
        exchange.setHeaders(receiptHeaders(generated.receipt));
        exchange.sendPieces(toImagesJson(generated), "application/json; charset=utf-8", generated.release);
      },
    }),
  });
  route("/v1/images/edits", {
    POST: endpoint({
      id: "editImage",
      tag: "Images",
      summary: "Edits images, in OpenAI's wire format.",
      answer: imagesAnswer,
      example: {
        body: { model: "sandbox/image", prompt: "At night", image: `data:image/png;base64,${PIXEL}`, size: "256x256" },
        form: { model: "sandbox/image", prompt: "At night", size: "256x256" },
      },
      isForAgents: true,
      isGeneration: true,
      body: imageEditInput,
      form: {
        fields: imageEditForm,
        files: { image: { countMax: IMAGE_INPUTS_MAX, mayBeText: true, isRequired: true }, mask: { countMax: 1, mayBeText: true } },
        fileBytesMax: IMAGE_INPUT_BYTES_MAX,
        bytesMax: IMAGE_INPUTS_BYTES_MAX + FORM_FIELDS_BYTES_MAX,
      },
      handler: async (ctx, { body, files, exchange }) => {
        const edited = await images.edit(ctx, body, toImageFiles(files));
        exchange.setHeaders(receiptHeaders(edited.receipt));
        exchange.sendPieces(toImagesJson(edited), "application/json; charset=utf-8", edited.release);
      },
    }),
  });
  route("/v1/images/variations", {
    POST: endpoint({
      id: "createImageVariation",
      tag: "Images",
      summary: "Makes variations of an image, in OpenAI's wire format, with models that have them.",
      answer: imagesAnswer,
      example: {
        body: { model: "sandbox/image", image: `data:image/png;base64,${PIXEL}`, size: "256x256" },
        form: { model: "sandbox/image", size: "256x256" },
      },
      isForAgents: true,
      isGeneration: true,
      body: imageVariationInput,
      form: {
        fields: imageVariationForm,
        files: { image: { countMax: 1, mayBeText: true, isRequired: true } },
        fileBytesMax: IMAGE_INPUT_BYTES_MAX,
        bytesMax: IMAGE_INPUT_BYTES_MAX + FORM_FIELDS_BYTES_MAX,
      },
      handler: async (ctx, { body, files, exchange }) => {
        const varied = await images.vary(ctx, body, toImageFiles(files).images[0]);
        exchange.setHeaders(receiptHeaders(varied.receipt));
        exchange.sendPieces(toImagesJson(varied), "application/json; charset=utf-8", varied.release);
      },
    }),
  });
  route("/image/*prompt", {
    GET: endpoint({
      id: "getImage",
      tag: "Images",
      summary: "Generates an image from a prompt, or a video with a video model.",
      answer: sent("image/jpeg", "image/png", "video/mp4"),
      example: { parameters: { prompt: MILL, model: "sandbox/image" } },
      isForAgents: true,
      isBounded: true,
      params: z.object({ prompt: nonBlankPathText("A description of the content to generate. May contain slashes.") }),
      query: imageQuery,
      handler: (ctx, { params, query, exchange }) => sendGenerated(exchange, images.ask(ctx, params.prompt, query)),
    }),
  });
}

function toImageFiles({ image = [], mask = [] }: UploadedFiles) {
  return { images: image, mask: mask[0] ?? null };
}

/** OpenAI's images object, in pieces. Base64 of images is large, so it is inserted without serializing it. */
function toImagesJson({ createdAt, images, usage }: GeneratedImages): readonly Uint8Array[] {
  const rest = JSON.stringify({ ...(usage && { usage: toUsageJson(usage) }), created: Math.floor(createdAt.getTime() / 1000) });
  const items = images.flatMap((image, index) => [Buffer.from(index === 0 ? "" : ","), ...toItem(image)]);
  return [Buffer.from('{"data":['), ...items, Buffer.from(`],${rest.slice(1)}`)];
}

/** Base64 needs no escapes in JSON. */
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
