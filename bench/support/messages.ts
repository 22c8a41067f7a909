/** The chat of the benchmarks in Anthropic's Messages format: the request, its JSON answer, and its stream. */
import { completionDocument, requestBody, SLUICE_PREFIX, type StreamDocument, streamDocument, UPSTREAM_PREFIX } from "./documents.js";

export const MESSAGES_MODEL = "claude";

interface Message {
  readonly role: string;
  readonly content: string;
}

interface ChatDocument {
  readonly choices: readonly [{ readonly message?: { readonly content: string }; readonly delta?: { readonly content?: string } }];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

/** The same conversation and limits as the chat's. */
export function messagesRequest(isStreamed: boolean): string {
  const chat = JSON.parse(requestBody("json", SLUICE_PREFIX)) as { messages: readonly Message[]; temperature: number; max_tokens: number };
  const [system, ...messages] = chat.messages;
  return JSON.stringify({
    model: SLUICE_PREFIX + MESSAGES_MODEL,
    system: system?.content,
    messages,
    temperature: chat.temperature,
    max_tokens: chat.max_tokens,
    ...(isStreamed && { stream: true }),
  });
}

/** The upstream's answer, with the text and the amounts of the chat's. */
export function messageDocument(): string {
  const { choices, usage } = JSON.parse(completionDocument()) as ChatDocument;
  return JSON.stringify({
    ...start(),
    content: [{ type: "text", text: choices[0].message?.content ?? "" }],
    stop_reason: "end_turn",
    usage: { ...inputUsage(usage.prompt_tokens), output_tokens: usage.completion_tokens },
  });
}

/** The upstream's stream, with a delta for each of the chat's. */
export function messageStreamDocument(deltaCount: number): StreamDocument {
  const { deltas, ending } = streamDocument(deltaCount);
  const { prompt_tokens, completion_tokens } = usageOf(ending);
  const opening = [
    event({
      type: "message_start",
      message: { ...start(), content: [], stop_reason: null, usage: { ...inputUsage(prompt_tokens), output_tokens: 1 } },
    }),
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  ].join("");
  const texts = deltas.map((each) => (JSON.parse(each.slice("data: ".length)) as ChatDocument).choices[0].delta?.content ?? "");
  const pieces = texts.map((text) => event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }));
  const [first = "", ...others] = pieces;
  return {
    deltas: [opening + first, ...others],
    ending: [
      event({ type: "content_block_stop", index: 0 }),
      event({
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: completion_tokens },
      }),
      event({ type: "message_stop" }),
    ].join(""),
  };
}

function start(): object {
  return {
    id: "msg_bench0123456789abcdef",
    type: "message",
    role: "assistant",
    model: UPSTREAM_PREFIX + MESSAGES_MODEL,
    stop_sequence: null,
  };
}

function inputUsage(inputTokens: number): object {
  return { input_tokens: inputTokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
}

function usageOf(ending: string): ChatDocument["usage"] {
  const [line] = ending.split("\n").filter((each) => each.includes('"usage"'));
  return (JSON.parse((line ?? "").slice("data: ".length)) as ChatDocument).usage;
}

function event(value: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}
