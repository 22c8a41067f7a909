/** A vendor's package against the fake upstream, and what the vendors' documented formats look like on the wire. */

import type { OnUnknownWord } from "../../src/lib/unknown-words.js";
import { createAiSdkProvider } from "../../src/providers/ai-sdk/ai-sdk.js";
import { VENDORS, type VendorName } from "../../src/providers/ai-sdk/vendors.js";
import type { FetchFile } from "../../src/providers/openai/client.js";
import type { Provider, UpstreamTimeouts } from "../../src/providers/provider.js";
import type { FakeUpstream } from "./fake-upstream.js";
import { event, type Reply, type SseOptions, sse } from "./upstream-replies.js";

export const VENDOR_KEY = "vendor-key-0123456789";

export interface ConnectOptions {
  readonly timeouts?: Partial<UpstreamTimeouts>;
  readonly fetchFile?: FetchFile;
  readonly onUnknownWord?: OnUnknownWord;
}

export function connectVendor(upstream: FakeUpstream, vendor: VendorName, options: ConnectOptions = {}): Provider {
  return createAiSdkProvider({
    vendor: VENDORS[vendor],
    baseUrl: upstream.baseUrl,
    apiKey: VENDOR_KEY,
    timeouts: { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000, ...options.timeouts },
    onUnknownWord: options.onUnknownWord,
    fetchFile: options.fetchFile ?? (() => Promise.reject(new Error("Nothing is to be fetched."))),
  });
}

/** The usage of Anthropic's answers below: 20 new, 100 from the cache, 50 into it, 30 put out of which 12 are thoughts. */
export const ANTHROPIC_USAGE = {
  input_tokens: 20,
  cache_read_input_tokens: 100,
  cache_creation_input_tokens: 50,
  output_tokens: 30,
  output_tokens_details: { thinking_tokens: 12 },
};

/** Anthropic Messages: an answer with thinking, text and a call of a tool. */
export function anthropicMessage(more: object = {}): object {
  return {
    id: "msg_01",
    type: "message",
    role: "assistant",
    model: "claude-test-1",
    content: [
      { type: "thinking", thinking: "They want the weather.", signature: "c2lnbmF0dXJl" },
      { type: "text", text: "Let me look." },
      { type: "tool_use", id: "toolu_01", name: "weather", input: { city: "Ulm" } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: ANTHROPIC_USAGE,
    ...more,
  };
}

/** The same as Anthropic streams it. */
export function anthropicEvents(): readonly Record<string, unknown>[] {
  const { output_tokens: _, output_tokens_details: _details, ...input } = ANTHROPIC_USAGE;
  const start = { id: "msg_01", type: "message", role: "assistant", model: "claude-test-1", content: [], stop_reason: null };
  return [
    { type: "message_start", message: { ...start, stop_sequence: null, usage: { ...input, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "They want " } },
    { type: "ping" },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "the weather." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2lnbmF0dXJl" } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Let me " } },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "look." } },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "toolu_01", name: "weather", input: {} } },
    { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"city":' } },
    { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '"Ulm"}' } },
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: ANTHROPIC_USAGE },
    { type: "message_stop" },
  ];
}

/** Events are named by their type, and there is no `[DONE]`. */
export function anthropicSse(events: readonly Record<string, unknown>[], options: SseOptions = {}): Reply {
  return sse(
    events.map((data) => event(data, String(data.type))),
    { done: false, ...options },
  );
}

/**
 * The usage of Gemini's answers below: a prompt of 120 tokens, 30 of them audio, 40 (10 of the audio) from the cache, 5 beside it
 * for Google's own tools; 25 put out, and 15 thoughts.
 */
export const GEMINI_USAGE = {
  promptTokenCount: 120,
  cachedContentTokenCount: 40,
  candidatesTokenCount: 25,
  thoughtsTokenCount: 15,
  toolUsePromptTokenCount: 5,
  totalTokenCount: 165,
  promptTokensDetails: [
    { modality: "TEXT", tokenCount: 90 },
    { modality: "AUDIO", tokenCount: 30 },
  ],
  cacheTokensDetails: [
    { modality: "TEXT", tokenCount: 30 },
    { modality: "AUDIO", tokenCount: 10 },
  ],
  candidatesTokensDetails: [{ modality: "TEXT", tokenCount: 25 }],
};

export function geminiAnswer(parts: readonly object[], more: object = {}): Record<string, unknown> {
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0, ...more }],
    usageMetadata: GEMINI_USAGE,
    modelVersion: "gemini-test-1",
    responseId: "resp_01",
  };
}
