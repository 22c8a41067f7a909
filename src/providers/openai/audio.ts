/** Audio over OpenAI's wire format, as answered by `/audio/speech`: bytes with a content type, whole or streamed. */

import { hasErrorContent, toEmbeddedError } from "../../formats/openai-chat/errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { parseObject } from "../../formats/upstream-json.js";
import { bareMediaType, type GeneratedType, generatedTypeOf } from "../../lib/content-types.js";
import { UPSTREAM_BODY_BYTES_MAX, UPSTREAM_STREAM_BYTES_MAX } from "../../limits.js";
import {
  type MediaFile,
  SPEECH_CONTENT_TYPES,
  type SpeechCall,
  type SpeechFormat,
  type SpeechProvider,
  type SpeechStream,
} from "../media.js";
import type { UpstreamResponse } from "../upstream-response.js";
import { contentTypeOf, isJson, type OpenAiClient, refuse } from "./client.js";

/** Audio arrives in large chunks, and pausing a connection costs more than passing one on. */
const READ_AHEAD_BYTES = 256 * 1024;

const UNTYPED = new Set(["", "application/octet-stream", "binary/octet-stream"]);

/** Resolves when an audio answer has begun. */
export async function requestAudio(
  client: OpenAiClient,
  fields: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
  isStreamed: boolean,
): Promise<UpstreamResponse> {
  const readAheadBytes = READ_AHEAD_BYTES;
  const response = await client.send({ path: "/audio/speech", accept: "*/*", json: fields, signal, isStreamed, readAheadBytes });
  const type = bareMediaType(contentTypeOf(response));
  if (type.startsWith("audio/") || soundTypeOf(type) !== null || UNTYPED.has(type)) return response;
  if (!isJson(response)) throw refuse(response, "The upstream's answer is not audio.");
  const said = parseObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX));
  if (hasErrorContent(said?.error)) throw toEmbeddedError(said?.error, client.secrets);
  throw new ProviderError("invalid-response", "The upstream answered JSON where sound was expected.");
}

/** The upstream's type if it is a known audio type, else the requested one. */
export function audioTypeOf(response: UpstreamResponse, format: SpeechFormat): GeneratedType {
  return soundTypeOf(contentTypeOf(response)) ?? SPEECH_CONTENT_TYPES[format];
}

export async function readAudio(response: UpstreamResponse, format: SpeechFormat): Promise<MediaFile> {
  const bytes = await response.readAll(UPSTREAM_BODY_BYTES_MAX);
  if (bytes.length === 0) throw new ProviderError("invalid-response", "The upstream answered no sound.");
  return { bytes, contentType: audioTypeOf(response, format) };
}

function soundTypeOf(said: string): GeneratedType | null {
  const type = generatedTypeOf(said);
  return type?.startsWith("audio/") ? type : null;
}

// Speech over OpenAI's wire format: `/audio/speech`, passed on as it is generated.

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
