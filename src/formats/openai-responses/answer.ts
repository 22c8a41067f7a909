import { createId } from "../../lib/ids.js";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { type ResponseInput, type ResponseTool, wantsSummary } from "./request.js";

export interface ResponseTextPart {
  readonly type: "output_text";
  readonly text: string;
  readonly annotations: readonly unknown[];
  readonly logprobs: readonly unknown[];
}

export interface ResponseRefusalPart {
  readonly type: "refusal";
  readonly refusal: string;
}

export interface ResponseSummaryPart {
  readonly type: "summary_text";
  readonly text: string;
}

type ItemStatus = "in_progress" | "completed" | "incomplete";

export type ResponseOutputItem =
  | {
      readonly type: "message";
      readonly id: string;
      readonly role: "assistant";
      readonly status: ItemStatus;
      readonly content: readonly (ResponseTextPart | ResponseRefusalPart)[];
    }
  | {
      readonly type: "reasoning";
      readonly id: string;
      readonly status: ItemStatus;
      readonly summary: readonly ResponseSummaryPart[];
      readonly content: readonly { readonly type: "reasoning_text"; readonly text: string }[];
      /** What its vendor signed, for the next request. */
      readonly encrypted_content?: string;
    }
  | {
      readonly type: "custom_tool_call";
      readonly id: string;
      readonly call_id: string;
      readonly name: string;
      readonly namespace?: string;
      readonly input: string;
      readonly status: ItemStatus;
    }
  | {
      readonly type: "function_call";
      readonly id: string;
      readonly call_id: string;
      readonly name: string;
      readonly namespace?: string;
      readonly arguments: string;
      readonly status: ItemStatus;
    };

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

export interface ResponseObject {
  readonly id: string;
  readonly object: "response";
  /** Seconds. */
  readonly created_at: number;
  readonly status: ResponseStatus;
  readonly model: string;
  readonly output: readonly ResponseOutputItem[];
  /** Null while it is in progress. */
  readonly usage: ResponseUsage | null;
  readonly [field: string]: unknown;
}

export interface ResponseUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly [field: string]: unknown;
}

export interface FinishedResponse extends ResponseObject {
  readonly status: "completed" | "incomplete";
  readonly usage: ResponseUsage;
}

export interface ResponseFrame {
  readonly id: string;
  /** Seconds. */
  readonly createdAt: number;
  readonly model: string;
  readonly input: ResponseInput;
  readonly tools: readonly ResponseTool[];
  readonly keeping?: ResponseKeeping | undefined;
}

/** How a response is stored, and its history. */
export interface ResponseKeeping {
  /** The response that it continues. */
  readonly previousId?: string | null | undefined;
  readonly conversationId?: string | null | undefined;
  readonly isStored?: boolean | undefined;
  readonly isBackground?: boolean | undefined;
}

export function toResponseObject<Status extends ResponseObject["status"], Usage extends ResponseUsage | null>(
  { id, createdAt, model, input, tools, keeping = {} }: ResponseFrame,
  state: {
    readonly status: Status;
    readonly output: readonly ResponseOutputItem[];
    readonly usage: Usage;
    readonly incompleteReason?: "max_output_tokens" | "content_filter" | null;
    readonly receipt?: unknown;
  },
): ResponseObject & { readonly status: Status; readonly usage: Usage } {
  const { previousId = null, conversationId = null, isStored = false, isBackground = false } = keeping;
  return {
    id,
    object: "response",
    created_at: createdAt,
    status: state.status,
    error: null,
    incomplete_details: state.incompleteReason ? { reason: state.incompleteReason } : null,
    instructions: input.instructions ?? null,
    max_output_tokens: input.max_output_tokens ?? null,
    model,
    output: state.output,
    parallel_tool_calls: input.parallel_tool_calls ?? true,
    previous_response_id: previousId,
    reasoning: {
      effort: input.reasoning?.effort ?? null,
      summary: wantsSummary(input) ? (input.reasoning?.summary ?? input.reasoning?.generate_summary ?? null) : null,
    },
    store: isStored,
    ...(isBackground && { background: true }),
    ...(conversationId !== null && { conversation: { id: conversationId } }),
    temperature: input.temperature ?? null,
    text: { format: input.text?.format ?? { type: "text" }, ...(input.text?.verbosity != null && { verbosity: input.text.verbosity }) },
    tool_choice: input.tool_choice ?? "auto",
    tools,
    top_p: input.top_p ?? null,
    truncation: "disabled",
    usage: state.usage,
    ...(state.receipt !== undefined && { receipt: state.receipt }),
    user: input.user ?? null,
    metadata: input.metadata ?? {},
  };
}

/** Converts the `usage` of a chat completion, with `cost` and `child_cost`. */
export function toResponseUsage(reported: unknown): ResponseUsage {
  const usage = record(reported);
  const input = count(usage.prompt_tokens);
  const output = count(usage.completion_tokens);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: count(record(usage.prompt_tokens_details).cached_tokens) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: count(record(usage.completion_tokens_details).reasoning_tokens) },
    total_tokens: input + output,
    ...(typeof usage.cost === "number" && { cost: usage.cost }),
    ...(typeof usage.child_cost === "number" && { child_cost: usage.child_cost }),
  };
}

/** Null when it is complete. */
export function incompleteReasonOf(finishReason: unknown): "max_output_tokens" | "content_filter" | null {
  if (finishReason === "length") return "max_output_tokens";
  return finishReason === "content_filter" ? "content_filter" : null;
}

/** An error as callers get it (docs/spec/errors.md#envelope). */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly param?: string | null;
  readonly details?: unknown;
}

/** OpenAI's codes of failed responses for ours, and for those of upstreams. Clients repeat the request unless the code says that it is vain. */
const FAILURE_CODES: ReadonlyMap<unknown, string> = new Map([
  ["INSUFFICIENT_BALANCE", "insufficient_quota"],
  ["KEY_BUDGET_EXHAUSTED", "insufficient_quota"],
  ["MAX_COST_EXCEEDED", "insufficient_quota"],
  ["RATE_LIMITED", "rate_limit_exceeded"],
  ["BAD_REQUEST", "invalid_prompt"],
  ["CONTENT_BLOCKED", "invalid_prompt"],
  ["context_length_exceeded", "context_length_exceeded"],
  ["content_policy_violation", "invalid_prompt"],
  ["rate_limit_exceeded", "rate_limit_exceeded"],
]);

export function failureCodeOf({ code, details }: Failure): string {
  const upstreamCode = isRecord(details) ? details.upstreamCode : undefined;
  return FAILURE_CODES.get(upstreamCode) ?? FAILURE_CODES.get(code) ?? "server_error";
}

export function outputTextOf({ output }: ResponseObject): string {
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
  return parts.map((part) => (part.type === "output_text" ? part.text : "")).join("");
}

export function textPart(text: string, annotations: readonly unknown[], logprobs: readonly unknown[]): ResponseTextPart {
  return { type: "output_text", text, annotations, logprobs };
}

/** A chat's annotation, whose fields are in an object of its type's name; null for one of no type. */
export function toAnnotation(annotation: unknown): Readonly<Record<string, unknown>> | null {
  if (!isRecord(annotation) || typeof annotation.type !== "string") return null;
  const { type } = annotation;
  const nested = ownValue(annotation, type);
  return isRecord(nested) ? { ...nested, type } : annotation;
}

/** The prefix, an underscore and a unique id. */
export function createItemId(prefix: "msg" | "rs" | "fc" | "fco" | "ctc" | "call" | "cmp" | "item", id: string = createId()): string {
  return `${prefix}_${id.replaceAll("-", "")}`;
}

export function responseIdOf(generationId: string): string {
  return `resp_${generationId.replaceAll("-", "")}`;
}

export function conversationIdOf(id: string): string {
  return `conv_${id.replaceAll("-", "")}`;
}

const DIGITS = /^(resp|conv)_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;

/** The UUID of an id that `responseIdOf` or `conversationIdOf` made; null for any other text. */
export function uuidOf(id: string, prefix: "resp" | "conv"): string | null {
  const found = DIGITS.exec(id);
  return found?.[1] === prefix ? found.slice(2).join("-") : null;
}

const ITEM_DIGITS = /^[a-z]{2,3}_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})[0-9a-f]{4}$/;

/** The id of an output item, which names its response. */
export function outputItemIdOf(prefix: "msg" | "rs" | "fc" | "ctc", responseId: string, outputIndex: number): string {
  return `${prefix}_${responseId.slice(responseId.indexOf("_") + 1)}${outputIndex.toString(16).padStart(4, "0")}`;
}

/** The UUID of the response of an output item; null for any other text. */
export function uuidOfItem(id: string): string | null {
  const found = ITEM_DIGITS.exec(id);
  return found === null ? null : found.slice(1).join("-");
}

function record(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}
