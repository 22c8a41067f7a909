/** Puts the chunks of a stream together to a whole answer, for upstreams that stream although none was asked for. */
import { isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import type { ChatChunkChoice, ChatChunkObject, ChatCompletion } from "./schema.js";

type Fields = Record<string, unknown>;

/** Fields of a chunk that are not the answer's, or have their own place in it. */
const CHUNK_FIELDS: ReadonlySet<string> = new Set(["choices", "usage", "object", "obfuscation"]);
/** Fields whose pieces follow one another; of others, the last value counts. */
const GROWING: ReadonlySet<string> = new Set([
  ...["content", "refusal", "reasoning_content", "reasoning", "reasoning_text", "thinking", "text", "summary"],
  ...["name", "arguments", "input", "data", "transcript"],
]);

export class CollectedAnswer {
  private readonly head: Fields = {};
  private readonly choices = new Map<number, Fields>();
  private usage: unknown;

  /** Adds a chunk with calls as `OwnChunks` numbers them, and the report that came with it. */
  add(chunk: ChatChunkObject, report: unknown): void {
    for (const [name, value] of Object.entries(chunk)) {
      if (!CHUNK_FIELDS.has(name)) setOwnValue(this.head, name, value ?? ownValue(this.head, name));
    }
    for (const choice of chunk.choices ?? []) this.addChoice(choice);
    if (report !== undefined) this.usage = report;
  }

  toCompletion(): ChatCompletion {
    const choices = [...this.choices.values()].sort((one, other) => Number(one.index) - Number(other.index));
    return {
      ...this.head,
      object: "chat.completion",
      choices: choices.map(toWholeChoice),
      ...(this.usage !== undefined && { usage: this.usage }),
    };
  }

  private addChoice({ index = 0, delta, ...more }: ChatChunkChoice): void {
    let choice = this.choices.get(index);
    if (!choice) {
      choice = { index, message: { role: "assistant" }, logprobs: null, finish_reason: null };
      this.choices.set(index, choice);
    }
    grow(choice, more);
    if (delta) grow(choice.message as Fields, delta);
  }
}

function toWholeChoice({ message, finish_reason: reason, ...more }: Fields): Fields {
  const { content, tool_calls: calls, ...others } = message as Fields;
  const whole = Array.isArray(calls) ? calls.map(({ index: _, ...call }: Fields) => call) : undefined;
  const said = { ...others, content: content ?? (whole ? null : ""), ...(whole && { tool_calls: whole }) };
  return { ...more, message: said, finish_reason: reason ?? (whole ? "tool_calls" : "stop") };
}

function grow(into: Fields, more: Readonly<Fields>): void {
  for (const [name, value] of Object.entries(more)) setOwnValue(into, name, grown(ownValue(into, name), value, name));
}

/** `before` is a value that this function has made. */
function grown(before: unknown, more: unknown, name: string): unknown {
  if (more === null || more === undefined) return before ?? more;
  if (Array.isArray(more)) {
    const list: unknown[] = Array.isArray(before) ? before : [];
    for (const item of more) addItem(list, item, name);
    return list;
  }
  if (isRecord(more)) {
    const own = isRecord(before) ? (before as Fields) : {};
    grow(own, more);
    return own;
  }
  return typeof more === "string" && typeof before === "string" && GROWING.has(name) ? before + more : more;
}

/** Calls are numbered by their place in the list. Details of reasoning with one index are pieces of one detail, and follow one another. */
function addItem(list: unknown[], item: unknown, name: string): void {
  const index = isRecord(item) ? item.index : undefined;
  const last = list.at(-1);
  if (name === "tool_calls" && typeof index === "number") list[index] = grown(list[index], item, name);
  else if (name === "reasoning_details" && index !== undefined && isRecord(last) && last.index === index) grown(last, item, name);
  else list.push(grown(undefined, item, name));
}
