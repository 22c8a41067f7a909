/** Why an answer of a chat ended. */
import { builder } from "../builder.js";

const FINISH_REASONS = ["stop", "length", "tool_calls", "content_filter", "function_call"] as const;

export const ChatFinishReason = builder.enumType("ChatFinishReason", {
  description: "The reason why an answer ended.",
  values: {
    STOP: { value: "stop", description: "The model finished, or reached a stop sequence." },
    LENGTH: { value: "length", description: "The answer reached its maximum length." },
    TOOL_CALLS: { value: "tool_calls", description: "The model requests tool calls and waits for their results." },
    CONTENT_FILTER: { value: "content_filter", description: "The upstream withheld the rest of the answer." },
    FUNCTION_CALL: { value: "function_call", description: "The model requests a function call, as older models name it." },
    OTHER: { value: "other", description: "Another reason of the upstream. `raw` contains it." },
  } satisfies Record<string, { value: (typeof FINISH_REASONS)[number] | "other"; description: string }>,
});

export function toFinishReason(reason: unknown): (typeof FINISH_REASONS)[number] | "other" | null {
  if (reason === null || reason === undefined) return null;
  return FINISH_REASONS.find((known) => known === reason) ?? "other";
}
