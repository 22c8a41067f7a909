/**
 * Upstreams of two formats that a client of Anthropic's format is tried against: Anthropic's own, and OpenAI's chat. Each answers a thought,
 * a text and calls, whole or streamed.
 */
import { anthropicMessage, anthropicSse } from "./anthropic.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "./openai-bodies.js";
import { json, type Reply, sse } from "./upstream-replies.js";

type Loose = Record<string, unknown>;

export interface SideReply {
  readonly isStreamed?: boolean;
  /** Names of functions, called in parallel; each gets its place as `n`. */
  readonly calls?: readonly string[];
  readonly thought?: string;
}

export function claudeReply(text: string, { isStreamed = false, calls = [], thought }: SideReply = {}): Reply {
  const content = [
    ...(thought === undefined ? [] : [{ type: "thinking", thinking: thought, signature: "c2ln" }]),
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...calls.map((name, index) => ({ type: "tool_use", id: `call_${name}`, name, input: { n: index } })),
  ];
  const reason = calls.length > 0 ? "tool_use" : "end_turn";
  return isStreamed ? anthropicSse(eventsOf(content, reason)) : json(anthropicMessage({ content, stop_reason: reason }));
}

export function openAiReply(text: string, { isStreamed = false, calls = [], thought }: SideReply = {}): Reply {
  const called = calls.map((name, index) => ({
    index,
    id: `call_${name}`,
    type: "function",
    function: { name, arguments: `{"n":${index}}` },
  }));
  const message = {
    role: "assistant",
    content: text,
    ...(thought !== undefined && { reasoning_content: thought }),
    ...(called.length > 0 && { tool_calls: called }),
  };
  const reason = calls.length > 0 ? "tool_calls" : "stop";
  if (isStreamed) return sse([chatChunk(message), chatChunk({}, reason), usageChunk(wireUsage(10, 4))]);
  return json({ ...chatCompletion(), choices: [{ index: 0, message, finish_reason: reason }] });
}

function eventsOf(content: readonly Loose[], reason: string): Loose[] {
  const usage = { input_tokens: 10, output_tokens: 4 };
  const head = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  };
  const blocks = content.flatMap((block, index): Loose[] => {
    const { type, text, thinking, signature, input } = block;
    const [empty, deltas]: [Loose, Loose[]] =
      type === "text"
        ? [{ type, text: "" }, [{ type: "text_delta", text }]]
        : type === "thinking"
          ? [
              { type, thinking: "", signature: "" },
              [
                { type: "thinking_delta", thinking },
                { type: "signature_delta", signature },
              ],
            ]
          : [{ ...block, input: {} }, [{ type: "input_json_delta", partial_json: JSON.stringify(input) }]];
    return [
      { type: "content_block_start", index, content_block: empty },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ];
  });
  const end = { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage };
  return [{ type: "message_start", message: head }, ...blocks, end, { type: "message_stop" }];
}
