/** An upstream that speaks OpenAI's wire formats: all abilities, over one pool of connections. */
import type { Provider } from "../provider.js";
import { OpenAiSpeechProvider } from "./audio.js";
import { OpenAiChatProvider } from "./chat.js";
import { OpenAiClient, type OpenAiUpstream } from "./client.js";
import { OpenAiEmbeddingProvider } from "./embeddings.js";
import { OpenAiImageProvider } from "./images.js";
import { OpenAiModerationProvider } from "./moderations.js";
import { OpenAiMusicProvider } from "./music.js";
import { OpenAiRealtimeProvider } from "./realtime.js";
import { RerankEndpointProvider } from "./rerank.js";
import { OpenAiTranscriptionProvider } from "./transcriptions.js";
import { OpenAiVideoProvider } from "./videos.js";

export function createOpenAiProvider(upstream: OpenAiUpstream): Provider {
  const client = new OpenAiClient(upstream);
  return { ...toOpenAiAbilities(client), close: () => client.close() };
}

export function toOpenAiAbilities(client: OpenAiClient): Omit<Provider, "close"> {
  const { upstream } = client;
  return {
    chat: new OpenAiChatProvider(client),
    image: new OpenAiImageProvider(client, upstream.fetchFile),
    video: new OpenAiVideoProvider(client),
    embedding: new OpenAiEmbeddingProvider(client),
    moderation: new OpenAiModerationProvider(client),
    rerank: new RerankEndpointProvider(client),
    speech: new OpenAiSpeechProvider(client),
    music: new OpenAiMusicProvider(client),
    transcription: new OpenAiTranscriptionProvider(client),
    realtime: new OpenAiRealtimeProvider(upstream),
  };
}
