/** A whole `chat.completion` as the stream that it would have been: for upstreams that ignore `stream: true`. */

import type { ChatChoice, ChatChunkChoice, ChatChunkObject, ChatCompletion, ChatDelta } from "../../lib/chat-format.js";
import { formatSseEvent } from "../../lib/sse.js";
import type { ChatChunk } from "../provider.js";
import { toUsage } from "./usage.js";

/** Each choice's message in one chunk and its finish_reason in another; then usage, when the completion reports it. */
export function toChunks(completion: ChatCompletion): readonly ChatChunk[] {
  const { choices, usage, ...head } = completion;
  const base = { ...head, object: "chat.completion.chunk" };
  const chunks: ChatChunk[] = [];
  for (const [position, choice] of (choices ?? []).entries()) {
    const index = choice.index ?? position;
    chunks.push(toChunk({ ...base, choices: [toContentChoice(choice, index)] }));
    chunks.push(toChunk({ ...base, choices: [{ index, delta: {}, finish_reason: choice.finish_reason ?? "stop" }] }));
  }
  if (usage !== undefined && usage !== null) chunks.push(toChunk({ ...base, choices: [], usage }));
  return chunks;
}

/** A chunk with its bytes and what usage it carries. */
export function toChunk(object: ChatChunkObject): ChatChunk {
  return { object, bytes: formatSseEvent(JSON.stringify(object)), usage: toUsage(object.usage) };
}

function toContentChoice(choice: ChatChoice, index: number): ChatChunkChoice {
  const { message, finish_reason: _, ...rest } = choice;
  return { ...rest, index, delta: toDelta(message ?? {}), finish_reason: null };
}

/** Tool calls carry their index in a stream, and only there. */
function toDelta(message: ChatDelta): ChatDelta {
  if (!Array.isArray(message.tool_calls)) return message;
  return { ...message, tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) };
}
