/** The sandbox's providers of media, and calls with nothing but what a test is about. */
import { afterAll } from "vitest";
import { GENERATION_TIMEOUT_MS, UPSTREAM_CONNECT_TIMEOUT_MS, UPSTREAM_IDLE_TIMEOUT_MS } from "../../src/limits.js";
import type { ImageCall, InputFile, MusicCall, SpeechCall, TranscriptionCall, VideoCall } from "../../src/providers/media.js";
import type { Provider, UpstreamTimeouts } from "../../src/providers/provider.js";
import { createSandboxProvider } from "../../src/providers/sandbox/sandbox.js";

type SandboxProvider = Required<Omit<Provider, "realtime">>;

const TIMEOUTS: UpstreamTimeouts = {
  connectMs: UPSTREAM_CONNECT_TIMEOUT_MS,
  idleMs: UPSTREAM_IDLE_TIMEOUT_MS,
  totalMs: GENERATION_TIMEOUT_MS,
};

/** Closed when the file's tests are over. */
export function openSandbox(timeouts: Partial<UpstreamTimeouts> = {}): SandboxProvider {
  const provider = createSandboxProvider({ ...TIMEOUTS, ...timeouts });
  afterAll(() => provider.close());
  const { chat, image, video, speech, music, transcription, embedding, moderation, rerank } = provider;
  if (!chat || !image || !video || !speech || !music || !transcription || !embedding || !moderation || !rerank) {
    throw new Error("The sandbox does not offer everything.");
  }
  return { ...provider, chat, image, video, speech, music, transcription, embedding, moderation, rerank };
}

const base = () => ({ upstreamModel: "sandbox", signal: new AbortController().signal, extra: {} });

export function imageCall(call: Partial<ImageCall> & { readonly prompt: string }): ImageCall {
  const defaults = { size: { width: 96, height: 64 }, count: 1, seed: 1, negativePrompt: null, quality: null, isTransparent: false };
  return { ...base(), ...defaults, format: null, reasoning: null, images: [], mask: null, ...call };
}

export function videoCall(call: Partial<VideoCall> & { readonly prompt: string }): VideoCall {
  const defaults = { size: { width: 160, height: 90 }, aspectRatio: null, seconds: 1, hasAudio: false, seed: 1, negativePrompt: null };
  return { ...base(), ...defaults, images: [], onProgress: () => {}, ...call };
}

export function speechCall(call: Partial<SpeechCall> & { readonly input: string }): SpeechCall {
  return { ...base(), voice: "alloy", format: "mp3", speed: null, instructions: null, ...call };
}

export function musicCall(call: Partial<MusicCall> & { readonly prompt: string }): MusicCall {
  return { ...base(), seconds: 1, format: "mp3", seed: 1, ...call };
}

export function transcriptionCall(bytes: Uint8Array, call: Partial<TranscriptionCall> = {}): TranscriptionCall {
  const audio: InputFile = { bytes, contentType: "application/octet-stream", name: "file" };
  return { ...base(), audio, language: null, prompt: null, temperature: null, wantsSegments: false, wantsWords: false, ...call };
}

export const textCall = base;

/** Everything that a stream of chunks brings. */
export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return new Uint8Array(Buffer.concat(parts));
}
