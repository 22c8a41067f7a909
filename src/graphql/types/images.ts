/** Image mutations (docs/spec/images.md): the same inputs and rules as POST /v1/images/generations, /v1/images/edits and /v1/images/variations. */

import type { GeneratedImage as GeneratedImageObject, GeneratedImages } from "../../services/generation/media/images.js";
import {
  type BODY_IMAGE_QUALITIES,
  type IMAGE_FORMATS,
  type IMAGE_RESPONSE_FORMATS,
  IMAGE_SIZE_DEFAULT,
  imageEditForm,
  imageGenerationInput,
  imageVariationForm,
} from "../../services/generation/media/images-input.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { PROVIDER_DESCRIPTION, ProviderInput, wishedInput } from "../wishes.js";
import { SafetyFeature } from "./models.js";
import { Receipt } from "./receipts.js";

const ImageQuality = builder.enumType("ImageQuality", {
  description: "The quality of an image. It affects the price where a model has several.",
  values: {
    LOW: { value: "low", description: "Low quality." },
    MEDIUM: { value: "medium", description: "Medium quality." },
    HIGH: { value: "high", description: "High quality." },
    HD: { value: "hd", description: "The same as HIGH, as older models name it." },
    STANDARD: { value: "standard", description: "The same as MEDIUM, as older models name it." },
    AUTO: { value: "auto", description: "The same as an omitted quality." },
  } satisfies Record<string, { value: (typeof BODY_IMAGE_QUALITIES)[number]; description: string }>,
});

const ImageFormat = builder.enumType("ImageFormat", {
  description: "An image format.",
  values: {
    PNG: { value: "png", description: "Lossless, with transparency." },
    JPEG: { value: "jpeg", description: "Small, without transparency." },
    WEBP: { value: "webp", description: "Small, with transparency." },
  } satisfies Record<string, { value: (typeof IMAGE_FORMATS)[number]; description: string }>,
});

const ImageResponseFormat = builder.enumType("ImageResponseFormat", {
  description: "How images are returned.",
  values: {
    B64_JSON: { value: "b64_json", description: "As base64." },
    URL: { value: "url", description: "As a URL on the media host." },
  } satisfies Record<string, { value: (typeof IMAGE_RESPONSE_FORMATS)[number]; description: string }>,
});

type InputFieldsBuilder = Parameters<NonNullable<Parameters<typeof builder.inputType>[1]>["fields"]>[0];

function commonFields(t: InputFieldsBuilder) {
  return {
    prompt: t.string({ required: true, description: "A description of the image." }),
    model: t.string({ description: "A model ID or alias. Defaults to the default image model." }),
    quality: t.field({ type: ImageQuality, description: "The quality. Some models ignore it." }),
    seed: t.int({ description: "The random seed. -1 draws a random one. Some models ignore it." }),
    isEnhanced: t.boolean({
      defaultValue: false,
      description: "Whether the default text model rewrites the prompt first, charged as a chat.",
      extensions: { wireName: "enhance" },
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    negativePrompt: t.string({ description: "A description of unwanted content. Some models ignore it." }),
    isTransparent: t.boolean({
      defaultValue: false,
      description: "Whether the background is transparent. Some models ignore it.",
      extensions: { wireName: "transparent" },
    }),
    hasReasoning: t.boolean({
      description: "Whether the model reasons about text and layout first. Some models ignore it.",
      extensions: { wireName: "reasoning" },
    }),
    outputFormat: t.field({ type: ImageFormat, description: "The image format. Defaults to the model's own." }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  };
}

function severalFields(t: InputFieldsBuilder) {
  return {
    n: t.int({ defaultValue: 1, description: "The number of images, 1 to 10." }),
    responseFormat: t.field({ type: ImageResponseFormat, defaultValue: "b64_json", description: "How images are returned." }),
  };
}

export function oneImageFields(t: InputFieldsBuilder) {
  return {
    ...commonFields(t),
    size: t.string({ defaultValue: IMAGE_SIZE_DEFAULT, description: "The size as `WIDTHxHEIGHT`, each 64 to 4096. Defaults to `auto`." }),
    images: t.stringList({
      description: "The https or data: URLs of reference images, at most ten.",
      extensions: { wireName: "image" },
    }),
  };
}

const GenerateImageInput = builder.inputType("GenerateImageInput", {
  description: "Parameters of `generateImage`.",
  fields: (t) => ({ ...oneImageFields(t), ...severalFields(t) }),
});

const EditImageInput = builder.inputType("EditImageInput", {
  description: "Parameters of `editImage`.",
  fields: (t) => ({
    ...commonFields(t),
    ...severalFields(t),
    size: t.string({ description: "The size as `WIDTHxHEIGHT`, each 64 to 4096. When omitted or `auto`, the model decides." }),
    images: t.stringList({ description: "The https or data: URLs of the images to edit.", extensions: { wireName: "image" } }),
    files: t.field({ type: ["File"], description: "Uploaded images to edit, placed after those in `images`. At most ten in all." }),
    mask: t.field({ type: "File", description: "A mask. Transparent areas mark where the image may change." }),
  }),
});

const VaryImageInput = builder.inputType("VaryImageInput", {
  description: "Parameters of `varyImage`.",
  fields: (t) => ({
    ...severalFields(t),
    model: t.string({ description: "A model ID or alias. Defaults to the first image model that makes variations." }),
    image: t.string({ description: "The https or data: URL of the image. Required when `file` is omitted." }),
    file: t.field({ type: "File", description: "The uploaded image." }),
    size: t.string({ description: "The size as `WIDTHxHEIGHT`, each 64 to 4096. When omitted or `auto`, the model decides." }),
    seed: t.int({ description: "The random seed. -1 draws a random one. Some models ignore it." }),
    outputFormat: t.field({ type: ImageFormat, description: "The image format. Defaults to the model's own." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

const GeneratedImage = builder.objectRef<GeneratedImageObject>("GeneratedImage").implement({
  description: "A generated image.",
  fields: (t) => ({
    base64: t.string({
      nullable: true,
      description: "The image as base64. Null when a URL was requested.",
      resolve: ({ file, url }) => (url === null ? toText(file) : null),
    }),
    url: t.exposeString("url", { nullable: true, description: "The URL of the image, when a URL was requested." }),
    contentType: t.string({ description: "The media type of the image, such as `image/png`.", resolve: ({ file }) => file.contentType }),
    revisedPrompt: t.exposeString("revisedPrompt", {
      nullable: true,
      description: "The prompt that the model used instead of the requested one.",
    }),
  }),
});

function payload(name: string) {
  return builder.objectRef<GeneratedImages>(name).implement({
    description: "Generated images and their receipt.",
    fields: (t) => ({
      images: t.field({ type: [GeneratedImage], description: "The images, as many as requested.", resolve: ({ images }) => [...images] }),
      createdAt: t.expose("createdAt", { type: "DateTime", description: "When the images were generated." }),
      receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }),
    }),
  });
}

const GenerateImagePayload = payload("GenerateImagePayload");
const EditImagePayload = payload("EditImagePayload");
const VaryImagePayload = payload("VaryImagePayload");

builder.mutationField("generateImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerateImagePayload,
    nullable: true,
    description: "Generates images from a prompt. The charge is committed before the images are returned.",
    args: { input: t.arg({ type: GenerateImageInput, required: true, description: "The images to generate." }) },
    resolve: async (_root, { input }, ctx) => {
      const wished = await wishedInput(ctx, input, imageGenerationInput, () => toImageBody(input));
      return ctx.services.images.generate(wished.ctx, wished.input);
    },
  }),
);

builder.mutationField("editImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: EditImagePayload,
    nullable: true,
    description: "Edits images according to a prompt. The charge is committed before the images are returned.",
    args: { input: t.arg({ type: EditImageInput, required: true, description: "The images and the edit." }) },
    resolve: async (_root, { input: { files, mask, ...input } }, ctx) => {
      const wished = await wishedInput(ctx, input, imageEditForm, () => toImageBody(input));
      return ctx.services.images.edit(wished.ctx, wished.input, { images: files ?? [], mask: mask ?? null });
    },
  }),
);

builder.mutationField("varyImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: VaryImagePayload,
    nullable: true,
    description: "Makes variations of an image. The charge is committed before the images are returned.",
    args: { input: t.arg({ type: VaryImageInput, required: true, description: "The image and the options." }) },
    resolve: async (_root, { input: { file, image, ...input } }, ctx) => {
      const wished = await wishedInput(ctx, input, imageVariationForm, () => ({ ...toImageBody(input), image: image ?? undefined }));
      return ctx.services.images.vary(wished.ctx, wished.input, file ?? null);
    },
  }),
);

function toText(file: GeneratedImageObject["file"]): string {
  return file.base64 ? Buffer.from(file.base64).toString("latin1") : Buffer.from(file.bytes).toString("base64");
}

/** Converts the fields to their wire names, which errors also use. Throws BAD_REQUEST. */
export function toImageBody(
  input: Partial<typeof GenerateImageInput.$inferInput>,
  reserved: readonly string[] = [],
): Record<string, unknown> {
  const {
    images,
    negativePrompt,
    outputFormat,
    responseFormat,
    isEnhanced,
    isTransparent,
    hasReasoning,
    safe,
    maxCost: _,
    provider: __,
    extra,
    ...same
  } = input;
  const named = {
    ...same,
    image: images,
    negative_prompt: negativePrompt,
    output_format: outputFormat,
    response_format: responseFormat,
    enhance: isEnhanced,
    transparent: isTransparent,
    reasoning: hasReasoning,
    safe: toSafeText(safe),
  };
  return withExtra(named, extra, reserved);
}
