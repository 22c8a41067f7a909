/** A response of OpenAI's Responses format, as an upstream answers it, as a `chat.completion`. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { hasErrorContent, type Secrets, toEmbeddedError } from "../openai-chat/errors.js";
import type { ChatCompletion } from "../openai-chat/schema.js";
import { ProviderError } from "../upstream-error.js";

type Loose = Readonly<Record<string, unknown>>;

/** Text, reasoning and calls, as far as a chat can hold them. */
interface SaidItems {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly calls: readonly Loose[];
  readonly logprobs: readonly unknown[];
  readonly annotations: readonly Loose[];
  /** Thoughts that the upstream has encrypted, as `reasoning_details`. */
  readonly signed: readonly Loose[];
}

/** Throws a ProviderError when the response failed or is incomplete. */
export function toCompletion(response: Loose, secrets: Secrets): ChatCompletion {
  const { text, refusal, reasoning, calls, logprobs, annotations, signed } = toSaid(response.output);
  const message = {
    role: "assistant",
    content: text === "" && (calls.length > 0 || refusal !== "") ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(signed.length > 0 && { reasoning_details: signed.map((detail, index) => ({ index, ...detail })) }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(annotations.length > 0 && { annotations }),
  };
  const finishReason = toFinishReason(response, calls.length > 0, secrets);
  return {
    ...toHead(response),
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: toLogprobs(logprobs), finish_reason: finishReason }],
    ...toUsageObject(response.usage),
  };
}

/** Common first fields, also of chunks. */
export function toHead(response: Loose): { readonly id: string; readonly created: number; readonly model: string } {
  const { id, created_at: createdAt, model } = response;
  return {
    id: typeof id === "string" ? id : "",
    created: typeof createdAt === "number" ? Math.floor(createdAt) : Math.floor(Date.now() / 1_000),
    model: typeof model === "string" ? model : "",
  };
}

export function toFinishReason(response: Loose, hasCalls: boolean, secrets: Secrets): string {
  const { status, error, incomplete_details: details } = response;
  if (hasErrorContent(error)) throw toEmbeddedError(error, secrets);
  if (status === "failed") throw toEmbeddedError("The response failed.", secrets);
  if (status === "incomplete") return isRecord(details) && details.reason === "content_filter" ? "content_filter" : "length";
  if (status === "completed" || status === undefined) return hasCalls ? "tool_calls" : "stop";
  throw new ProviderError("invalid-response", "The upstream answered a response that is not finished.");
}

/** Other items are the upstream's own steps. Throws without a list of items. */
export function toSaid(output: unknown): SaidItems {
  if (!Array.isArray(output)) throw new ProviderError("invalid-response", "The upstream's answer is not a response.");
  const items = output.filter(isRecord);
  const parts = items.filter(({ type }) => type === "message").flatMap(({ content }) => recordsOf(content));
  const said = parts.filter(({ type }) => type === "output_text");
  return {
    text: said.map(({ text }) => textOf(text)).join(""),
    refusal: parts.map(({ type, refusal }) => (type === "refusal" ? textOf(refusal) : "")).join(""),
    reasoning: items.map(thoughtsOf).filter(Boolean).join("\n\n"),
    calls: items.map(toCall).filter((call) => call !== null),
    annotations: said.flatMap(({ annotations }) => recordsOf(annotations).map(toChatAnnotation)),
    signed: items.map(toSignedThought).filter((detail) => detail !== null),
    logprobs: said.flatMap(({ logprobs }) => (Array.isArray(logprobs) ? logprobs : [])),
  };
}

/** A chat has an annotation's fields in an object of its type's name. */
export function toChatAnnotation({ type, ...fields }: Loose): Loose {
  return typeof type === "string" && type !== "" ? { type, [type]: fields } : fields;
}

/** The format of encrypted thoughts of such upstreams, as gateways name it. */
export const SIGNED_FORMAT = "openai-responses-v1";

/** One of `reasoning_details`, to be sent back unchanged; null for other items. */
export function toSignedThought({ type, id, encrypted_content: data }: Loose): Loose | null {
  if (type !== "reasoning" || typeof data !== "string" || data === "") return null;
  return { type: "reasoning.encrypted", data, format: SIGNED_FORMAT, ...(typeof id === "string" && { id }) };
}

/** A call in the form of a chat message; null for other items. */
export function toCall({ type, id, call_id: callId, name, arguments: given, input }: Loose): Loose | null {
  const head = { id: textOf(callId) || textOf(id) };
  if (type === "function_call") return { ...head, type: "function", function: { name: textOf(name), arguments: textOf(given) } };
  if (type === "custom_tool_call") return { ...head, type: "custom", custom: { name: textOf(name), input: textOf(input) } };
  return null;
}

export function toLogprobs(logprobs: readonly unknown[]): Loose | null {
  return logprobs.length === 0 ? null : { content: logprobs, refusal: null };
}

/** The report under chat's names; empty without one. */
export function toUsageObject(usage: unknown): { readonly usage?: Loose } {
  if (!isRecord(usage)) return {};
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage;
  return {
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: total,
      ...(isRecord(usage.input_tokens_details) && { prompt_tokens_details: usage.input_tokens_details }),
      ...(isRecord(usage.output_tokens_details) && { completion_tokens_details: usage.output_tokens_details }),
    },
  };
}

/** The reasoning itself where the upstream shows it, else its summary. */
function thoughtsOf({ type, content, summary }: Loose): string {
  if (type !== "reasoning") return "";
  const whole = recordsOf(content).map(({ text }) => textOf(text));
  return whole.length > 0
    ? whole.join("")
    : recordsOf(summary)
        .map(({ text }) => textOf(text))
        .join("\n\n");
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
