/** Converts a Messages request to a chat. */
import { invalidInput } from "../../errors.js";
import { append } from "../../lib/collections.js";
import { quoteStart } from "../../lib/quote-start.js";
import { explainUnread, listed, NAME_CHARS_MAX } from "../left-out.js";
import { repairHistory } from "../openai-chat/repair.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { SignedReader } from "../signatures.js";
import { type BlockKind, isServerBlock, toExtra, toOrder } from "./extra.js";
import { OWN_OPTIONS, toNativeTool, toOwnOptions } from "./native-options.js";
import { toNativeParts } from "./native-parts.js";
import { toParts, toTextPart } from "./parts.js";
import type { MessageBlock, MessageCountRequest, MessageRequest, MessageServerTool, MessageShownBlock, MessageTool } from "./request.js";
import { readThought } from "./signed.js";

type Message = Record<string, unknown>;
type Loose = Readonly<Record<string, unknown>>;

/** Fields that are converted, or that ask for nothing that a chat has. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  ...["model", "messages", "system", "max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences"],
  ...["tools", "tool_choice", "thinking", "output_config", "output_format"],
  // For Anthropic's own records.
  "metadata",
]);
/** Fields that chats have by the same name. */
const PASSED_FIELDS: ReadonlySet<string> = new Set(["safe", "seed"]);
/** Coding agents send it with every request; it is never sent on, so it changes no price. */
const CONTEXT_EDITS = "context_management";
/** What every request gets here. */
const STANDARD_TIER = "standard_only";
/** Starts a text that one coding agent puts before its instructions: it differs in each request and would defeat prompt caches. */
const BILLING_MARK = "x-anthropic-billing-header:";
/** Thinking budgets in tokens below which the effort is low or medium: Anthropic's smallest, and half of its usual largest. */
const LOW_BUDGET_BELOW = 4_096;
const MEDIUM_BUDGET_BELOW = 16_384;

export interface MessageTarget {
  /** The model can be told how much to think. */
  readonly hasEffort: boolean;
  /** The chat's fields that turn thinking off; null: the model decides by itself. */
  readonly withoutThinking: Loose | null;
  /** The upstream speaks this format: the chat carries the fields that others lack. */
  readonly isNative: boolean;
  /** Features of the caller's `anthropic-beta`. */
  readonly betas: readonly string[];
  /** The model has prices for prompts beyond its usual context. */
  readonly hasLongContext: boolean;
  /** A chat's field of this name is refused or priced, so it is not left out. */
  concernsMoney(name: string): boolean;
}

export interface ChatOfMessage {
  /** Not validated yet. */
  readonly chat: ChatBody;
  readonly warnings: readonly string[];
}

/** Throws BAD_REQUEST for content and tools that a chat cannot hold. */
export function toChat(input: MessageCountRequest & Partial<MessageRequest>, target: MessageTarget): ChatOfMessage {
  const { isNative } = target;
  const writer = new MessageWriter(isNative);
  writer.addSystem(input.system);
  for (const [index, { role, content }] of input.messages.entries()) writer.add(role, content, `messages.${index}`);
  writer.signCalls();
  const { messages, warnings: repairs } = repairHistory(writer.messages, { field: "messages", showsMediaApart: !isNative });
  const format = input.output_config?.format ?? input.output_format;
  const effort = effortOf(input);
  const { passed, unread } = sortFields(input, target);
  const own = isNative ? toOwnOptions(input, target) : null;
  const isOff = input.thinking?.type === "disabled" && !isNative && target.hasEffort;
  const chat = {
    model: input.model,
    messages,
    ...passed,
    ...(input.max_tokens !== undefined && { max_completion_tokens: input.max_tokens }),
    ...(input.temperature != null && { temperature: input.temperature }),
    ...(input.top_p != null && { top_p: input.top_p }),
    ...(input.top_k != null && { top_k: input.top_k }),
    ...(input.stop_sequences != null && input.stop_sequences.length > 0 && { stop: input.stop_sequences }),
    ...toTools(input, isNative),
    ...(format != null && {
      response_format: { type: "json_schema", json_schema: { name: "output", strict: true, schema: format.schema } },
    }),
    ...(effort !== null && target.hasEffort && { reasoning_effort: effort }),
    ...(isOff && target.withoutThinking),
    ...(own !== null && { provider_options: { anthropic: own.options } }),
    ...(input.stream && { stream: true }),
  };
  const always = isOff && target.withoutThinking === null ? ["thinking: this model decides by itself whether it thinks."] : [];
  const others = [...explainUnread(unread, "chat"), ...(own === null ? explainBetas(target.betas) : own.warnings)];
  return { chat, warnings: [...explainLeftOut([...writer.leftOut]), ...others, ...always, ...repairs] };
}

interface OtherFields {
  readonly passed: Message;
  readonly unread: readonly string[];
}

/** Fields that are not converted: those that chats have by the same name, and the rest. */
function sortFields(input: Loose, { concernsMoney, isNative }: MessageTarget): OtherFields {
  const others = Object.entries(input).filter(([name, value]) => value != null && value !== STANDARD_TIER && !READ_FIELDS.has(name));
  const isOwn = (name: string) => name === CONTEXT_EDITS || (isNative && OWN_OPTIONS.has(name));
  const isPassed = (name: string) => PASSED_FIELDS.has(name) || (!isOwn(name) && concernsMoney(name));
  return {
    passed: Object.fromEntries(others.filter(([name]) => isPassed(name))),
    unread: others.flatMap(([name]) => (isPassed(name) || (isNative && OWN_OPTIONS.has(name)) ? [] : [name])),
  };
}

function explainBetas(betas: readonly string[]): readonly string[] {
  return betas.length === 0 ? [] : [`anthropic-beta: ${listed(betas)}: left out, because only Anthropic has such features.`];
}

function explainLeftOut(types: readonly string[]): readonly string[] {
  return types.length === 0 ? [] : [`messages: content of type ${listed(types)} was left out: this model cannot read it.`];
}

/** The stated effort, or that of the stated budget; null when the model decides. */
function effortOf({ thinking, output_config: config }: MessageCountRequest): string | null {
  if (thinking?.type === "disabled") return null;
  if (config?.effort != null) return config.effort === "max" ? "xhigh" : config.effort;
  if (thinking?.type !== "enabled") return null;
  const { budget_tokens: budget } = thinking;
  if (budget < LOW_BUDGET_BELOW) return "low";
  return budget < MEDIUM_BUDGET_BELOW ? "medium" : "high";
}

function toTools({ tools, tool_choice: choice }: MessageCountRequest, isNative: boolean): Message {
  if (tools == null || tools.length === 0) return {};
  const isSerial = choice != null && "disable_parallel_tool_use" in choice && choice.disable_parallel_tool_use === true;
  return {
    tools: tools.map((tool, index) => (isNative && isServerTool(tool) ? toNativeTool(tool.raw) : toTool(tool, index, isNative))),
    ...(choice != null && {
      tool_choice: choice.type === "tool" ? { type: "function", function: { name: choice.name } } : CHOICES[choice.type],
    }),
    ...(isSerial && { parallel_tool_calls: false }),
  };
}

const CHOICES = { auto: "auto", any: "required", none: "none" } as const;

function isServerTool(tool: MessageTool): tool is MessageServerTool {
  return "serverType" in tool;
}

function toTool(tool: MessageTool, index: number, isNative: boolean): Message {
  if (isServerTool(tool)) {
    const name = quoteStart(tool.name ?? tool.serverType, NAME_CHARS_MAX);
    const type = quoteStart(tool.serverType, NAME_CHARS_MAX);
    throw invalidInput(
      `The tool ${name} of type ${type} is run by Anthropic and not available here. Leave it out, or describe a tool of your own with an input_schema.`,
      `tools.${index}.type`,
    );
  }
  const { name, description, input_schema: parameters, strict, cache_control: cache, type: _, ...fields } = tool;
  return {
    type: "function",
    function: { name, ...(description != null && { description }), parameters, ...(strict != null && { strict }) },
    ...(cache != null && { cache_control: cache }),
    ...(isNative && Object.keys(fields).length > 0 && toExtra({ fields })),
  };
}

/** A turn's text, thoughts and calls are one assistant message in a chat; results of tools are messages of their own. */
class MessageWriter {
  readonly messages: Message[] = [];
  /** Types of blocks that a chat cannot hold. */
  readonly leftOut = new Set<string>();
  private readonly calls: Message[] = [];
  /** What vendors signed with a call, by its id. */
  private readonly signed = new Map<string, unknown>();
  private readonly signatures = new SignedReader();

  constructor(private readonly isNative: boolean) {}

  addSystem(system: MessageCountRequest["system"]): void {
    if (system == null || system === "") return;
    if (typeof system === "string") {
      this.messages.push({ role: "system", content: system });
      return;
    }
    const told = system.filter(({ text }) => !text.startsWith(BILLING_MARK));
    const isCached = told.some(({ cache_control: cache }) => cache != null);
    const content = isCached ? told.map(toTextPart) : told.map(({ text }) => text).join("\n\n");
    if (content.length > 0) this.messages.push({ role: "system", content });
  }

  add(role: "user" | "assistant" | "system", content: string | readonly MessageBlock[], path: string): void {
    if (typeof content === "string") this.messages.push({ role, content, ...this.placed(role) });
    else if (role === "assistant") this.addAnswer(content, path);
    else this.addTold(role, content, path);
  }

  /** Signatures of calls stand in a block behind them. */
  signCalls(): void {
    if (this.signed.size === 0) return;
    for (const call of this.calls) {
      const extra = this.signed.get(String(call.id));
      if (extra !== undefined) call.extra_content ??= extra;
    }
  }

  private addTold(role: "user" | "system", blocks: readonly MessageBlock[], path: string): void {
    const parts: Message[] = [];
    for (const [index, block] of blocks.entries()) {
      if (block.type === null) this.leftOut.add(block.foreignType);
      else if (block.type === "tool_result") this.addResult(block, `${path}.content.${index}`);
      else if (block.type === "tool_use" || block.type === "thinking" || block.type === "redacted_thinking")
        throw invalidInput(`A block of type ${block.type} belongs to a message of the assistant.`, `${path}.content.${index}.type`);
      else append(parts, this.parts(block));
    }
    // A message of results alone has nothing more to say.
    if (parts.length > 0) this.messages.push({ role, content: simple(parts), ...this.placed(role) });
  }

  /** Instructions in the middle stay there. */
  private placed(role: string): Message {
    return this.isNative && role === "system" && this.messages.length > 0 ? toExtra({ inPlace: true }) : {};
  }

  private parts(block: MessageShownBlock): Message[] {
    return this.isNative ? toNativeParts(block) : toParts(block);
  }

  private addResult(block: Extract<MessageBlock, { type: "tool_result" }>, path: string): void {
    const { tool_use_id: id, content, is_error: isError, cache_control: cache } = block;
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []).flatMap((part) => this.parts(part));
    if (isError && !this.isNative && !startsAsError(parts[0])) parts.unshift({ type: "text", text: "Error:" });
    const [last] = parts.slice(-1);
    if (cache != null && last !== undefined) last.cache_control = cache;
    if (parts.length > BLOCKS_PER_RESULT_MAX)
      throw invalidInput(`A result has at most ${BLOCKS_PER_RESULT_MAX} blocks.`, `${path}.content`);
    const failed = this.isNative && isError ? toExtra({ is_error: true }) : {};
    this.messages.push({ role: "tool", tool_call_id: id, content: parts.length === 0 ? "" : simple(parts), ...failed });
  }

  private addAnswer(blocks: readonly MessageBlock[], path: string): void {
    const turn: Message = { role: "assistant", content: null };
    const parts: Message[] = [];
    const calls: Message[] = [];
    const thoughts: string[] = [];
    const details: Message[] = [];
    const kinds: BlockKind[] = [];
    const server: unknown[] = [];
    for (const [index, block] of blocks.entries()) {
      switch (block.type) {
        case null:
          if (this.isNative && isServerBlock(block.foreignType)) {
            server.push(block.raw);
            kinds.push("server");
          } else this.leftOut.add(block.foreignType);
          break;
        case "tool_use":
          calls.push(this.toCall(block));
          kinds.push("call");
          break;
        case "thinking":
        case "redacted_thinking": {
          const read = readThought(block, this.signatures);
          if (read.text !== "") thoughts.push(read.text);
          append(details, read.details);
          for (let count = 0; count < read.details.length; count += 1) kinds.push("thinking");
          for (const [id, extra] of read.calls) this.signed.set(id, extra);
          break;
        }
        case "tool_result":
          throw invalidInput("A block of type tool_result belongs to a message of the user.", `${path}.content.${index}.type`);
        default:
          append(parts, this.parts(block));
          if (block.type !== "text" || block.text.trim() !== "") kinds.push("text");
      }
    }
    const order = this.isNative ? toOrder(kinds) : null;
    if (order !== null) Object.assign(turn, toExtra({ order, ...(server.length > 0 && { blocks: server }) }));
    if (parts.length > 0) turn.content = order === null ? simple(parts) : parts;
    if (thoughts.length > 0) turn.reasoning_content = thoughts.join("\n\n");
    if (details.length > 0) turn.reasoning_details = details;
    if (calls.length > 0) turn.tool_calls = calls;
    if (turn.content !== null || thoughts.length + details.length + calls.length > 0) this.messages.push(turn);
  }

  private toCall({ id, name, input }: Extract<MessageBlock, { type: "tool_use" }>): Message {
    const call = { id, type: "function", function: { name, arguments: JSON.stringify(input ?? {}) } };
    this.calls.push(call);
    return call;
  }
}

/** Unspecified. */
const BLOCKS_PER_RESULT_MAX = 1_000;

function startsAsError(part: Message | undefined): boolean {
  return part !== undefined && typeof part.text === "string" && /^\W{0,3}error/i.test(part.text);
}

/** Texts without marks as one string, which every upstream takes. */
function simple(parts: readonly Message[]): string | readonly Message[] {
  const isText = parts.every((part) => part.type === "text" && part.cache_control === undefined && part.extra_content === undefined);
  return isText ? parts.map(({ text }) => text).join("\n\n") : parts;
}
