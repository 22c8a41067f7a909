/** The sandbox's music model: a tune composed from prompt and seed (docs/sandbox-models.md). */
import { NO_USAGE } from "../../lib/usage.js";
import { SANDBOX_MUSIC_SECONDS, SANDBOX_MUSIC_SECONDS_MAX } from "../../limits.js";
import { type MusicAnswer, type MusicCall, type MusicProvider, SPEECH_CONTENT_TYPES } from "../media.js";
import { begin, promptOf, runPaced, type SandboxMedia } from "./media/calls.js";
import { refuse } from "./refusal.js";

export function createSandboxMusicProvider(media: SandboxMedia): MusicProvider {
  return { generate: (call) => generate(media, call) };
}

async function generate(media: SandboxMedia, call: MusicCall): Promise<MusicAnswer> {
  const directives = await begin(call.prompt, "prompt", call.signal, media.timeouts);
  const seconds = call.seconds ?? SANDBOX_MUSIC_SECONDS;
  if (!(seconds > 0) || seconds > SANDBOX_MUSIC_SECONDS_MAX) {
    throw refuse(`The sandbox plays ${SANDBOX_MUSIC_SECONDS_MAX} seconds at most.`, "duration");
  }
  const job = { kind: "music", prompt: promptOf(directives), seed: call.seed ?? 0, seconds, format: call.format } as const;
  const { bytes, durationMs } = await runPaced<"music">(media, job, directives, call.signal);
  return {
    bytes,
    contentType: SPEECH_CONTENT_TYPES[call.format],
    durationMs,
    usage: directives.reportsUsage ? { ...NO_USAGE, outputAudioMilliseconds: durationMs } : null,
    warnings: [],
  };
}
