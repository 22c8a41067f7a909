/** Pictures as mutations (docs/spec/images.md): the same inputs as POST /v1/images/generations and /v1/images/edits, under the same rules. */

import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import type { GeneratedImage as GeneratedImageObject, GeneratedImages } from "../../services/generation/media/images.js";
import {
  type BODY_IMAGE_QUALITIES,
  type IMAGE_FORMATS,
  type IMAGE_RESPONSE_FORMATS,
  IMAGE_SIZE_DEFAULT,
  imageEditForm,
  imageGenerationInput,
} from "../../services/generation/media/images-input.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { Receipt } from "./chat.js";
import { SafetyFeature } from "./models.js";

const ImageQuality = builder.enumType("ImageQuality", {
  description: "How carefully a picture is made, which decides its price where a model has several.",
  values: {
    LOW: { value: "low", description: "Quickly." },
    MEDIUM: { value: "medium", description: "As usual." },
    HIGH: { value: "high", description: "Carefully." },
    HD: { value: "hd", description: "As HIGH, as older models call it." },
    STANDARD: { value: "standard", description: "As MEDIUM, as older models call it." },
    AUTO: { value: "auto", description: "As if none was stated." },
  } satisfies Record<string, { value: (typeof BODY_IMAGE_QUALITIES)[number]; description: string }>,
});

const ImageFormat = builder.enumType("ImageFormat", {
  description: "How a picture is written.",
  values: {
    PNG: { value: "png", description: "Without loss; may be transparent." },
    JPEG: { value: "jpeg", description: "Small; never transparent." },
    WEBP: { value: "webp", description: "Small; may be transparent." },
  } satisfies Record<string, { value: (typeof IMAGE_FORMATS)[number]; description: string }>,
});

const ImageResponseFormat = builder.enumType("ImageResponseFormat", {
  description: "How a picture is answered.",
  values: {
    B64_JSON: { value: "b64_json", description: "As base64." },
    URL: { value: "url", description: "As a link to the media host." },
  } satisfies Record<string, { value: (typeof IMAGE_RESPONSE_FORMATS)[number]; description: string }>,
});

type InputFieldsBuilder = Parameters<NonNullable<Parameters<typeof builder.inputType>[1]>["fields"]>[0];

function commonFields(t: InputFieldsBuilder) {
  return {
    prompt: t.string({ required: true, description: "What is to be seen." }),
    model: t.string({ description: "An id or alias. Omitted: the default image model." }),
    quality: t.field({ type: ImageQuality, description: "Honoured by some models only." }),
    seed: t.int({ description: "-1 is a random one. Honoured by some models only." }),
    isEnhanced: t.boolean({
      defaultValue: false,
      description: "The default text model writes the prompt anew, which is charged as a chat.",
      extensions: { wireName: "enhance" },
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    negativePrompt: t.string({ description: "What should not be seen. Honoured by some models only." }),
    isTransparent: t.boolean({
      defaultValue: false,
      description: "Without a background. Honoured by some models only.",
      extensions: { wireName: "transparent" },
    }),
    hasReasoning: t.boolean({
      description: "Think about text and layout first. Honoured by some models only.",
      extensions: { wireName: "reasoning" },
    }),
    outputFormat: t.field({ type: ImageFormat, description: "Omitted: the format that the model makes." }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  };
}

function severalFields(t: InputFieldsBuilder) {
  return {
    n: t.int({ defaultValue: 1, description: "How many pictures, 1 to 10." }),
    responseFormat: t.field({ type: ImageResponseFormat, defaultValue: "b64_json", description: "How the pictures are answered." }),
  };
}

/** Of one picture that is made. */
export function oneImageFields(t: InputFieldsBuilder) {
  return {
    ...commonFields(t),
    size: t.string({ defaultValue: IMAGE_SIZE_DEFAULT, description: "`WIDTHxHEIGHT`, each 64 to 4096. `auto` is the default." }),
    images: t.stringList({
      description: "URLs of reference images, https or data: at most ten.",
      extensions: { wireName: "image" },
    }),
  };
}

const GenerateImageInput = builder.inputType("GenerateImageInput", {
  description: "The pictures to be made.",
  fields: (t) => ({ ...oneImageFields(t), ...severalFields(t) }),
});

const EditImageInput = builder.inputType("EditImageInput", {
  description: "The pictures to be made of others.",
  fields: (t) => ({
    ...commonFields(t),
    ...severalFields(t),
    size: t.string({ description: "`WIDTHxHEIGHT`, each 64 to 4096. Omitted, and for `auto`: the model decides." }),
    images: t.stringList({ description: "URLs of the pictures to edit, https or data.", extensions: { wireName: "image" } }),
    files: t.field({ type: ["File"], description: "The pictures themselves, after those that `images` names: at most ten in all." }),
    mask: t.field({ type: "File", description: "Where it is transparent, the picture may be changed." }),
  }),
});

const GeneratedImage = builder.objectRef<GeneratedImageObject>("GeneratedImage").implement({
  description: "A picture that was made.",
  fields: (t) => ({
    base64: t.string({
      nullable: true,
      description: "The picture. Null when a link was asked for.",
      resolve: ({ file, url }) => (url === null ? toText(file) : null),
    }),
    url: t.exposeString("url", { nullable: true, description: "Where it can be had, when a link was asked for." }),
    contentType: t.string({ description: "The media type of the picture, such as `image/png`.", resolve: ({ file }) => file.contentType }),
    revisedPrompt: t.exposeString("revisedPrompt", { nullable: true, description: "What the model was told instead of the prompt." }),
  }),
});

function payload(name: string) {
  return builder.objectRef<GeneratedImages>(name).implement({
    description: "Pictures, and what they cost.",
    fields: (t) => ({
      images: t.field({ type: [GeneratedImage], description: "As many as were asked for.", resolve: ({ images }) => [...images] }),
      createdAt: t.expose("createdAt", { type: "DateTime", description: "When they were made." }),
      receipt: t.expose("receipt", { type: Receipt, description: "What they cost." }),
    }),
  });
}

const GenerateImagePayload = payload("GenerateImagePayload");
const EditImagePayload = payload("EditImagePayload");

builder.mutationField("generateImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerateImagePayload,
    nullable: true,
    description: "Makes pictures from a prompt. The charge is committed before they are given.",
    args: { input: t.arg({ type: GenerateImageInput, required: true, description: "The pictures to be made." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.images.generate(
        boundedBy(ctx, input.maxCost),
        parsePermitted(ctx, requireCaller, imageGenerationInput, () => toImageBody(input)),
      ),
  }),
);

builder.mutationField("editImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: EditImagePayload,
    nullable: true,
    description: "Makes pictures from pictures and a prompt. The charge is committed before they are given.",
    args: { input: t.arg({ type: EditImageInput, required: true, description: "The pictures to be made of others." }) },
    resolve: (_root, { input: { files, mask, ...input } }, ctx) =>
      ctx.services.images.edit(
        boundedBy(ctx, input.maxCost),
        parsePermitted(ctx, requireCaller, imageEditForm, () => toImageBody(input)),
        {
          images: files ?? [],
          mask: mask ?? null,
        },
      ),
  }),
);

function toText(file: GeneratedImageObject["file"]): string {
  return file.base64 ? Buffer.from(file.base64).toString("latin1") : Buffer.from(file.bytes).toString("base64");
}

/** By the names on the wire, which errors use too. Throws BAD_REQUEST. */
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
