/** Counts the tokens of a chat, of its request as OpenAI counts it and of its answer as upstreams bill it. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { countTexts } from "../../lib/tokenizer.js";
import { type ChatReader, type Holder, readChat } from "./prompt.js";
import { reasoningIn } from "./schema.js";

/** OpenAI's published chat counting: 3 tokens around each message, 1 more for a name, 3 before the answer. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const TOKENS_BEFORE_ANSWER = 3;
/** Around one tool call or declaration, beside its text. */
const TOKENS_PER_TOOL = 8;

/**
 * Estimates for parts that are not text: a 1024 x 1024 image in high detail (4 tiles of 170 and a base of 85) and in low detail, half a
 * minute of sound at 10 tokens a second, some pages of a document, ten seconds of video.
 */
const IMAGE_TOKENS = 765;
const IMAGE_LOW_DETAIL_TOKENS = 85;
const PART_TOKENS: Readonly<Record<string, number>> = { input_audio: 300, file: 1_500, video_url: 2_580 };

/** Parts of a chat request that a model reads beside its messages. */
export interface ChatDeclarations {
  readonly tools?: unknown;
  /** The former name of tools. */
  readonly functions?: unknown;
  /** JSON schemas are read like other text. */
  readonly response_format?: unknown;
}

/**
 * Counts a chat request's `messages`, tools, functions and schemas as an OpenAI upstream would. Accepts unvalidated input: values that are
 * no messages count as nothing.
 */
export function countChatTokens(messages: unknown, { tools, functions, response_format }: ChatDeclarations = {}): number {
  const count = new ChatCount();
  readChat({ messages, tools, functions, response_format }, count);
  return count.tokens + countTexts(count.texts);
}

/** Collects the texts of a chat request, and counts its other parts as an OpenAI upstream would. */
export class ChatCount implements ChatReader {
  readonly texts: string[] = [];
  tokens = TOKENS_BEFORE_ANSWER;
  /** Images, sound, videos and files, whose tokens only the upstream knows. */
  readonly parts: Readonly<Record<string, unknown>>[] = [];
  /** Unknown fields. */
  readonly unknowns: unknown[] = [];

  beginMessage(): void {
    this.tokens += TOKENS_PER_MESSAGE;
  }

  role(role: string): void {
    this.texts.push(role);
  }

  author(name: string): void {
    this.tokens += TOKENS_PER_NAME;
    this.texts.push(name);
  }

  text(text: string): void {
    this.texts.push(text);
  }

  beginCall(): void {
    this.tokens += TOKENS_PER_TOOL;
  }

  name(name: string): void {
    this.texts.push(name);
  }

  media(part: Readonly<Record<string, unknown>>): void {
    this.parts.push(part);
    this.tokens += part.type === "image_url" ? imageTokens(part.image_url) : (ownValue(PART_TOKENS, String(part.type)) ?? 0);
  }

  /** Labels count as nothing, but thoughts that a vendor signed are read by the model: most repeat the message's reasoning. */
  label(value: unknown, holder: Holder, key: string): void {
    if (key !== "reasoning_details") return;
    const thoughts = recordsOf(value).flatMap(({ text, summary }) => [text, summary].filter((each) => typeof each === "string"));
    const { reasoning_content, reasoning } = holder as Readonly<Record<string, unknown>>;
    const repeated = [reasoning_content, reasoning].filter((each) => typeof each === "string");
    if (charsOf(thoughts) > charsOf(repeated)) for (const thought of thoughts) this.texts.push(thought);
  }

  unknown(value: unknown): void {
    this.unknowns.push(value);
  }

  endMessages(): void {
    // Counts nothing.
  }

  declarations(declared: readonly unknown[]): void {
    this.tokens += TOKENS_PER_TOOL * declared.length;
    this.texts.push(JSON.stringify(declared));
  }

  schema({ type, json_schema: schema }: Readonly<Record<string, unknown>>): void {
    if (type === "json_schema" && schema) this.texts.push(JSON.stringify(schema));
  }
}

function charsOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

function imageTokens(image: unknown): number {
  return isRecord(image) && image.detail === "low" ? IMAGE_LOW_DETAIL_TOKENS : IMAGE_TOKENS;
}

/** Counts everything that an upstream bills as output in a message or streamed delta: content, reasoning, refusal, tool calls. */
export function countDeltaTokens(delta: unknown): number {
  if (!isRecord(delta)) return 0;
  const found: Found = { texts: [], tokens: 0 };
  findSaid(delta, found);
  return found.tokens + countTexts(found.texts);
}

/** The texts of a message, and the tokens of its other parts. */
interface Found {
  readonly texts: string[];
  tokens: number;
}

function findSaid(message: Readonly<Record<string, unknown>>, found: Found): void {
  const { content } = message;
  if (Array.isArray(content)) for (const part of content) findInPart(part, found);
  else findText(content, found);
  findText(reasoningIn(message), found);
  findText(message.refusal, found);
  if (Array.isArray(message.tool_calls)) for (const call of message.tool_calls) findInToolCall(call, found);
  if (isRecord(message.function_call)) findInToolCall({ function: message.function_call }, found);
}

function findInPart(part: unknown, found: Found): void {
  if (!isRecord(part) || typeof part.type !== "string") return;
  if (part.type === "text") findText(part.text, found);
  else if (part.type === "refusal") findText(part.refusal, found);
  else if (part.type === "image_url") found.tokens += imageTokens(part.image_url);
  else found.tokens += ownValue(PART_TOKENS, part.type) ?? 0;
}

function findInToolCall(call: unknown, found: Found): void {
  if (!isRecord(call)) return;
  if (isRecord(call.custom)) {
    found.tokens += TOKENS_PER_TOOL;
    findText(call.custom.name, found);
    findText(call.custom.input, found);
  }
  if (!isRecord(call.function)) return;
  if (typeof call.function.name === "string") {
    found.tokens += TOKENS_PER_TOOL;
    findText(call.function.name, found);
  }
  findText(call.function.arguments, found);
}

function findText(value: unknown, found: Found): void {
  if (typeof value === "string" && value !== "") found.texts.push(value);
}
