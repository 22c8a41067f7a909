/** A message of Anthropic's Messages format, as an upstream answers it, as a `chat.completion`. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import type { ChatCompletion } from "../openai-chat/schema.js";
import { ProviderError } from "../upstream-error.js";
import { type BlockKind, isServerBlock, toExtra, toOrder } from "./extra.js";
import { endingIn } from "./own-ending.js";
import { toChatUsage } from "./upstream-usage.js";

type Loose = Readonly<Record<string, unknown>>;

const FINISH: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  pause_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content_filter",
};
/** Reasons that a chat's `finish_reason` tells as well. */
const TOLD: ReadonlySet<unknown> = new Set(["end_turn", "tool_use", "max_tokens"]);
const REASON_CHARS_MAX = 64;
/** Above any stop sequence that the format takes. */
const SEQUENCE_CHARS_MAX = 4_096;

/** The end of a chat's choice, in its own words and the vendor's. */
export function toEnd({ stop_reason: reason, stop_sequence: sequence }: Loose): Loose {
  if (typeof reason !== "string" || reason === "") {
    throw new ProviderError("invalid-response", "The upstream's answer does not say why it ended.");
  }
  return {
    finish_reason: ownValue(FINISH, reason) ?? "stop",
    ...(!TOLD.has(reason) && { native_finish_reason: reason.slice(0, REASON_CHARS_MAX) }),
    ...(typeof sequence === "string" && { stop_reason: sequence.slice(0, SEQUENCE_CHARS_MAX) }),
  };
}

/** Throws a ProviderError for another answer than a message. */
export function toCompletion(message: Loose): ChatCompletion {
  const { content } = message;
  if (!Array.isArray(content)) throw new ProviderError("invalid-response", "The upstream's answer is not a message.");
  const usage = isRecord(message.usage) ? toChatUsage(message.usage) : null;
  return {
    ...toHead(message),
    object: "chat.completion",
    choices: [{ index: 0, message: toMessage(message, recordsOf(content)), logprobs: null, ...toEnd(message) }],
    ...(usage !== null && { usage }),
  };
}

/** Common first fields, also of chunks. */
export function toHead({ id, model }: Loose): { readonly id: string; readonly created: number; readonly model: string } {
  return {
    id: typeof id === "string" ? id : "",
    created: Math.floor(Date.now() / 1_000),
    model: typeof model === "string" ? model : "",
  };
}

function toMessage(message: Loose, blocks: readonly Loose[]) {
  const texts = blocks.filter(({ type }) => type === "text");
  const thoughts = blocks.filter(isThought);
  const calls = blocks.filter(({ type }) => type === "tool_use");
  const text = texts.map((block) => textOf(block.text)).join("");
  const signed = thoughts.filter(isSigned);
  const reasoning = thoughts.map((block) => textOf(block.thinking)).join("");
  const annotations = citedIn(texts);
  const server = blocks.filter(({ type }) => isServerBlock(type));
  const order = toOrder(blocks.flatMap((block) => kindOf(block) ?? []));
  const ending = endingIn(message, isRecord(message.usage) ? message.usage : {});
  const ordered = order !== null && { order, ...textLengths(texts), ...(server.length > 0 && { blocks: server }) };
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(signed.length > 0 && { reasoning_details: signed.map(toDetail) }),
    ...(calls.length > 0 && { tool_calls: calls.map(toCall) }),
    ...(annotations.length > 0 && { annotations }),
    ...((ordered || ending !== null) && toExtra({ ...ordered, ...(ending !== null && { ending }) })),
  };
}

function textLengths(texts: readonly Loose[]) {
  return texts.length > 1 ? { texts: texts.map(({ text }) => textOf(text).length) } : {};
}

/** Null for blocks of other kinds. */
export function kindOf({ type }: Loose): BlockKind | null {
  if (type === "thinking" || type === "redacted_thinking") return "thinking";
  if (type === "text") return "text";
  if (isServerBlock(type)) return "server";
  return type === "tool_use" ? "call" : null;
}

export function isThought(block: Loose): boolean {
  return kindOf(block) === "thinking";
}

/** Other servers of this format leave thoughts unsigned: their text is all that there is of them. */
export function isSigned(thought: Loose): boolean {
  return thought.type === "redacted_thinking" || textOf(thought.signature) !== "";
}

/** One of `reasoning_details`, to be sent back unchanged. */
export function toDetail(block: Loose, index: number): Loose {
  if (block.type === "redacted_thinking") {
    const data = textOf(block.data);
    return { type: "reasoning.encrypted", index, data, ...toExtra({ redactedData: data }) };
  }
  return { type: "reasoning.text", index, text: textOf(block.thinking), ...toExtra({ signature: textOf(block.signature) }) };
}

function toCall({ id, name, input }: Loose) {
  return { id: textOf(id), type: "function", function: { name: textOf(name), arguments: JSON.stringify(input ?? {}) } };
}

/** The citations of text blocks, each for the characters of its block in the whole text. */
function citedIn(texts: readonly Loose[]): Loose[] {
  const cited: Loose[] = [];
  let at = 0;
  for (const { text, citations } of texts) {
    const end = at + textOf(text).length;
    for (const citation of recordsOf(citations)) cited.push(toAnnotation(citation, at, end));
    at = end;
  }
  return cited;
}

/** `start` and `end` are of the cited text in the answer. */
export function toAnnotation(citation: Loose, start: number, end: number): Loose {
  const { url, title, document_title: document, cited_text: content, source } = citation;
  const range = { start_index: start, end_index: end, ...(typeof content === "string" && { content }) };
  if (typeof url === "string") {
    return { type: "url_citation", url_citation: { url, title: textOf(title) || url, ...range }, ...toExtra({ citation }) };
  }
  const name = textOf(document) || textOf(title) || textOf(source);
  return { type: "document_citation", document_citation: { title: name, ...range }, ...toExtra({ citation }) };
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
