/** The sandbox's video model: a scene that moves, as H.264 in MP4 (docs/sandbox-models.md). */
import { NO_USAGE } from "../../lib/usage.js";
import type { VideoAnswer, VideoCall, VideoProvider } from "../media.js";
import { SANDBOX_VIDEO_SECONDS, SANDBOX_VIDEO_SECONDS_MAX, SANDBOX_VIDEO_SECONDS_MIN, SANDBOX_VIDEO_SIDE_MAX } from "./limits.js";
import { begin, promptOf, runPaced, type SandboxMedia } from "./media/calls.js";
import { refuse } from "./refusal.js";

const LONG_SIDE = 640;
const SHORT_SIDE = 360;
const SIDE_MIN = 64;

export function createSandboxVideoProvider(media: SandboxMedia): VideoProvider {
  return { generate: (call) => generate(media, call) };
}

async function generate(media: SandboxMedia, call: VideoCall): Promise<VideoAnswer> {
  const directives = await begin(call.prompt, "prompt", call.signal, media.timeouts);
  const seconds = call.seconds ?? SANDBOX_VIDEO_SECONDS;
  if (seconds < SANDBOX_VIDEO_SECONDS_MIN || seconds > SANDBOX_VIDEO_SECONDS_MAX) {
    throw refuse(`The sandbox films ${SANDBOX_VIDEO_SECONDS_MIN} to ${SANDBOX_VIDEO_SECONDS_MAX} seconds.`, "duration");
  }
  const { width, height } = sizeOf(call);
  const job = {
    kind: "video",
    prompt: promptOf(directives),
    seed: call.seed ?? 0,
    width,
    height,
    seconds,
    hasAudio: call.hasAudio,
    sources: call.images.slice(0, 1).map(({ bytes }) => bytes),
  } as const;
  const { bytes, durationMs } = await runPaced<"video">(media, job, directives, call.signal, call.onProgress);
  return {
    bytes,
    contentType: "video/mp4",
    durationMs,
    usage: directives.reportsUsage ? { ...NO_USAGE, outputVideoMilliseconds: durationMs } : null,
    warnings: warningsOf(call, { width, height }),
  };
}

/** H.264 halves the colour resolution, so both sides must be even. */
function sizeOf({ size, aspectRatio }: VideoCall): { width: number; height: number } {
  if (size === null) return aspectRatio === "9:16" ? { width: SHORT_SIDE, height: LONG_SIDE } : { width: LONG_SIDE, height: SHORT_SIDE };
  const isWithin = (side: number) => Number.isInteger(side) && side >= SIDE_MIN && side <= SANDBOX_VIDEO_SIDE_MAX;
  if (!isWithin(size.width) || !isWithin(size.height)) {
    throw refuse(`The sandbox films ${SIDE_MIN} to ${SANDBOX_VIDEO_SIDE_MAX} pixels a side.`, "size");
  }
  return { width: size.width - (size.width % 2), height: size.height - (size.height % 2) };
}

function warningsOf(call: VideoCall, made: { readonly width: number; readonly height: number }): readonly string[] {
  const warnings: string[] = [];
  if (call.size !== null && (call.size.width !== made.width || call.size.height !== made.height)) {
    warnings.push(`H.264 wants even sides: the video is ${made.width}x${made.height}.`);
  }
  if (call.negativePrompt !== null) warnings.push("The sandbox does not read negative_prompt.");
  if (call.images.length > 1) warnings.push("The sandbox films the first picture only.");
  return warnings;
}
