/**
 * OpenAI's formats at an address that a user registered (docs/spec/community-models.md#record): for text the exact endpoint, in one of two
 * chat formats; for media the base of the API or one of its endpoints; for video the exact address. It offers that one ability.
 */

import { ownValue } from "../../lib/own-values.js";
import { withoutTrailing } from "../../lib/urls.js";
import type { Provider } from "../provider.js";
import { OpenAiSpeechProvider } from "./audio.js";
import { OpenAiChatProvider } from "./chat.js";
import type { FetchFile, OpenAiClient, OpenAiUpstream } from "./client.js";
import { OpenAiEmbeddingProvider } from "./embeddings.js";
import { EndpointVideoProvider } from "./endpoint-video.js";
import { OpenAiImageProvider } from "./images.js";
import { ResponsesChatProvider } from "./responses.js";
import { OpenAiTranscriptionProvider } from "./transcriptions.js";

export type EndpointApi = "chat_completions" | "responses";

export interface OpenAiEndpoint {
  /** As registered. */
  readonly url: string;
  /** A modality that can be registered: text, image, video, speech, transcription, embedding. */
  readonly modality: string;
  /** For text. */
  readonly api: EndpointApi | null;
}

export function toEndpointAddress({ url, modality }: OpenAiEndpoint): Pick<OpenAiUpstream, "baseUrl" | "isExact"> {
  const isExact = modality === "text" || modality === "video";
  return isExact ? { baseUrl: url, isExact } : { baseUrl: toBaseUrl(url, modality) };
}

/** `client` is for the address above. */
export function toEndpointAbilities(
  { modality, api }: OpenAiEndpoint,
  client: OpenAiClient,
  fetchFile: FetchFile,
): Omit<Provider, "close"> {
  switch (modality) {
    case "text":
      return { chat: api === "responses" ? new ResponsesChatProvider(client) : new OpenAiChatProvider(client, "") };
    case "image":
      return { image: new OpenAiImageProvider(client, fetchFile) };
    case "video":
      return { video: new EndpointVideoProvider(client, fetchFile) };
    case "speech":
      return { speech: new OpenAiSpeechProvider(client) };
    case "transcription":
      return { transcription: new OpenAiTranscriptionProvider(client) };
    case "embedding":
      return { embedding: new OpenAiEmbeddingProvider(client) };
    default:
      return {};
  }
}

// Addresses under which a media API may be registered: its base, or one of its endpoints.

/** Endings of a full endpoint, as OpenAI names them. */
const ENDINGS: Readonly<Record<string, readonly string[]>> = {
  image: ["/images/generations", "/images/edits"],
  speech: ["/audio/speech"],
  transcription: ["/audio/transcriptions"],
  embedding: ["/embeddings"],
};

/** Removes the endpoint's path and keeps the query: `https://host/v1/images/edits?v=2` to `https://host/v1?v=2`. */
export function toBaseUrl(address: string, modality: string): string {
  const url = new URL(address);
  const path = withoutTrailing(url.pathname, "/");
  const ending = ownValue(ENDINGS, modality)?.find((known) => path.toLowerCase().endsWith(known));
  url.pathname = ending === undefined ? path : path.slice(0, -ending.length);
  return url.href;
}
