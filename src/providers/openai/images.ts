/**
 * Images over OpenAI's wire format: `/images/generations` as JSON, `/images/edits` and `/images/variations` as a form with the images. Options are sent under this
 * gateway's names; OpenAI's own models refuse unknown names, so they get only those that they accept, and `warnings` has the rest.
 */

import { releaseMemory } from "../../fast/spare-memory.js";
import { isMentioned } from "../../formats/openai-chat/refused-fields.js";
import { type OnUnknownNames, toUsage } from "../../formats/openai-chat/usage.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { pictureTypeOf } from "../../lib/content-types.js";
import { cutTexts, decodeBase64, isBase64, isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import type { UsageQuantities } from "../../lib/usage.js";
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import { repeatFreeStep } from "../free-steps.js";
import type { ImageAnswer, ImageCall, ImageProvider, InputFile } from "../media.js";
import type { FetchFile, OpenAiClient, OpenAiRequest } from "./client.js";
import { refusalIn } from "./learned-fields.js";

type AnsweredImage = ImageAnswer["images"][number];

/** The options that a family of models accepts, by their names on the wire. */
interface Family {
  readonly models: RegExp;
  readonly takes: ReadonlySet<string>;
  /** Null: the model does not have this quality. */
  readonly qualities: Readonly<Record<string, string>>;
  /** OpenAI's newer models always answer base64, and refuse the field. */
  readonly takesResponseFormat: boolean;
}

/** OpenAI's models, from its API reference ("Create image", `quality`, `background`, `output_format`, `response_format`). */
const FAMILIES: readonly Family[] = [
  {
    models: /^(?:gpt|chatgpt)-image/,
    takes: new Set(["quality", "background", "output_format", "output_compression", "moderation", "input_fidelity", "partial_images"]),
    qualities: { low: "low", medium: "medium", standard: "medium", high: "high", hd: "high" },
    takesResponseFormat: false,
  },
  {
    models: /^dall-e-3/,
    takes: new Set(["quality", "style"]),
    qualities: { low: "standard", medium: "standard", standard: "standard", high: "hd", hd: "hd" },
    takesResponseFormat: true,
  },
  { models: /^dall-e-2/, takes: new Set(), qualities: {}, takesResponseFormat: true },
];

/** Options that only some of these models accept, also those without an equivalent in the gateway. */
const OPTIONS_OF_SOME: ReadonlySet<string> = new Set(FAMILIES.flatMap(({ takes }) => [...takes]));

/** Unspecified: `medium` is the default for models with this parameter (docs/spec/images.md#quality). */
const QUALITY_DEFAULT = "medium";

const FORM_FIELD = "response_format";

export class OpenAiImageProvider implements ImageProvider {
  constructor(
    private readonly client: OpenAiClient,
    private readonly fetchFile?: FetchFile,
  ) {}

  async generate(call: ImageCall): Promise<ImageAnswer> {
    const { response, warnings } = await this.send(call);
    const whole = await response.readAll(UPSTREAM_BODY_BYTES_MAX);
    const { rest, texts } = cutTexts(whole, "b64_json");
    const answer = this.client.readObject(rest);
    const images = await Promise.all(toItems(answer.data).map((item) => this.fromItem(item, texts, call.signal)));
    return { images, usage: toImageUsage(answer.usage, this.client.onUnknownUsage), warnings, release: () => releaseMemory(whole) };
  }

  /** An upstream that refuses the field for the answer's form is asked again without it. */
  private async send(call: ImageCall) {
    const { client } = this;
    const ask = async (hasForm: boolean) => {
      const { warnings, ...request } = await toRequest(call, hasForm);
      return { response: await client.sendWhole({ ...request, signal: call.signal }), warnings };
    };
    const { upstreamModel } = call;
    if (client.learned.has(upstreamModel, FORM_FIELD)) return ask(false);
    try {
      return await ask(true);
    } catch (error) {
      const { refusedFields, isRefusedInWords } = refusalIn(error);
      const isCallers = isRefusedInWords && isMentioned(FORM_FIELD, { prompt: call.prompt });
      if (!refusedFields.includes(FORM_FIELD) || isCallers || call.signal.aborted) throw error;
      return client.learned.askAgain(upstreamModel, [FORM_FIELD], () => ask(false));
    }
  }

  private async fromItem(item: unknown, texts: readonly Buffer[], signal: AbortSignal): Promise<AnsweredImage> {
    if (!isRecord(item)) throw notAPicture();
    const revisedPrompt = typeof item.revised_prompt === "string" && item.revised_prompt !== "" ? item.revised_prompt : null;
    const text = typeof item.b64_json === "number" ? texts[item.b64_json] : item.b64_json;
    if (Buffer.isBuffer(text)) return fromBase64(text, revisedPrompt);
    if (typeof text === "string") return fromBase64(Buffer.from(text), revisedPrompt);
    if (typeof item.url !== "string") throw notAPicture();
    if (item.url.startsWith("data:")) return fromBase64(Buffer.from(item.url), revisedPrompt);
    const bytes = await this.fetchPicture(item.url, signal);
    const contentType = pictureTypeOf(bytes);
    if (contentType === null) throw notAPicture();
    return { bytes, contentType, revisedPrompt };
  }

  private async fetchPicture(url: string, signal: AbortSignal): Promise<Uint8Array> {
    if (!this.fetchFile) throw notAPicture();
    try {
      const options = { bytesMax: UPSTREAM_BODY_BYTES_MAX, accept: "image/*", signal };
      const { fetchFile } = this;
      return (await repeatFreeStep(signal, () => fetchFile(url, options))).bytes;
    } catch (error) {
      signal.throwIfAborted();
      throw new ProviderError("invalid-response", "The upstream named a picture that cannot be fetched.", { cause: error });
    }
  }
}

interface ImageRequestBody extends Pick<OpenAiRequest, "path" | "json" | "contentType" | "body"> {
  readonly warnings: readonly string[];
}

/** `hasForm`: the field for the answer's form is sent to models that may know it. */
export async function toRequest(call: ImageCall, hasForm = true): Promise<ImageRequestBody> {
  const { fields, warnings } = toFields(call, hasForm);
  if (call.images.length === 0) {
    return { path: "/images/generations", json: fields, warnings };
  }
  return { path: call.isVariation ? "/images/variations" : "/images/edits", ...(await toForm(fields, call.images, call.mask)), warnings };
}

function toFields(call: ImageCall, hasForm: boolean): { fields: Record<string, unknown>; warnings: string[] } {
  const family = FAMILIES.find(({ models }) => models.test(call.upstreamModel));
  const warnings: string[] = [];
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(call.extra)) {
    if (family === undefined || !OPTIONS_OF_SOME.has(name) || family.takes.has(name)) setOwnValue(fields, name, value);
    else if (value !== null && value !== undefined) warnings.push(`${name} has no effect on this model.`);
  }
  Object.assign(fields, { model: call.upstreamModel, ...(!call.isVariation && { prompt: call.prompt }), n: call.count });
  if (call.size !== null) fields.size = `${call.size.width}x${call.size.height}`;
  const state = (name: string, value: unknown, isWorthTelling = true) => {
    if (value === null) return;
    if (family === undefined || family.takes.has(name)) setOwnValue(fields, name, value);
    else if (isWorthTelling) warnings.push(`${name} has no effect on this model.`);
  };
  state("quality", toQuality(call.quality, family));
  state("background", call.isTransparent ? "transparent" : null);
  // 0 is the default of GET routes.
  state("seed", call.seed, call.seed !== 0);
  state("negative_prompt", call.negativePrompt);
  state("reasoning", call.reasoning, call.reasoning === true);
  // The gateway converts images of other models.
  if (family?.takes.has("output_format")) state("output_format", call.format);
  if (hasForm && (family === undefined || family.takesResponseFormat)) fields[FORM_FIELD] = "b64_json";
  return { fields, warnings };
}

function toQuality(quality: string | null, family: Family | undefined): string | null {
  if (family === undefined) return quality;
  if (quality !== null) return ownValue(family.qualities, quality) ?? quality;
  return family.takes.has("quality") ? (family.qualities[QUALITY_DEFAULT] ?? null) : null;
}

/** OpenAI's clients write one image as `image` and several as `image[]`. */
async function toForm(fields: Readonly<Record<string, unknown>>, images: readonly InputFile[], mask: InputFile | null) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  const imageField = images.length === 1 ? "image" : "image[]";
  for (const image of images) form.append(imageField, toBlob(image), image.name);
  if (mask !== null) form.append("mask", toBlob(mask), mask.name);
  const encoded = new Response(form);
  return { contentType: encoded.headers.get("content-type") ?? "", body: new Uint8Array(await encoded.arrayBuffer()) };
}

function toBlob({ bytes, contentType }: InputFile): Blob {
  return new Blob([bytes as Uint8Array<ArrayBuffer>], { type: contentType });
}

/** `data` with at least one item. */
function toItems(data: unknown): readonly unknown[] {
  if (!Array.isArray(data) || data.length === 0) throw new ProviderError("invalid-response", "The upstream's answer holds no pictures.");
  return data;
}

/** Image models report `output_tokens` without a kind: they are image tokens. */
export function toImageUsage(raw: unknown, onUnknownNames?: OnUnknownNames): UsageQuantities | null {
  const usage = toUsage(raw, onUnknownNames);
  if (usage === null || !isRecord(raw) || isRecord(raw.output_tokens_details) || usage.outputImageTokens > 0) return usage;
  return { ...usage, outputImageTokens: usage.outputTextTokens, outputTextTokens: 0 };
}

const DATA_URL_HEAD = /^data:[^,]{0,200};base64,/i;
const DATA_URL_HEAD_CHARS = 250;
/** More than a type's signature takes. */
const PICTURE_HEAD_CHARS = 64;

/** Images in base64 are usually returned as base64, so their bytes are decoded on demand. */
function fromBase64(text: Buffer, revisedPrompt: string | null): AnsweredImage {
  const head = DATA_URL_HEAD.exec(text.toString("latin1", 0, DATA_URL_HEAD_CHARS))?.[0] ?? "";
  const base64 = text.subarray(head.length);
  const contentType = pictureTypeOf(decodeBase64(base64.subarray(0, PICTURE_HEAD_CHARS)));
  if (contentType === null || !isBase64(base64)) throw notAPicture();
  return new Base64Image(base64, contentType, revisedPrompt);
}

/** A class for its getter: see docs/decisions/garbage.md. */
class Base64Image implements AnsweredImage {
  private decoded: Uint8Array | undefined;

  constructor(
    readonly base64: Buffer,
    readonly contentType: AnsweredImage["contentType"],
    readonly revisedPrompt: string | null,
  ) {}

  get bytes(): Uint8Array {
    this.decoded ??= decodeBase64(this.base64);
    return this.decoded;
  }
}

function notAPicture(): ProviderError {
  return new ProviderError("invalid-response", "The upstream answered something that is not a picture.");
}
