/** Bodies of OpenAI's chat wire format, for tests and for the fake upstream. Every part can be set; the rest is fixed. */

/** OpenAI's `usage` object. */
export interface WireUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: Readonly<Record<string, number>>;
  readonly completion_tokens_details?: Readonly<Record<string, number>>;
}

export interface WireToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface WireChatOptions {
  readonly id?: string;
  readonly model?: string;
  /** The answer; null with tool calls. */
  readonly content?: string | null;
  readonly toolCalls?: readonly WireToolCall[];
  readonly finishReason?: string | null;
  /** Null leaves `usage` out. */
  readonly usage?: WireUsage | null;
}

export function wireUsage(promptTokens: number, completionTokens: number, details: Partial<WireUsage> = {}): WireUsage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...details,
  };
}

/** A `chat.completion` object. */
export function chatCompletion(options: WireChatOptions = {}): Record<string, unknown> {
  const { id = "chatcmpl-fake", model = "gpt-mock", content = "Hello, world.", toolCalls, usage = wireUsage(10, 4) } = options;
  const message: Record<string, unknown> = { role: "assistant", content };
  if (toolCalls) message.tool_calls = toolCalls.map(toWireToolCall);
  const finishReason = options.finishReason === undefined ? (toolCalls ? "tool_calls" : "stop") : options.finishReason;
  return {
    id,
    object: "chat.completion",
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, message, finish_reason: finishReason }],
    ...(usage === null ? {} : { usage }),
  };
}

/** One `chat.completion.chunk` object. */
export function chatChunk(
  delta: Readonly<Record<string, unknown>>,
  finishReason: string | null = null,
  index = 0,
): Record<string, unknown> {
  return {
    id: "chatcmpl-fake",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "gpt-mock",
    choices: [{ index, delta, finish_reason: finishReason }],
  };
}

/** The chunk that carries usage: its `choices` are empty. */
export function usageChunk(usage: WireUsage): Record<string, unknown> {
  return { id: "chatcmpl-fake", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-mock", choices: [], usage };
}

/** A whole streamed answer: the role, each piece of content, the finish reason and, unless null, usage. */
export function chatChunks(
  pieces: readonly string[],
  options: { readonly usage?: WireUsage | null; readonly finishReason?: string | null } = {},
): Record<string, unknown>[] {
  const { usage = wireUsage(10, pieces.length), finishReason = "stop" } = options;
  const chunks = [chatChunk({ role: "assistant", content: "" }), ...pieces.map((content) => chatChunk({ content }))];
  if (finishReason !== null) chunks.push(chatChunk({}, finishReason));
  if (usage !== null) chunks.push(usageChunk(usage));
  return chunks;
}

/** OpenAI's error body. */
export function errorBody(message: string, options: { type?: string; code?: string | null; param?: string | null } = {}) {
  return { error: { message, type: options.type ?? "invalid_request_error", param: options.param ?? null, code: options.code ?? null } };
}

function toWireToolCall(call: WireToolCall, index: number) {
  return { index, id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } };
}
