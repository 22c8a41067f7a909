/** Speech over OpenAI's wire format: `/audio/speech`, passed on as it is made. */
import { UPSTREAM_STREAM_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../http.js";
import type { SpeechCall, SpeechProvider, SpeechStream } from "../media.js";
import { ProviderError } from "../provider.js";
import { audioTypeOf, requestAudio } from "./audio.js";
import type { OpenAiClient } from "./client.js";

export class OpenAiSpeechProvider implements SpeechProvider {
  constructor(private readonly client: OpenAiClient) {}

  async stream(call: SpeechCall): Promise<SpeechStream> {
    const response = await requestAudio(this.client, toRequest(call), call.signal, true);
    return { contentType: audioTypeOf(response, call.format), chunks: readChunks(response), warnings: [] };
  }
}

export function toRequest(call: SpeechCall): Record<string, unknown> {
  return {
    ...call.extra,
    model: call.upstreamModel,
    input: call.input,
    voice: call.voice,
    response_format: call.format,
    ...(call.speed !== null && { speed: call.speed }),
    ...(call.instructions !== null && { instructions: call.instructions }),
  };
}

async function* readChunks(response: UpstreamResponse): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for (let read = await response.read(); read !== null; read = await response.read()) {
      for (const chunk of read) {
        bytes += chunk.length;
        if (bytes > UPSTREAM_STREAM_BYTES_MAX) {
          throw new ProviderError("invalid-response", `The upstream's answer is larger than ${UPSTREAM_STREAM_BYTES_MAX} bytes.`);
        }
        yield chunk;
      }
    }
  } finally {
    response.destroy();
  }
}
