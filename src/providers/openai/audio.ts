/** Sound over OpenAI's wire format, as `/audio/speech` answers it: bytes with a content type, whole or bit by bit. */
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../http.js";
import { type MediaFile, SPEECH_CONTENT_TYPES, type SpeechFormat } from "../media.js";
import { ProviderError } from "../provider.js";
import { contentTypeOf, isEventStream, isJson, type OpenAiClient, refuse } from "./client.js";
import { toEmbeddedError } from "./errors.js";
import { parseObject } from "./json.js";

/** Other names of the same types. */
const SYNONYMS: Readonly<Record<string, string>> = {
  "audio/mp3": "audio/mpeg",
  "audio/x-mp3": "audio/mpeg",
  "audio/x-mpeg": "audio/mpeg",
  "audio/x-wav": "audio/wav",
  "audio/wave": "audio/wav",
  "audio/vnd.wave": "audio/wav",
  "audio/x-flac": "audio/flac",
  "audio/x-aac": "audio/aac",
  "application/ogg": "audio/ogg",
};
const UNTYPED = new Set(["", "application/octet-stream", "binary/octet-stream"]);

/** Resolves when the answer has begun; it is sound, or events when those were asked for. */
export async function requestAudio(
  client: OpenAiClient,
  fields: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
  isStreamed: boolean,
): Promise<UpstreamResponse> {
  const response = await client.send({ path: "/audio/speech", accept: "*/*", body: JSON.stringify(fields), signal, isStreamed });
  const type = bareTypeOf(response);
  if (type.startsWith("audio/") || type in SYNONYMS || UNTYPED.has(type)) return response;
  if (isEventStream(response) && isStreamed && fields.stream_format === "sse") return response;
  if (!isJson(response)) throw refuse(response, "The upstream answered something that is not sound.");
  const said = parseObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX));
  if (said?.error !== undefined && said.error !== null) throw toEmbeddedError(said.error, client.secrets);
  throw new ProviderError("invalid-response", "The upstream answered JSON where sound was expected.");
}

export function audioTypeOf(response: UpstreamResponse, format: SpeechFormat): string {
  const type = bareTypeOf(response);
  if (UNTYPED.has(type)) return SPEECH_CONTENT_TYPES[format];
  return SYNONYMS[type] ?? type;
}

export async function readAudio(response: UpstreamResponse, format: SpeechFormat): Promise<MediaFile> {
  const bytes = await response.readAll(UPSTREAM_BODY_BYTES_MAX);
  if (bytes.length === 0) throw new ProviderError("invalid-response", "The upstream answered no sound.");
  return { bytes, contentType: audioTypeOf(response, format) };
}

function bareTypeOf(response: UpstreamResponse): string {
  return (contentTypeOf(response).split(";", 1)[0] ?? "").trim();
}
