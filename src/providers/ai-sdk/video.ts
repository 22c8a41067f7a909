/** Videos: the vendor's package starts, polls and fetches them. */
import type { Experimental_VideoModelV3, Experimental_VideoModelV3VideoData, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { ProviderError, refuse } from "../../formats/upstream-error.js";
import { closedTypeOf } from "../../lib/content-types.js";
import { setOwnValue } from "../../lib/own-values.js";
import { VIDEO_BYTES_MAX } from "../../limits.js";
import type { VideoAnswer, VideoCall, VideoProvider } from "../media.js";
import { type AiSdkClient, statedOptions, toWarnings } from "./client.js";
import type { FetchSession } from "./fetch.js";
import type { VendorModels, VideoTraits } from "./vendor.js";

type VideoOptions = Parameters<Experimental_VideoModelV3["doGenerate"]>[0];

export class AiSdkVideoProvider implements VideoProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: VideoTraits,
  ) {}

  generate(call: VideoCall): Promise<VideoAnswer> {
    return this.client.call(call.signal, (models, session) => this.make(call, models, session), VIDEO_BYTES_MAX);
  }

  private async make(call: VideoCall, models: VendorModels, session: FetchSession): Promise<VideoAnswer> {
    if (!models.videoModel) throw refuse("This upstream has no video models.", "model");
    const warnings: string[] = [];
    const options = this.toOptions(call, warnings);
    const result = await models.videoModel(call.upstreamModel).doGenerate({ ...options, abortSignal: session.signal });
    const [video] = result.videos;
    if (video === undefined) throw new ProviderError("invalid-response", "The upstream answered no film.");
    const bytes = await toBytes(video, session);
    const contentType = closedTypeOf((await typeOfBytes(bytes)) ?? video.mediaType);
    if (!contentType.startsWith("video/"))
      throw new ProviderError("invalid-response", "The upstream answered something that is not a film.");
    return { bytes, contentType, durationMs: null, usage: null, warnings: [...warnings, ...toWarnings(result.warnings)] };
  }

  private toOptions(call: VideoCall, warnings: string[]): VideoOptions {
    const { optionsName } = this.client.vendor;
    const { takes, negativePrompt, options } = this.traits;
    const take = <Value>(trait: VideoTraits["takes"][number], name: string, value: Value | null): Value | undefined => {
      if (value === null) return undefined;
      if (takes.includes(trait)) return value;
      warnings.push(`${name}: this upstream has no such option.`);
      return undefined;
    };
    const own: Record<string, unknown> = { ...options };
    if (call.negativePrompt !== null && negativePrompt === undefined) warnings.push("negative_prompt: this upstream has no such option.");
    else if (call.negativePrompt !== null && negativePrompt !== undefined) setOwnValue(own, negativePrompt, call.negativePrompt);
    if (call.images.length > 1) warnings.push("image: this upstream takes one reference; the others had no effect.");
    const [image = null] = call.images;
    const size = call.size === null ? null : (`${call.size.width}x${call.size.height}` as const);
    return {
      prompt: call.prompt,
      n: 1,
      fps: undefined,
      frameImages: undefined,
      inputReferences: undefined,
      resolution: take("size", "size", size),
      aspectRatio: take("aspectRatio", "aspectRatio", call.aspectRatio),
      duration: take("seconds", "duration", call.seconds),
      seed: take("seed", "seed", call.seed),
      generateAudio: take("audio", "audio", call.hasAudio || null),
      image: take("image", "image", image && { type: "file", mediaType: image.contentType, data: image.bytes }),
      providerOptions: { [optionsName]: { ...own, ...statedOptions(call.extra, optionsName) } } as SharedV3ProviderOptions,
    };
  }
}

async function toBytes(video: Experimental_VideoModelV3VideoData, session: FetchSession): Promise<Uint8Array> {
  if (video.type === "binary") return video.data;
  if (video.type === "base64") return Buffer.from(video.data, "base64");
  const response = await session.fetch(video.url);
  if (!response.ok) throw new ProviderError("invalid-response", "The upstream's film cannot be fetched.");
  return new Uint8Array(await response.arrayBuffer());
}

// Detects types from bytes.

/** A media type without parameters; null when unknown. */
async function typeOfBytes(bytes: Uint8Array): Promise<string | null> {
  const { fileTypeFromBuffer } = await import("file-type");
  return (await fileTypeFromBuffer(bytes))?.mime.split(";")[0] ?? null;
}
