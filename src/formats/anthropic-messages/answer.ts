/** The parts of a Messages answer (docs/spec/messages.md). */
import { isRecord } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import type { ReportedUsage } from "../../lib/usage.js";
import { JSON_BOUNDS } from "../../limits.js";
import { stopSequenceIn } from "../openai-chat/schema.js";
import { extraOf } from "./extra.js";

export type AnswerBlock =
  | { readonly type: "text"; readonly text: string; readonly citations?: readonly unknown[] }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown }
  /** Of a tool that the vendor ran. */
  | ServerBlock;

export interface ServerBlock {
  readonly type: string;
  readonly isServer?: never;
  readonly [field: string]: unknown;
}

export const STOP_REASONS = [
  ...(["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"] as const),
  "model_context_window_exceeded",
] as const;
export type StopReason = (typeof STOP_REASONS)[number];

export interface MessageUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
  /** Credits. */
  readonly cost?: number;
  readonly [field: string]: unknown;
}

export interface MessageAnswer {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly AnswerBlock[];
  /** Null in the event at the start. */
  readonly stop_reason: StopReason | null;
  /** Null also where the upstream does not report it. */
  readonly stop_sequence: string | null;
  readonly usage: MessageUsage;
}

export interface FinishedMessage extends MessageAnswer {
  readonly stop_reason: StopReason;
}

export const NO_MESSAGE_USAGE: MessageUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
};

/** Input tokens exclude those of the cache, as in Anthropic's format. */
export function toMessageUsage(usage: Omit<ReportedUsage, "inputCacheWriteHourTokens">, cost: number): MessageUsage {
  return {
    input_tokens: usage.inputTextTokens + usage.inputAudioTokens + usage.inputImageTokens,
    cache_creation_input_tokens: usage.inputCacheWriteTokens,
    cache_read_input_tokens: usage.inputCachedTokens,
    output_tokens: usage.outputTextTokens + usage.outputReasoningTokens + usage.outputAudioTokens + usage.outputImageTokens,
    cost,
  };
}

/** The end of a chat's choice. */
export interface ChoiceEnd {
  readonly finishReason: unknown;
  /** The vendor's own word, as gateways name it. */
  readonly native: unknown;
  readonly stopSequence: string | null;
}

const REASONS: ReadonlyMap<unknown, StopReason> = new Map(STOP_REASONS.map((reason) => [reason, reason]));

export function toChoiceEnd(choice: Readonly<Record<string, unknown>>): ChoiceEnd {
  return { finishReason: choice.finish_reason, native: choice.native_finish_reason, stopSequence: stopSequenceIn(choice) };
}

/** An answer with calls ends for their sake, also where the upstream says that it is complete. */
export function stopReasonOf({ finishReason, native, stopSequence }: ChoiceEnd, hasCalls: boolean): StopReason {
  const own = REASONS.get(native);
  if (own !== undefined && (own !== "end_turn" || !hasCalls)) return own;
  if (finishReason === "length") return "max_tokens";
  if (finishReason === "content_filter") return "refusal";
  if (hasCalls || finishReason === "tool_calls" || finishReason === "function_call") return "tool_use";
  return stopSequence === null ? "end_turn" : "stop_sequence";
}

/** The input of a call, which is an object in this format. Arguments that are none are kept under `arguments`, because they were paid for. */
export function inputOf(text: string): Readonly<Record<string, unknown>> {
  if (text.trim() === "") return {};
  try {
    const input = new BoundedJson(JSON_BOUNDS).parse(text);
    return isRecord(input) ? input : { arguments: input };
  } catch {
    return { arguments: text };
  }
}

/** A chat's citation: the vendor's own, or that of a web page; null for other annotations. */
export function toCitation(annotation: unknown): Readonly<Record<string, unknown>> | null {
  const { citation } = isRecord(annotation) ? extraOf(annotation) : {};
  if (isRecord(citation) && typeof citation.type === "string") return citation;
  const cited = isRecord(annotation) && isRecord(annotation.url_citation) ? annotation.url_citation : annotation;
  if (!isRecord(cited) || typeof cited.url !== "string") return null;
  const { url, title, content } = cited;
  return {
    type: "web_search_result_location",
    url,
    title: typeof title === "string" ? title : null,
    cited_text: typeof content === "string" ? content : "",
    encrypted_index: "",
  };
}

/** Anthropic's types of errors by the HTTP status, for envelopes and for the event of a failure. */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [504, "timeout_error"],
]);

/** An error as Anthropic's clients read it, with every field of the gateway's own. */
export function toMessageFailure<Reported extends { readonly requestId: string }>(error: Reported, status: number) {
  const type = ERROR_TYPES.get(status) ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { ...error, type }, request_id: error.requestId } as const;
}

export function messageIdOf(generationId: string): string {
  return `msg_${generationId.replaceAll("-", "")}`;
}
