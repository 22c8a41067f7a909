/** Anthropic's Messages format on the wire, and the provider that speaks it to the fake upstream. */
import type { OnUnknownWord } from "../../src/lib/unknown-words.js";
import { toAnthropicAbilities, toAnthropicUpstream } from "../../src/providers/anthropic/anthropic.js";
import { type FetchFile, OpenAiClient } from "../../src/providers/openai/client.js";
import type { ChatProvider, UpstreamTimeouts } from "../../src/providers/provider.js";
import { VENDOR_KEY } from "./ai-sdk.js";
import type { FakeUpstream } from "./fake-upstream.js";
import { event, type Reply, type SseOptions, sse } from "./upstream-replies.js";

export interface AnthropicOptions {
  readonly timeouts?: Partial<UpstreamTimeouts>;
  readonly fetchFile?: FetchFile;
  readonly onUnknownWord?: OnUnknownWord;
}

export function connectAnthropic(upstream: FakeUpstream, options: AnthropicOptions = {}): { chat: ChatProvider; close(): Promise<void> } {
  const client = new OpenAiClient(
    toAnthropicUpstream({
      baseUrl: upstream.baseUrl,
      apiKey: VENDOR_KEY,
      timeouts: { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000, ...options.timeouts },
      onUnknownWord: options.onUnknownWord,
    }),
  );
  const { chat } = toAnthropicAbilities(client, options.fetchFile ?? (() => Promise.reject(new Error("Nothing is to be fetched."))));
  if (!chat) throw new Error("no chat");
  return { chat, close: () => client.close() };
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
