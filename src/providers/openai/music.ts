/** Music from an upstream of OpenAI's formats, which have none for it: over `/audio/speech` (docs/spec/audio.md#music). */
import type { MusicAnswer, MusicCall, MusicProvider } from "../media.js";
import { readAudio, requestAudio } from "./audio.js";
import type { OpenAiClient } from "./client.js";

export class OpenAiMusicProvider implements MusicProvider {
  constructor(private readonly client: OpenAiClient) {}

  async generate(call: MusicCall): Promise<MusicAnswer> {
    const response = await requestAudio(this.client, toRequest(call), call.signal, false);
    return { ...(await readAudio(response, call.format)), durationMs: null, usage: null, warnings: [] };
  }
}

/** Unspecified: `duration` in seconds and `seed`, named as on this gateway's routes. */
export function toRequest(call: MusicCall): Record<string, unknown> {
  return {
    ...call.extra,
    model: call.upstreamModel,
    input: call.prompt,
    response_format: call.format,
    ...(call.seconds !== null && { duration: call.seconds }),
    ...(call.seed !== null && { seed: call.seed }),
  };
}
