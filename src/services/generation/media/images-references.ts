/**
 * A client's images, as URLs or files: fetched through the outbound guard, bounded, and recognized as images by their bytes before an
 * upstream gets them. Links of the media host are read from its store, so that a generation's link works for the next one wherever the
 * gateway runs. Every fault is BAD_REQUEST naming the parameter.
 */
import { buffer } from "node:stream/consumers";
import { deriveContext, type RequestContext } from "../../../context.js";
import { AppError, invalidInput } from "../../../errors.js";
import { plainText } from "../../../formats/openai-chat/schema.js";
import { measurePicture, pictureTypeOf } from "../../../lib/content-types.js";
import { OutboundError, type OutboundGuard } from "../../../lib/outbound-guard.js";
import { IMAGE_FETCH_TIMEOUT_MS, IMAGE_INPUT_BYTES_MAX, IMAGE_INPUT_PIXELS_MAX, IMAGE_INPUTS_BYTES_MAX } from "../../../limits.js";
import type { InputFile } from "../../../providers/media.js";
import type { Media } from "../../files/media.js";
import type { ChatCompletions } from "../chat/chat.js";
import { chatCompletionInput } from "../chat/plan.js";

/** Concurrent fetches: few enough for their bytes to stay within the bound. */
const FETCHED_AT_ONCE = 3;
const DATA_URL_HEAD = /^data:[^,]{0,200};base64,/i;
const BASE64_CHARS_PER_BYTE = 4 / 3;

export class ImageReferences {
  constructor(
    private readonly guard: OutboundGuard,
    private readonly own: Pick<Media, "idOf" | "read">,
  ) {}

  /** Fetches nothing unless all addresses are allowed. Throws BAD_REQUEST. */
  check(urls: readonly string[], param = "image"): void {
    for (const url of urls) {
      if (!isDataUrl(url) && this.own.idOf(url) === null) this.guarded(() => this.guard.parse(url), param);
    }
  }

  /** http(s) URLs and `data:` URLs, as files. Rejects with BAD_REQUEST, or with the signal's reason when that is aborted. */
  async load(urls: readonly string[], signal: AbortSignal, param = "image"): Promise<readonly InputFile[]> {
    this.check(urls, param);
    const files: InputFile[] = [];
    for (let at = 0; at < urls.length; at += FETCHED_AT_ONCE) {
      const batch = urls.slice(at, at + FETCHED_AT_ONCE);
      const contents = await Promise.all(batch.map((url) => this.read(url, signal, param)));
      for (const bytes of contents) files.push(await toPicture(bytes, files.length, param));
      assertTotal(files, param);
    }
    return files;
  }

  async accept(files: readonly Pick<InputFile, "bytes">[], param = "image"): Promise<readonly InputFile[]> {
    const accepted = await Promise.all(files.map(({ bytes }, index) => toPicture(bytes, index, param)));
    assertTotal(accepted, param);
    return accepted;
  }

  private async read(url: string, signal: AbortSignal, param: string): Promise<Uint8Array> {
    if (isDataUrl(url)) return readDataUrl(url, param);
    const id = this.own.idOf(url);
    return id === null ? this.fetch(url, signal, param) : this.readOwn(id, param);
  }

  private async readOwn(id: string, param: string): Promise<Uint8Array> {
    const file = await this.own.read(id).catch((error: unknown) => {
      throw error instanceof AppError && error.code === "NOT_FOUND" ? invalidInput("The media file no longer exists.", param) : error;
    });
    if (file.sizeBytes > IMAGE_INPUT_BYTES_MAX) throw tooLarge(param);
    const content = await file.open();
    if (content === null) throw invalidInput("The media file no longer exists.", param);
    return new Uint8Array(await buffer(content));
  }

  private async fetch(url: string, signal: AbortSignal, param: string): Promise<Uint8Array> {
    const options = { bytesMax: IMAGE_INPUT_BYTES_MAX, timeoutMs: IMAGE_FETCH_TIMEOUT_MS, accept: "image/*", signal };
    try {
      return (await this.guard.fetchGuarded(url, options)).bytes;
    } catch (error) {
      throw toInputError(error, param);
    }
  }

  private guarded(read: () => unknown, param: string): void {
    try {
      read();
    } catch (error) {
      throw toInputError(error, param);
    }
  }
}

function toInputError(error: unknown, param: string): unknown {
  return error instanceof OutboundError ? invalidInput(error.message, param) : error;
}

function isDataUrl(url: string): boolean {
  return /^data:/i.test(url);
}

function readDataUrl(url: string, param: string): Uint8Array {
  const head = DATA_URL_HEAD.exec(url)?.[0];
  if (head === undefined) throw invalidInput("A data: URL must be base64.", param);
  if (url.length > IMAGE_INPUT_BYTES_MAX * BASE64_CHARS_PER_BYTE + head.length) throw tooLarge(param);
  return Buffer.from(url.slice(head.length), "base64");
}

/** Has a neutral name, as upstreams need not see the client's, and the type of its bytes. */
async function toPicture(bytes: Uint8Array, index: number, param: string): Promise<InputFile> {
  if (bytes.byteLength > IMAGE_INPUT_BYTES_MAX) throw tooLarge(param);
  const contentType = pictureTypeOf(bytes);
  if (contentType === null) throw invalidInput("This is not an image: send PNG, JPEG, WebP, GIF or AVIF.", param);
  const size = await measurePicture(bytes);
  if (size === null) throw invalidInput("This image cannot be read.", param);
  if (size.width * size.height > IMAGE_INPUT_PIXELS_MAX) {
    throw invalidInput(`This picture has more than ${IMAGE_INPUT_PIXELS_MAX} pixels.`, param);
  }
  return { bytes, contentType, name: `image-${index + 1}.${contentType.slice("image/".length)}` };
}

function assertTotal(files: readonly InputFile[], param: string): void {
  const total = files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
  if (total > IMAGE_INPUTS_BYTES_MAX) throw invalidInput(`The pictures together are larger than ${IMAGE_INPUTS_BYTES_MAX} bytes.`, param);
}

function tooLarge(param: string): Error {
  return invalidInput(`A picture may have at most ${IMAGE_INPUT_BYTES_MAX} bytes.`, param);
}

// `enhance` (docs/spec/images.md#enhance): the default text model rewrites the prompt. It is a chat of the caller, charged and recorded as
// one.

const INSTRUCTION = [
  "You write prompts for a model that makes pictures.",
  "Rewrite the user's text as one such prompt: keep everything that it asks for, and add what it leaves open",
  "(composition, light, style, materials, mood) in at most 120 words, in the user's language.",
  "Answer with the prompt alone.",
].join(" ");

export const ENHANCE_NOTE = "enhance: the prompt is rewritten by a chat, which is charged as a generation of its own and included.";

/** An empty answer leaves the prompt unchanged. */
export async function enhancePrompt(chat: ChatCompletions, ctx: RequestContext, prompt: string, signal: AbortSignal): Promise<string> {
  const input = chatCompletionInput.parse({
    messages: [
      { role: "system", content: INSTRUCTION },
      { role: "user", content: prompt },
    ],
  });
  const { completion } = await chat.create(deriveContext(ctx, { signal, wishes: undefined }), input);
  return plainText(completion.choices?.[0]?.message?.content).trim() || prompt;
}
