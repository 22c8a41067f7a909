/**
 * The dialect of an upstream of OpenAI's chat format: the roles, fields and places that it knows. `inDialect` writes a body in it. A body
 * that needs no change is returned as it is.
 */
import { isRecord } from "../../lib/json.js";
import { ownValue, withFields, withoutFields } from "../../lib/own-values.js";
import { type ChatBody, type ChatDelta, plainText, REASONING_NAMES, reasoningIn } from "./schema.js";

/** The older name, which most servers accept, and the one that OpenAI's reasoning models require. */
export type OutputCapField = "max_tokens" | "max_completion_tokens";

/**
 * Where an assistant's message holds its thoughts: `sent` leaves them where the caller put them, `content` are parts of type `thinking`
 * (Mistral), `none` leaves them out.
 */
export const THOUGHT_PLACES = ["sent", "reasoning_content", "reasoning", "content", "none"] as const;
export type ThoughtPlace = (typeof THOUGHT_PLACES)[number];

export interface ChatDialect {
  /** False: messages of this role are sent as `system`. */
  readonly developerRole: boolean;
  readonly thoughts: ThoughtPlace;
  /** `reasoning_details` are kept; without an effect where thoughts stay as sent. */
  readonly thoughtDetails: boolean;
  /** Each assistant's message with tool calls must have thoughts: a placeholder is sent where the caller sent none. */
  readonly needsThoughts: boolean;
  /**
   * Calls of tools must have the thought signature that came with them, in `extra_content.google`: a documented value is sent where the
   * caller sent none.
   */
  readonly needsSignatures: boolean;
  /** The name of the gateway's own cap on the answer. */
  readonly outputCap: OutputCapField;
  /** A caller's cap is sent under this name, too. */
  readonly renamesCap: boolean;
  /** False: `stream_options` are not sent. */
  readonly streamOptions: boolean;
  /** `text`: parts that are all text are sent as one text. */
  readonly content: "parts" | "text";
  /** False: the picture detail `original` is sent as `high`. */
  readonly originalDetail: boolean;
  /** Fields of the body that are left out. */
  readonly refuses: ReadonlySet<string>;
  /** Fields that an upstream refused, left out unless that changes the answer (`mayLeaveOut`). */
  readonly refused: ReadonlySet<string>;
  /** Other names for fields of the body, by OpenAI's. */
  readonly names: ReadonlyMap<string, string>;
  /** The only fields of messages that are sent, as `field` or `role.field`; null: all but those refused. */
  readonly messageFields: ReadonlySet<string> | null;
  readonly refusedMessageFields: ReadonlySet<string>;
}

/** A dialect as an operator states it; the rest is that of the vendor or host. */
export interface StatedDialect {
  readonly developerRole?: boolean | undefined;
  readonly thoughts?: ThoughtPlace | undefined;
  readonly thoughtDetails?: boolean | undefined;
  readonly needsThoughts?: boolean | undefined;
  readonly needsSignatures?: boolean | undefined;
  /** The only name of the cap that the upstream knows. */
  readonly outputCap?: OutputCapField | undefined;
  readonly streamOptions?: boolean | undefined;
  readonly content?: ChatDialect["content"] | undefined;
  readonly originalDetail?: boolean | undefined;
  readonly refuses?: readonly string[] | undefined;
  readonly names?: Readonly<Record<string, string>> | undefined;
  readonly messageFields?: readonly string[] | undefined;
}

/** A body in a dialect. */
export interface InDialect {
  readonly body: ChatBody;
  /** One sentence for each field that the caller sent and the upstream does not get. */
  readonly warnings: readonly string[];
}

const NONE: ReadonlySet<string> = new Set();

/** OpenAI's own. */
export const NATIVE: ChatDialect = {
  developerRole: true,
  thoughts: "sent",
  thoughtDetails: true,
  needsThoughts: false,
  needsSignatures: false,
  outputCap: "max_completion_tokens",
  renamesCap: false,
  streamOptions: true,
  content: "parts",
  originalDetail: true,
  refuses: NONE,
  refused: NONE,
  names: new Map(),
  messageFields: null,
  refusedMessageFields: NONE,
};

/** An upstream of which nothing is known: the common part of all servers. */
export const COMMON: ChatDialect = { ...NATIVE, developerRole: false, outputCap: "max_tokens", originalDetail: false };

/** The dialect with an operator's statements. */
export function withStated(base: ChatDialect, stated: StatedDialect): ChatDialect {
  const { refuses, messageFields, names } = stated;
  return {
    developerRole: stated.developerRole ?? base.developerRole,
    thoughts: stated.thoughts ?? base.thoughts,
    thoughtDetails: stated.thoughtDetails ?? base.thoughtDetails,
    needsThoughts: stated.needsThoughts ?? base.needsThoughts,
    needsSignatures: stated.needsSignatures ?? base.needsSignatures,
    outputCap: stated.outputCap ?? base.outputCap,
    renamesCap: stated.outputCap !== undefined || base.renamesCap,
    streamOptions: stated.streamOptions ?? base.streamOptions,
    content: stated.content ?? base.content,
    originalDetail: stated.originalDetail ?? base.originalDetail,
    refuses: refuses ? new Set(refuses) : base.refuses,
    refused: base.refused,
    names: names ? new Map(Object.entries(names)) : base.names,
    messageFields: messageFields ? new Set(["role", ...messageFields]) : base.messageFields,
    refusedMessageFields: base.refusedMessageFields,
  };
}

/** Writes the body for an upstream of the dialect; null when it can be sent as it is. */
export function inDialect(body: ChatBody, dialect: ChatDialect): InDialect | null {
  const writer = new DialectWriter(body, dialect);
  return writer.write() ? writer : null;
}

class DialectWriter implements InDialect {
  body: ChatBody;
  warnings: string[] = NO_WARNINGS;

  constructor(
    private readonly sent: ChatBody,
    private readonly dialect: ChatDialect,
  ) {
    this.body = sent;
  }

  /** Whether anything was changed. */
  write(): boolean {
    const { dialect, sent } = this;
    if (dialect !== NATIVE) {
      if (dialect.renamesCap) this.renameCap();
      if (!dialect.streamOptions && sent.stream_options !== undefined) this.leaveOut("stream_options");
      for (const name of dialect.refuses) this.refuse(name);
      for (const name of dialect.refused) if (mayLeaveOut(name, ownValue(sent, name))) this.refuse(name);
      for (const [name, other] of dialect.names) this.rename(name, other);
      if (Array.isArray(sent.messages)) this.writeMessages(sent.messages);
    }
    this.writeTools();
    return this.body !== sent;
  }

  private renameCap(): void {
    const { outputCap } = this.dialect;
    this.rename(outputCap === "max_tokens" ? "max_completion_tokens" : "max_tokens", outputCap);
  }

  /** No upstream needs an empty list of tools, and strict ones refuse it, and what refers to it. */
  private writeTools(): void {
    const { tools, tool_choice: choice, parallel_tool_calls: parallel } = this.sent;
    if (tools === undefined && choice === undefined && parallel === undefined) return;
    if (Array.isArray(tools) && tools.length > 0) return;
    if (tools !== undefined) this.leaveOut("tools");
    if (choice !== undefined) {
      this.leaveOut("tool_choice");
      if (choice !== null && choice !== "auto" && choice !== "none") this.warn("tool_choice has no effect without tools.");
    }
    if (parallel !== undefined) this.leaveOut("parallel_tool_calls");
  }

  private refuse(name: string): void {
    const value = ownValue(this.sent, name);
    if (value === undefined) return;
    this.leaveOut(name);
    if (value !== null) this.warn(`${name} has no effect on this model.`);
  }

  private rename(name: string, other: string): void {
    const value = ownValue(this.sent, name);
    if (value === undefined) return;
    this.leaveOut(name);
    if (value !== null && ownValue(this.sent, other) == null) this.body = withFields(this.body, { [other]: value });
  }

  private leaveOut(name: string): void {
    if (Object.hasOwn(this.body, name)) this.body = withoutFields(this.body, new Set([name]));
  }

  private writeMessages(messages: readonly unknown[]): void {
    let written: unknown[] | null = null;
    for (let index = 0; index < messages.length; index += 1) {
      const message = messages[index];
      if (!isRecord(message)) continue;
      const other = this.toMessage(message, index);
      if (other === message) continue;
      written ??= messages.slice();
      written[index] = other;
    }
    if (written !== null) this.body = withFields(this.body, { messages: written });
  }

  private toMessage(message: Fields, index: number): Fields {
    const { dialect } = this;
    let written = message;
    if (message.role === "assistant") written = this.placeThoughts(written, index);
    else if (message.role === "developer" && !dialect.developerRole) written = withFields(written, { role: "system" });
    if (Array.isArray(written.content)) written = this.toContent(written, written.content);
    if (dialect.needsSignatures && Array.isArray(written.tool_calls)) written = this.withSignature(written, written.tool_calls);
    if (dialect.messageFields !== null || dialect.refusedMessageFields.size > 0) written = this.onlyKnown(written);
    return written;
  }

  private placeThoughts(message: Fields, index: number): Fields {
    const { thoughts: place, thoughtDetails: keepsDetails, needsThoughts } = this.dialect;
    if (!needsThoughts && (place === "sent" || !hasThoughts(message))) return message;
    const text = thoughtsOf(message);
    const isMissing = text === "" && needsThoughts && isFilled(message.tool_calls);
    if (isMissing) {
      this.warn("messages.reasoning_content: this model gets its earlier tool calls without their thoughts, because none were sent.");
      return withFields(message, { [place === "reasoning" ? "reasoning" : "reasoning_content"]: MISSING_THOUGHTS });
    }
    if (place === "sent") return message;
    const isInPlace = REASONING_NAMES.every((name) => message[name] === undefined || name === place);
    if (isInPlace && (keepsDetails || message.reasoning_details === undefined)) return message;
    if (text === "" && isFilled(message.reasoning_details) && !keepsDetails) {
      this.warn("messages.reasoning_details: left out, because only the model that wrote them can read them.");
    }
    const bare = withoutFields(message, keepsDetails ? THOUGHT_FIELDS : ALL_THOUGHT_FIELDS);
    if (text === "") return bare;
    switch (place) {
      case "none":
        this.warn(`messages.${index}.reasoning_content: left out, because this model takes no earlier thoughts.`);
        return bare;
      case "content":
        return withFields(bare, { content: [toThinkingPart(text), ...toParts(bare.content)] });
      default:
        return withFields(bare, { [place]: text });
    }
  }

  private toContent(message: Fields, content: readonly unknown[]): Fields {
    if (this.dialect.content === "text" && content.every((part) => isRecord(part) && part.type === "text")) {
      return withFields(message, { content: plainText(content) });
    }
    if (this.dialect.originalDetail || !content.some(isOriginal)) return message;
    return withFields(message, { content: content.map((part) => (isOriginal(part) ? withHighDetail(part) : part)) });
  }

  private onlyKnown(message: Fields): Fields {
    const { messageFields, refusedMessageFields } = this.dialect;
    let refused: Set<string> | null = null;
    for (const name of Object.keys(message)) {
      const isKnown = messageFields === null || messageFields.has(name) || messageFields.has(`${String(message.role)}.${name}`);
      if (isKnown && !refusedMessageFields.has(name)) continue;
      const value = ownValue(message, name);
      if (isFilled(value)) this.warn(`messages.${name.slice(0, NAME_CHARS_MAX)} has no effect on this model.`);
      refused ??= new Set();
      refused.add(name);
    }
    const known = refused === null ? message : withoutFields(message, refused);
    if (messageFields === null && !refusedMessageFields.has("extra_content")) return known;
    return this.withPlainParts(this.withPlainCalls(known));
  }

  /** Google signs the first call of a turn. */
  private withSignature(message: Fields, calls: readonly unknown[]): Fields {
    const [first, ...others] = calls;
    if (!isRecord(first)) return message;
    const extra = isRecord(first.extra_content) ? first.extra_content : {};
    const given = isRecord(extra.google) ? extra.google : {};
    if (isFilled(given.thought_signature)) return message;
    // The name of Gemini's own format, in histories that it began.
    const { thoughtSignature: other, ...google } = given;
    if (!isFilled(other)) this.warn(UNSIGNED);
    const signed = { ...google, thought_signature: isFilled(other) ? other : NO_SIGNATURE };
    return withFields(message, { tool_calls: [withFields(first, { extra_content: { ...extra, google: signed } }), ...others] });
  }

  private withPlainCalls(message: Fields): Fields {
    const { tool_calls: calls } = message;
    if (!Array.isArray(calls) || !calls.some(isSigned)) return message;
    this.warn("messages.tool_calls.extra_content: left out, because only the model that wrote it can read it.");
    return withFields(message, { tool_calls: calls.map((call) => (isSigned(call) ? withoutFields(call, SIGNED_FIELDS) : call)) });
  }

  /** Fields of parts that another format has. */
  private withPlainParts(message: Fields): Fields {
    const { content } = message;
    if (!Array.isArray(content) || !content.some(isSigned)) return message;
    this.warn("messages.content.extra_content: left out, because this model cannot read it.");
    return withFields(message, { content: content.map((part) => (isSigned(part) ? withoutFields(part, SIGNED_FIELDS) : part)) });
  }

  private warn(text: string): void {
    if (this.warnings === NO_WARNINGS) this.warnings = [];
    if (this.warnings.length < WARNINGS_MAX && !this.warnings.includes(text)) this.warnings.push(text);
  }
}

type Fields = Readonly<Record<string, unknown>>;

const NO_WARNINGS: string[] = [];
/** Unspecified: warnings about one request. */
const WARNINGS_MAX = 8;
/** Characters of a caller's field name in a warning. */
const NAME_CHARS_MAX = 64;
/** Sent in place of missing thoughts: DeepSeek and Moonshot refuse an empty text. */
const MISSING_THOUGHTS = " ";

/** Google's value for calls that other models made ("Thought signatures", FAQ, November 2026). */
const NO_SIGNATURE = "skip_thought_signature_validator";
const UNSIGNED = "messages.tool_calls: this model gets its earlier tool calls without their thoughts, because none were sent.";

const THOUGHT_FIELDS: ReadonlySet<string> = new Set(REASONING_NAMES);
const ALL_THOUGHT_FIELDS: ReadonlySet<string> = new Set([...REASONING_NAMES, "reasoning_details"]);

/** Whether a field that an upstream refuses may be left out of this request: its loss does not change the answer. */
export function mayLeaveOut(name: string, value: unknown): boolean {
  return name === "parallel_tool_calls" ? value !== false : true;
}

/** In plain reads of `REASONING_NAMES`, because most messages have none. */
function hasThoughts(message: Fields): boolean {
  if (message.reasoning_content !== undefined || message.reasoning !== undefined || message.reasoning_details !== undefined) return true;
  return message.reasoning_text !== undefined || message.thinking !== undefined;
}

function thoughtsOf(message: Fields): string {
  const thoughts = reasoningIn(message as ChatDelta);
  return typeof thoughts === "string" ? thoughts : plainText(thoughts);
}

/** Mistral's (API reference, `ThinkChunk`). */
function toThinkingPart(text: string): Fields {
  return { type: "thinking", thinking: [{ type: "text", text }] };
}

function toParts(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
}

const SIGNED_FIELDS: ReadonlySet<string> = new Set(["extra_content"]);

function isSigned(call: unknown): call is Fields {
  return isRecord(call) && call.extra_content !== undefined;
}

function isOriginal(part: unknown): part is { readonly image_url: Fields } {
  return isRecord(part) && isRecord(part.image_url) && part.image_url.detail === "original";
}

function withHighDetail(part: { readonly image_url: Fields }): Fields {
  return withFields(part, { image_url: withFields(part.image_url, { detail: "high" }) });
}

function isFilled(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== "";
}
