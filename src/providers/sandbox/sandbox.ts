/** The sandbox: an upstream whose models run in the process (docs/sandbox-models.md). */
import { GENERATION_TIMEOUT_MS, UPSTREAM_CONNECT_TIMEOUT_MS, UPSTREAM_IDLE_TIMEOUT_MS } from "../../limits.js";
import type { Provider, UpstreamTimeouts } from "../provider.js";
import { createSandboxMusicProvider, createSandboxSpeechProvider, createSandboxTranscriptionProvider } from "./audio.js";
import { createSandboxEmbeddingProvider } from "./embedding.js";
import { createSandboxImageProvider } from "./image.js";
import { MediaPool } from "./media/pool.js";
import { createSandboxModerationProvider } from "./moderation.js";
import { createSandboxRealtimeProvider } from "./realtime.js";
import { createSandboxRerankProvider } from "./rerank.js";
import { createSandboxChatProvider } from "./text.js";
import { createSandboxVideoProvider } from "./video.js";

const TIMEOUTS: UpstreamTimeouts = {
  connectMs: UPSTREAM_CONNECT_TIMEOUT_MS,
  idleMs: UPSTREAM_IDLE_TIMEOUT_MS,
  totalMs: GENERATION_TIMEOUT_MS,
};

/** Only the pool holds resources, and it starts no thread before its first job. */
export function createSandboxProvider(timeouts: UpstreamTimeouts = TIMEOUTS): Provider {
  const pool = new MediaPool();
  const media = { pool, timeouts };
  return {
    chat: createSandboxChatProvider({ timeouts }),
    image: createSandboxImageProvider(media),
    video: createSandboxVideoProvider(media),
    speech: createSandboxSpeechProvider(media),
    music: createSandboxMusicProvider(media),
    transcription: createSandboxTranscriptionProvider(media),
    embedding: createSandboxEmbeddingProvider(media),
    moderation: createSandboxModerationProvider(media),
    rerank: createSandboxRerankProvider(media),
    realtime: createSandboxRealtimeProvider(),
    close: () => pool.close(),
  };
}
