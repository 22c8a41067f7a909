/**
 * Walks the parts of a chat request that a model reads, in one order, for counting, checking and rewriting. Unknown fields of the request,
 * of a message or of a part count as text that a model reads.
 */
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";

type Fields = Readonly<Record<string, unknown>>;

/** The container of a value at `key`; a reader that rewrites walks a copy and writes there. */
export type Holder = Fields | readonly unknown[];

export interface ChatReader {
  /** A message begins; the following calls belong to it. */
  beginMessage(): void;
  role(role: string): void;
  /** The name of a message's author. */
  author(name: string, holder: Holder, key: string): void;
  /** Text of a message, or of a part of one. */
  text(text: string, holder: Holder, key: string): void;
  beginCall(): void;
  /** A name by which parts of the request refer to each other. */
  name(name: string, holder: Holder, key: string): void;
  /** An image, sound, video or file in `part[key]`. */
  media(part: Fields, key: string): void;
  /** Read by the upstream, not by the model: ids, labels, controls. They count as nothing. */
  label(value: unknown, holder: Holder, key: string): void;
  /** An unknown field of a message or part. */
  unknown(value: unknown, holder: Holder, key: string): void;
  /** The messages have ended; fields of the request follow. */
  endMessages(): void;
  /** Tools or functions. */
  declarations(declared: readonly unknown[], holder: Holder, key: string): void;
  /** A format of the answer. */
  schema(format: Fields, holder: Holder, key: string): void;
}

/** Validated as numbers, booleans or enums, or never passed on unchanged. */
const CONTROLS: ReadonlySet<string> = new Set([
  ...["messages", "model", "stream", "safe", "n", "seed", "temperature", "top_p", "max_tokens", "max_completion_tokens"],
  ...["presence_penalty", "frequency_penalty", "logprobs", "top_logprobs"],
]);
const DECLARATIONS: ReadonlySet<string> = new Set(["tools", "functions"]);
const LABELS: ReadonlySet<string> = new Set([
  ...["metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "stop", "logit_bias", "stream_options"],
  ...["tool_choice", "function_call", "parallel_tool_calls", "modalities", "audio", "reasoning_effort", "service_tier", "verbosity"],
  ...["store", "cache_control"],
]);
/** Parts that are not text, each in a field of that name. */
const MEDIA: ReadonlySet<string> = new Set(["image_url", "input_audio", "file", "video_url"]);

export function readChat(request: Fields, reader: ChatReader): void {
  const { messages } = request;
  if (Array.isArray(messages)) for (const message of messages) if (isRecord(message)) readMessage(message, reader);
  reader.endMessages();
  for (const name of Object.keys(request)) {
    if (!CONTROLS.has(name)) readField(name, ownValue(request, name), request, reader);
  }
}

function readField(name: string, value: unknown, request: Fields, reader: ChatReader): void {
  if (isNothing(value)) return;
  if (DECLARATIONS.has(name) && Array.isArray(value)) reader.declarations(value, request, name);
  else if (name === "response_format" && isRecord(value)) reader.schema(value, request, name);
  else if (LABELS.has(name)) reader.label(value, request, name);
  else reader.unknown(value, request, name);
}

function readMessage(message: Fields, reader: ChatReader): void {
  reader.beginMessage();
  for (const name of Object.keys(message)) {
    const value = ownValue(message, name);
    if (isNothing(value)) continue;
    switch (name) {
      case "role":
        if (typeof value === "string") reader.role(value);
        break;
      case "content":
        readContent(value, message, reader);
        break;
      case "name":
        if (typeof value === "string") reader.author(value, message, name);
        else reader.unknown(value, message, name);
        break;
      case "refusal":
      case "reasoning_content":
        readText(value, message, name, reader);
        break;
      case "reasoning":
        // Some answers have the same reasoning under both names.
        if (typeof message.reasoning_content === "string") reader.label(value, message, name);
        else readText(value, message, name, reader);
        break;
      case "tool_calls":
        if (!Array.isArray(value)) reader.unknown(value, message, name);
        else for (const call of value) if (isRecord(call)) readCall(call, reader);
        break;
      case "function_call":
        if (isRecord(value)) readCalled(value, reader);
        else reader.unknown(value, message, name);
        break;
      case "tool_call_id":
      case "reasoning_details":
        reader.label(value, message, name);
        break;
      default:
        reader.unknown(value, message, name);
    }
  }
}

function readContent(content: unknown, message: Fields, reader: ChatReader): void {
  if (!Array.isArray(content)) readText(content, message, "content", reader);
  else for (const part of content) if (isRecord(part)) readPart(part, reader);
}

function readPart(part: Fields, reader: ChatReader): void {
  const { type } = part;
  for (const name of Object.keys(part)) {
    const value = ownValue(part, name);
    if (name === "type" || isNothing(value)) continue;
    if (name === type && MEDIA.has(name)) reader.media(part, name);
    else if (name === type || (name === "text" && type === "text")) readText(value, part, name, reader);
    else if (name === "cache_control") reader.label(value, part, name);
    else reader.unknown(value, part, name);
  }
}

function readCall(call: Fields, reader: ChatReader): void {
  for (const name of Object.keys(call)) {
    const value = ownValue(call, name);
    if (name === "function" && isRecord(value)) readCalled(value, reader);
    else if (name === "custom" && isRecord(value)) readCalled(value, reader);
    else if (!isNothing(value)) reader.label(value, call, name);
  }
}

/** A call's function, or a custom tool, whose input is plain text. */
function readCalled(called: Fields, reader: ChatReader): void {
  reader.beginCall();
  for (const name of Object.keys(called)) {
    const value = ownValue(called, name);
    if (isNothing(value)) continue;
    if (name === "name" && typeof value === "string") reader.name(value, called, name);
    else if ((name === "arguments" || name === "input") && typeof value === "string") reader.text(value, called, name);
    else reader.unknown(value, called, name);
  }
}

function readText(value: unknown, holder: Fields, name: string, reader: ChatReader): void {
  if (typeof value === "string") reader.text(value, holder, name);
  else reader.unknown(value, holder, name);
}

function isNothing(value: unknown): value is null | undefined | "" {
  return value === undefined || value === null || value === "";
}
