/**
 * Answers of upstreams in OpenAI's own form. Each function returns the object that it was given when that has the form already, so that its
 * bytes pass unchanged.
 */
import { isRecord } from "../../lib/json.js";
import { ownValue, withFields } from "../../lib/own-values.js";
import { type CallPiece, createCallId, StreamedCalls } from "./calls.js";
import {
  type ChatChoice,
  type ChatChunkChoice,
  type ChatChunkObject,
  type ChatCompletion,
  type ChatDelta,
  plainText,
  reasoningIn,
} from "./schema.js";

/** A whole answer. */
export function toOwnCompletion(completion: ChatCompletion): ChatCompletion {
  const choices = mapped(completion.choices ?? [], toOwnChoice);
  return choices === completion.choices || choices.length === 0 ? completion : withFields(completion, { choices });
}

function toOwnChoice(choice: ChatChoice): ChatChoice {
  const { message } = choice;
  if (!message) return choice;
  const own = withIds(toOwnMessage(message));
  return own === message ? choice : withFields(choice, { message: own });
}

/** Each call with an id of its own and a type. */
function withIds(message: ChatDelta): ChatDelta {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  const taken = new Set<unknown>();
  const own = mapped(calls as readonly CallPiece[], (call) => {
    const { id, type } = call;
    const isOwn = typeof id === "string" && id !== "" && !taken.has(id);
    taken.add(id);
    if (isOwn && type) return call;
    return withFields(call, {
      id: isOwn ? id : createCallId(),
      type: type || (isRecord(call.custom) ? "custom" : "function"),
    }) as CallPiece;
  });
  return own === calls ? message : withFields(message, { tool_calls: own });
}

/** The chunks of one stream. */
export class OwnChunks {
  /** By the choice's index. */
  private readonly calls = new Map<number, StreamedCalls>();
  /** Whether the role of each choice that has begun was added, by the choice's index. */
  private readonly isRoleAdded: boolean[] = [];
  private last: ChatChunkObject | null = null;

  take(chunk: ChatChunkObject): ChatChunkObject {
    const choices = mapped(chunk.choices ?? [], this.toChoice);
    this.last = chunk;
    return choices === chunk.choices || choices.length === 0 ? chunk : withFields(chunk, { choices });
  }

  /** The calls that still wait for their names; null for none. */
  end(): ChatChunkObject | null {
    const choices: ChatChunkChoice[] = [];
    for (const [index, calls] of this.calls) {
      if (calls.isHolding) choices.push({ index, delta: { tool_calls: calls.take([], true) }, finish_reason: null });
    }
    if (choices.length === 0) return null;
    const { usage: _, ...head } = this.last ?? {};
    return withFields(head, { choices });
  }

  private readonly toChoice = (choice: ChatChunkChoice): ChatChunkChoice => {
    const { index = 0, delta, finish_reason: reason } = choice;
    // Azure's late results of its content filter have none; clients read it unasked.
    const plain = this.withRole(toOwnMessage(delta ?? {}), index);
    const own = this.withCalls(plain, index, typeof reason === "string" && reason !== "");
    return own === delta ? choice : withFields(choice, own === plain ? { delta: own } : { index, delta: own });
  };

  /** Official clients need the role in the first piece of a choice, and some join the texts of a second one to it. */
  private withRole(delta: ChatDelta, index: number): ChatDelta {
    const isAdded = this.isRoleAdded[index];
    if (isAdded === undefined) {
      const { role } = delta;
      const lacksRole = typeof role !== "string" || role === "";
      this.isRoleAdded[index] = lacksRole;
      return lacksRole ? { ...delta, role: "assistant" } : delta;
    }
    if (!isAdded || delta.role === undefined) return delta;
    const { role: _, ...rest } = delta;
    return rest;
  }

  private withCalls(delta: ChatDelta, index: number, isLast: boolean): ChatDelta {
    const pieces: readonly CallPiece[] = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    let calls = this.calls.get(index);
    if (pieces.length === 0 && !(isLast && calls?.isHolding)) return delta;
    if (!calls) {
      calls = new StreamedCalls();
      this.calls.set(index, calls);
    }
    const passed = calls.take(pieces, isLast);
    if (passed === pieces) return delta;
    const { tool_calls: _, ...rest } = delta;
    return passed.length === 0 ? rest : withFields(rest, { tool_calls: passed });
  }
}

/** A message or a piece of one: content as text, thoughts in a field of their own, arguments of calls as text. */
function toOwnMessage(message: ChatDelta): ChatDelta {
  const { content, tool_calls: calls } = message;
  const plain = Array.isArray(content) ? withPlainContent(message, content) : message;
  if (!Array.isArray(calls)) return plain;
  const written = mapped(calls as readonly CallPiece[], withWrittenArguments);
  return written === calls ? plain : withFields(plain, { tool_calls: written });
}

/** Some servers send the arguments as the object that OpenAI writes as a text. A `custom` that is not an object says nothing. */
function withWrittenArguments(call: CallPiece): CallPiece {
  const { function: called, custom, ...rest } = call;
  const own =
    custom === undefined || custom === null || isRecord(custom) ? call : ({ ...rest, ...(called && { function: called }) } as CallPiece);
  const written = isRecord(own.custom) ? writtenField(own.custom, "input") : own.custom;
  const plain = written === own.custom ? own : (withFields(own, { custom: written }) as CallPiece);
  const writtenCall = called ? writtenField(called, "arguments") : called;
  return writtenCall === called ? plain : (withFields(plain, { function: writtenCall }) as CallPiece);
}

/** The object itself when the field is no object. */
function writtenField<Fields extends object>(fields: Fields, name: "arguments" | "input"): Fields {
  const given = ownValue(fields as Readonly<Record<string, unknown>>, name);
  if (typeof given !== "object" || given === null) return fields;
  return withFields(fields, { [name]: JSON.stringify(given) }) as unknown as Fields;
}

/** Parts of a content list that are thoughts: Mistral's, and Databricks'. */
const THOUGHT_TYPES: ReadonlySet<unknown> = new Set(["thinking", "reasoning"]);
/** Their fields with text, which is a string or a list of parts. */
const THOUGHT_FIELDS = ["thinking", "reasoning", "text", "summary", "content"] as const;
const TEXT_TYPES: ReadonlySet<unknown> = new Set(["text", "output_text", undefined]);

/** Text as one string, and thoughts as `reasoning_content`. A list with other parts, such as images, stays a list without its thoughts. */
function withPlainContent(message: ChatDelta, parts: readonly unknown[]): ChatDelta {
  const said = parts.filter((part) => !isThought(part));
  const thoughts = said.length === parts.length ? "" : parts.map((part) => (isThought(part) ? thoughtOf(part) : "")).join("");
  const isText = said.every(isTextPart);
  if (!isText && said.length === parts.length) return message;
  const { content: _, ...rest } = message;
  const reasoning = thoughts !== "" && reasoningIn(message) === null ? { reasoning_content: thoughts } : {};
  // A piece that is all thought has no text, not an empty one.
  const content = !isText ? { content: said } : said.length === 0 && parts.length > 0 && !isWhole(message) ? {} : { content: textIn(said) };
  return { ...rest, ...reasoning, ...content };
}

/** Messages of whole answers have the role; so has the first piece, where an empty text is usual. */
function isWhole({ role }: ChatDelta): boolean {
  return typeof role === "string";
}

function isThought(part: unknown): part is Readonly<Record<string, unknown>> {
  return isRecord(part) && THOUGHT_TYPES.has(part.type);
}

/** An empty text is none. */
function thoughtOf(part: Readonly<Record<string, unknown>>): string {
  for (const name of THOUGHT_FIELDS) {
    const text = plainText(part[name]);
    if (text !== "") return text;
  }
  return "";
}

function isTextPart(part: unknown): boolean {
  return typeof part === "string" || (isRecord(part) && typeof part.text === "string" && TEXT_TYPES.has(part.type));
}

function textIn(parts: readonly unknown[]): string {
  return parts.map((part) => (typeof part === "string" ? part : plainText([part]))).join("");
}

/** The list itself when no item changes. */
function mapped<Item>(items: readonly Item[], map: (item: Item) => Item): readonly Item[] {
  let made: Item[] | null = null;
  for (const [index, item] of items.entries()) {
    const own = map(item);
    if (own !== item && made === null) made = items.slice(0, index);
    made?.push(own);
  }
  return made ?? items;
}
