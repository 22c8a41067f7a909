/** Messages of a chat as `system` and `messages` of Anthropic's Messages format. */
import { append } from "../../lib/collections.js";
import { isRecord, recordsOf } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { JSON_BOUNDS } from "../../limits.js";
import { parseObjectArguments } from "../openai-chat/parts.js";
import { repairHistory } from "../openai-chat/repair.js";
import { reasoningIn } from "../openai-chat/schema.js";
import { refuse } from "../upstream-error.js";
import { extraOf, inOrder, isServerBlock, splitTexts } from "./extra.js";
import { type Block, marked, toBlocks } from "./upstream-parts.js";

type Loose = Readonly<Record<string, unknown>>;

export interface UpstreamMessage {
  readonly role: "user" | "assistant" | "system";
  readonly content: Block[];
}

export interface UpstreamHistory {
  readonly system: readonly Block[];
  readonly messages: readonly UpstreamMessage[];
  readonly warnings: readonly string[];
}

export interface HistoryOptions {
  /** Thoughts are left out, because the upstream refused their signatures. */
  readonly withoutThoughts: boolean;
}

/** Throws a ProviderError of status 400 for content that a message cannot hold. */
export function toHistory(messages: unknown, options: HistoryOptions): UpstreamHistory {
  const { messages: repaired, warnings } = repairHistory(recordsOf(messages), { field: "messages", showsMediaApart: false });
  const writer = new HistoryWriter(options);
  for (const [index, message] of repaired.entries()) writer.add(message, `messages.${index}`);
  return { system: writer.system, messages: writer.end(), warnings: [...warnings, ...writer.warnings] };
}

class HistoryWriter {
  readonly system: Block[] = [];
  readonly warnings = new Set<string>();
  private readonly messages: UpstreamMessage[] = [];
  /** Ids as they are sent, which are unique in the format, by those of the last calls, in their order. */
  private readonly open = new Map<unknown, string[]>();
  private readonly sent = new Set<string>();
  private readonly json = new BoundedJson(JSON_BOUNDS);

  constructor(private readonly options: HistoryOptions) {}

  add(message: Loose, path: string): void {
    switch (message.role) {
      case "system":
      case "developer":
        this.addInstructions(message, path);
        break;
      case "assistant":
        this.push("assistant", this.toAnswer(message, path), message);
        break;
      case "tool":
      case "function":
        this.push("user", [this.toResult(message, path)], {});
        break;
      default:
        this.push("user", toBlocks(message.content, path), message);
    }
  }

  end(): readonly UpstreamMessage[] {
    const { messages, system, warnings } = this;
    const last = messages.at(-1)?.content.at(-1);
    // The format refuses an answer that begins after white space.
    if (messages.at(-1)?.role === "assistant" && typeof last?.text === "string") last.text = last.text.trimEnd();
    if (messages.length === 0 && system.length > 0) {
      warnings.add("messages: instructions without a message of the user are given to this upstream as one.");
      messages.push({ role: "user", content: system.splice(0) });
    }
    return messages;
  }

  /** Parts stay separate, because each may end the cached prefix. */
  private addInstructions(message: Loose, path: string): void {
    const blocks = toBlocks(message.content, path);
    if (this.messages.length > 0 && extraOf(message).inPlace === true) {
      this.push("system", blocks, message);
      return;
    }
    if (this.messages.length > 0) this.warnings.add("messages: instructions in the middle of the chat are given to this upstream first.");
    const last = blocks.at(-1);
    if (last) marked(last, message);
    append(this.system, blocks);
  }

  /** Turns of one side are one message. */
  private push(role: UpstreamMessage["role"], content: Block[], message: Loose): void {
    const end = content.at(-1);
    if (!end) return;
    marked(end, message);
    const last = this.messages.at(-1);
    if (last?.role === role) append(last.content, content);
    else this.messages.push({ role, content });
  }

  private toAnswer(message: Loose, path: string): Block[] {
    const { order, blocks, texts: lengths } = extraOf(message);
    const split = typeof message.content === "string" ? splitTexts(message.content, lengths) : null;
    const texts = split?.flatMap((text) => toBlocks(text, path)) ?? toBlocks(message.content ?? "", path);
    if (typeof message.refusal === "string" && message.refusal !== "") texts.push({ type: "text", text: message.refusal });
    const calls = this.toCalls(message, path);
    const server: Block[] = recordsOf(blocks).filter(({ type }) => isServerBlock(type));
    const thinking = this.toThoughts(message);
    return inOrder({ thinking, text: texts, call: calls, server }, order) ?? [...thinking, ...server, ...texts, ...calls];
  }

  private toThoughts(message: Loose): Block[] {
    const details = recordsOf(message.reasoning_details);
    const thoughts = details.map(toThought).filter((thought) => thought !== null);
    const lost = details.length - thoughts.length;
    if (lost > 0 || (details.length === 0 && reasoningIn(message) !== null)) {
      this.warnings.add("messages.reasoning_content: thoughts without a signature of this vendor are not given to this upstream.");
    }
    return this.options.withoutThoughts ? [] : thoughts;
  }

  private toCalls(message: Loose, path: string): Block[] {
    const stated = recordsOf(message.tool_calls);
    if (stated.length > 0) this.open.clear();
    const calls: Block[] = stated.map((call, index) => this.toCall(call, `${path}.tool_calls.${index}`));
    if (isRecord(message.function_call)) {
      const { name } = message.function_call;
      calls.push(this.toCall({ id: name, function: message.function_call }, `${path}.function_call`));
    }
    return calls;
  }

  private toCall(call: Loose, path: string): Block {
    const { function: called, custom } = call;
    const name = isRecord(called) ? called.name : isRecord(custom) ? custom.name : "";
    const input = isRecord(custom)
      ? { input: custom.input }
      : parseObjectArguments(this.json, isRecord(called) ? called.arguments : "", `${path}.function.arguments`);
    const id = this.toId(call.id ?? name);
    const known = this.open.get(call.id ?? name);
    if (known) known.push(id);
    else this.open.set(call.id ?? name, [id]);
    return { type: "tool_use", id, name: String(name ?? ""), input };
  }

  /** In the format's letters, and unlike those before it. */
  private toId(id: unknown): string {
    const plain = String(id ?? "").replaceAll(/[^A-Za-z0-9_-]/g, "_") || "call";
    let unique = plain;
    for (let count = 2; this.sent.has(unique); count += 1) unique = `${plain}_${this.sent.size}_${count}`;
    this.sent.add(unique);
    return unique;
  }

  /** Calls before it are answered in their order; the history is repaired, so that each has one. */
  private toResult(message: Loose, path: string): Block {
    const stated = message.tool_call_id ?? message.name;
    const ids = this.open.get(stated);
    const id = ids?.shift();
    if (id === undefined)
      throw refuse(`There is no tool call ${JSON.stringify(stated ?? "")} before this answer to it.`, `${path}.tool_call_id`);
    if (ids?.length === 0) this.open.delete(stated);
    const parts = Array.isArray(message.content) ? toBlocks(message.content, path) : null;
    const mark = parts?.at(-1)?.cache_control;
    // Marks stand at the result, not within it.
    for (const part of parts ?? []) delete part.cache_control;
    const content = parts ?? (typeof message.content === "string" ? message.content : "");
    const result = { type: "tool_result", tool_use_id: id, content, ...(extraOf(message).is_error === true && { is_error: true }) };
    return marked(result, { cache_control: mark ?? message.cache_control });
  }
}

/** Anthropic's thoughts in other gateways' answers. */
const OTHER_FORMAT = /^anthropic/;

/** Null without a signature of Anthropic. */
function toThought(detail: Loose): Block | null {
  const { signature, redactedData } = extraOf(detail);
  if (typeof redactedData === "string") return { type: "redacted_thinking", data: redactedData };
  const text = typeof detail.text === "string" ? detail.text : "";
  if (typeof signature === "string") return { type: "thinking", thinking: text, signature };
  if (typeof detail.format !== "string" || !OTHER_FORMAT.test(detail.format)) return null;
  if (detail.type === "reasoning.encrypted" && typeof detail.data === "string") return { type: "redacted_thinking", data: detail.data };
  if (typeof detail.signature !== "string" || detail.signature === "") return null;
  return { type: "thinking", thinking: text, signature: detail.signature };
}

/** A turn goes on whose calls lack the signed thoughts before them: with thinking, the upstream would refuse it. */
export function lacksThoughts(messages: readonly UpstreamMessage[]): boolean {
  const last = messages.findLast(({ role }) => role === "assistant");
  if (!last?.content.some(({ type }) => type === "tool_use")) return false;
  const type = last.content[0]?.type;
  return type !== "thinking" && type !== "redacted_thinking";
}
