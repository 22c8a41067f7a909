/** Pictures as mutations (docs/spec/images.md): the same inputs as POST /v1/images/generations and /v1/images/edits, under the same rules. */
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import type { GeneratedImage as GeneratedImageObject, GeneratedImages } from "../../services/generation/media/images.js";
import {
  BODY_IMAGE_QUALITIES,
  IMAGE_FORMATS,
  IMAGE_RESPONSE_FORMATS,
  imageEditForm,
  imageGenerationInput,
} from "../../services/generation/media/images-input.js";
import { builder, enumValues } from "../builder.js";
import { withExtra } from "../extra.js";
import { Receipt } from "./chat.js";

const ImageQuality = builder.enumType("ImageQuality", { values: enumValues(BODY_IMAGE_QUALITIES) });
const ImageFormat = builder.enumType("ImageFormat", { values: enumValues(IMAGE_FORMATS) });
const ImageResponseFormat = builder.enumType("ImageResponseFormat", {
  description: "How a picture is answered: as base64, or as a link to the media host.",
  values: enumValues(IMAGE_RESPONSE_FORMATS),
});

type InputFieldsBuilder = Parameters<NonNullable<Parameters<typeof builder.inputType>[1]>["fields"]>[0];

function commonFields(t: InputFieldsBuilder) {
  return {
    prompt: t.string({ required: true }),
    model: t.string({ description: "An id or alias. Omitted: the default image model." }),
    n: t.int({ description: "How many pictures, 1 to 10." }),
    quality: t.field({ type: ImageQuality, description: "Honoured by some models only. `STANDARD` is `MEDIUM`, `AUTO` is none stated." }),
    seed: t.int({ description: "-1 is a random one. Honoured by some models only." }),
    enhance: t.boolean({ description: "The default text model writes the prompt anew, which is charged as a chat." }),
    safe: t.string({ description: "`true`, or safety features separated by commas." }),
    negativePrompt: t.string({ description: "Honoured by some models only." }),
    transparent: t.boolean({ description: "Honoured by some models only." }),
    reasoning: t.boolean({ description: "Think about text and layout first. Honoured by some models only." }),
    outputFormat: t.field({ type: ImageFormat, description: "Omitted: the format that the model makes." }),
    responseFormat: t.field({ type: ImageResponseFormat, description: "B64_JSON unless stated." }),
    extra: t.field({
      type: "JSON",
      description:
        "An object of further fields, by their wire names; they reach the upstream as they are, but for those that are billed (400).",
    }),
  };
}

const GenerateImageInput = builder.inputType("GenerateImageInput", {
  fields: (t) => ({
    ...commonFields(t),
    size: t.string({ description: "`WIDTHxHEIGHT`, each 64 to 4096. `1024x1024` unless stated, and for `auto`." }),
    images: t.stringList({ description: "URLs of reference images, https or data: at most ten." }),
  }),
});

const EditImageInput = builder.inputType("EditImageInput", {
  fields: (t) => ({
    ...commonFields(t),
    size: t.string({ description: "`WIDTHxHEIGHT`, each 64 to 4096. Omitted, and for `auto`: the model decides." }),
    images: t.stringList({ description: "URLs of the pictures to edit, https or data." }),
    files: t.field({ type: ["File"], description: "The pictures themselves, after those that `images` names: at most ten in all." }),
    mask: t.field({ type: "File", description: "Where it is transparent, the picture may be changed." }),
  }),
});

const GeneratedImage = builder.objectRef<GeneratedImageObject>("GeneratedImage").implement({
  fields: (t) => ({
    base64: t.string({
      nullable: true,
      description: "The picture. Null when a link was asked for.",
      resolve: ({ file, url }) => (url === null ? toText(file) : null),
    }),
    url: t.exposeString("url", { nullable: true, description: "Where it can be had, when a link was asked for." }),
    contentType: t.string({ resolve: ({ file }) => file.contentType }),
    revisedPrompt: t.exposeString("revisedPrompt", { nullable: true, description: "What the model was told instead of the prompt." }),
  }),
});

function payload(name: string) {
  return builder.objectRef<GeneratedImages>(name).implement({
    fields: (t) => ({
      createdAt: t.expose("createdAt", { type: "DateTime" }),
      images: t.field({ type: [GeneratedImage], resolve: ({ images }) => [...images] }),
      receipt: t.expose("receipt", { type: Receipt }),
    }),
  });
}

const GenerateImagePayload = payload("GenerateImagePayload");
const EditImagePayload = payload("EditImagePayload");

builder.mutationField("generateImage", (t) =>
  t.field({
    type: GenerateImagePayload,
    nullable: true,
    description: "Makes pictures from a prompt. The charge is committed before they are given.",
    args: { input: t.arg({ type: GenerateImageInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.images.generate(
        ctx,
        parsePermitted(ctx, requireCaller, imageGenerationInput, () => toBody(input)),
      ),
  }),
);

builder.mutationField("editImage", (t) =>
  t.field({
    type: EditImagePayload,
    nullable: true,
    description: "Makes pictures from pictures and a prompt. The charge is committed before they are given.",
    args: { input: t.arg({ type: EditImageInput, required: true }) },
    resolve: (_root, { input: { files, mask, ...input } }, ctx) =>
      ctx.services.images.edit(
        ctx,
        parsePermitted(ctx, requireCaller, imageEditForm, () => toBody(input)),
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
function toBody(input: Partial<typeof GenerateImageInput.$inferInput>): Record<string, unknown> {
  const { images, negativePrompt, outputFormat, responseFormat, extra, ...same } = input;
  const named = { ...same, image: images, negative_prompt: negativePrompt, output_format: outputFormat, response_format: responseFormat };
  return withExtra(named, extra);
}
