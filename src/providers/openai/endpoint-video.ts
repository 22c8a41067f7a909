/**
 * Video at an exact address, in one call (docs/spec/video.md#upstreams): JSON is sent, and the answer is the video, or JSON with its URL or
 * bytes. Names are those of OpenAI's `/videos` where it has them, else those of the gateway's own query.
 */

import { ProviderError } from "../../formats/upstream-error.js";
import { closedTypeOf, type GeneratedType } from "../../lib/content-types.js";
import { cutTexts, decodeBase64, isBase64, isRecord } from "../../lib/json.js";
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import { repeatFreeStep } from "../free-steps.js";
import type { InputFile, MediaFile, VideoAnswer, VideoCall, VideoProvider } from "../media.js";
import type { UpstreamResponse } from "../upstream-response.js";
import { contentTypeOf, type FetchFile, isJson, type OpenAiClient } from "./client.js";

const DATA_URL = /^data:([^;,]{1,100})[^,]{0,100};base64,/i;
const DATA_URL_HEAD_CHARS = 250;
const VIDEO_TYPE: GeneratedType = "video/mp4";

export class EndpointVideoProvider implements VideoProvider {
  constructor(
    private readonly client: OpenAiClient,
    private readonly fetchFile: FetchFile,
  ) {}

  async generate(call: VideoCall): Promise<VideoAnswer> {
    const { signal } = call;
    const accept = "video/*, application/json;q=0.9";
    const response = await this.client.sendWhole({ path: "", accept, json: toRequest(call), signal });
    const file = isJson(response) ? await this.readJson(response, signal) : await readFile(response);
    if (file.bytes.byteLength === 0) throw notAVideo();
    return { ...file, durationMs: null, usage: null, warnings: [] };
  }

  private async readJson(response: UpstreamResponse, signal: AbortSignal): Promise<MediaFile> {
    const { rest, texts } = cutTexts(await response.readAll(UPSTREAM_BODY_BYTES_MAX), "b64_json");
    const answer = this.client.readObject(rest);
    const item: unknown = Array.isArray(answer.data) ? answer.data[0] : answer;
    if (!isRecord(item)) throw notAVideo();
    const text = typeof item.b64_json === "number" ? texts[item.b64_json] : item.b64_json;
    if (Buffer.isBuffer(text)) return fromBase64(text);
    if (typeof text === "string") return fromBase64(Buffer.from(text));
    if (typeof item.url !== "string") throw notAVideo();
    return item.url.startsWith("data:") ? fromBase64(Buffer.from(item.url)) : this.fetchVideo(item.url, signal);
  }

  /** Without the credential, which is not for the file's host. */
  private async fetchVideo(url: string, signal: AbortSignal): Promise<MediaFile> {
    try {
      const options = { bytesMax: UPSTREAM_BODY_BYTES_MAX, accept: "video/*", signal };
      const { bytes, contentType } = await repeatFreeStep(signal, () => this.fetchFile(url, options));
      return { bytes, contentType: videoTypeOf(contentType) };
    } catch (error) {
      signal.throwIfAborted();
      throw new ProviderError("invalid-response", "The upstream named a video that cannot be fetched.", { cause: error });
    }
  }
}

/** Stated options only; length and shape both by OpenAI's names and by common ones. */
function toRequest(call: VideoCall): Record<string, unknown> {
  const { size, aspectRatio, seconds, images } = call;
  const pictures = images.map(toDataUrl);
  return {
    ...call.extra,
    model: call.upstreamModel,
    prompt: call.prompt,
    ...(seconds !== null && { seconds: String(seconds), duration: seconds }),
    ...(size !== null && { size: `${size.width}x${size.height}` }),
    ...(aspectRatio !== null && { aspect_ratio: aspectRatio }),
    ...(call.hasAudio && { audio: true }),
    // 0 is the default of GET routes.
    ...(call.seed && { seed: call.seed }),
    ...(call.negativePrompt !== null && { negative_prompt: call.negativePrompt }),
    ...(pictures.length > 0 && { image: pictures[0] }),
    ...(pictures.length > 1 && { images: pictures }),
  };
}

function toDataUrl({ bytes, contentType }: InputFile): string {
  return `data:${contentType};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")}`;
}

async function readFile(response: UpstreamResponse): Promise<MediaFile> {
  return { bytes: await response.readAll(UPSTREAM_BODY_BYTES_MAX), contentType: videoTypeOf(contentTypeOf(response)) };
}

function fromBase64(text: Buffer): MediaFile {
  const head = DATA_URL.exec(text.toString("latin1", 0, DATA_URL_HEAD_CHARS));
  const base64 = text.subarray(head?.[0].length ?? 0);
  if (!isBase64(base64)) throw notAVideo();
  return { bytes: decodeBase64(base64), contentType: videoTypeOf(head?.[1] ?? "") };
}

/** The stated type; default: the requested one. */
function videoTypeOf(said: string): GeneratedType {
  return said === "" ? VIDEO_TYPE : closedTypeOf(said);
}

function notAVideo(): ProviderError {
  return new ProviderError("invalid-response", "The upstream answered something that is not a video.");
}
