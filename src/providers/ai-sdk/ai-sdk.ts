/**
 * Vendors with wire formats of their own, through the model interfaces of the Vercel AI SDK's provider packages: everything in a vendor's
 * row. Uses the interfaces only, because the SDK's functions would retry, and withhold data that we meter.
 */
import type { Provider } from "../provider.js";
import { AiSdkSpeechProvider, AiSdkTranscriptionProvider } from "./audio.js";
import { AiSdkChatProvider } from "./chat.js";
import { AiSdkClient, type AiSdkUpstream } from "./client.js";
import { AiSdkEmbeddingProvider } from "./embeddings.js";
import { AiSdkImageProvider } from "./images.js";
import { AiSdkVideoProvider } from "./video.js";

export function createAiSdkProvider(upstream: AiSdkUpstream): Provider {
  const client = new AiSdkClient(upstream);
  const { chat, image, video, speech, transcription, embedding } = upstream.vendor;
  return {
    ...(chat && { chat: new AiSdkChatProvider(client, chat) }),
    ...(image && { image: new AiSdkImageProvider(client, image) }),
    ...(video && { video: new AiSdkVideoProvider(client, video) }),
    ...(speech && { speech: new AiSdkSpeechProvider(client, speech) }),
    ...(transcription && { transcription: new AiSdkTranscriptionProvider(client, transcription) }),
    ...(embedding && { embedding: new AiSdkEmbeddingProvider(client, embedding) }),
    close: () => client.close(),
  };
}
