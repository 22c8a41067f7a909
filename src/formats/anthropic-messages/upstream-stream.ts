/** Events of a streamed message of Anthropic's Messages format, from an upstream, as `chat.completion.chunk`s. */
import { isRecord, recordsOf } from "../../lib/json.js";
import type { SseEvent } from "../../lib/sse.js";
import { type Secrets, toEmbeddedError } from "../openai-chat/errors.js";
import { type ChatChunk, isForeign, type StreamFormat, toChunk, UnwrittenChunk } from "../openai-chat/stream.js";
import { type OnUnknownNames, toUsage } from "../openai-chat/usage.js";
import { warnedChunk } from "../openai-chat/warned-events.js";
import { ProviderError } from "../upstream-error.js";
import { parseObject } from "../upstream-json.js";
import { type BlockKind, isServerBlock, toExtra, toOrder } from "./extra.js";
import { endingIn } from "./own-ending.js";
import { isSigned, isThought, kindOf, textOf, toAnnotation, toDetail, toEnd, toHead } from "./upstream-answer.js";
import { mergeUsage, toChatUsage } from "./upstream-usage.js";

type Loose = Readonly<Record<string, unknown>>;

/** One block that has begun and not ended. */
interface OpenBlock {
  readonly block: Loose;
  /** Text of the thought, whose signature covers all of it. */
  thinking: string;
  signature: string;
  /** Of a call among the calls. */
  readonly callIndex: number;
  hasInput: boolean;
  /** Input of a tool that the vendor runs. */
  input: string;
  /** The place of its text in the whole text. */
  readonly start: number;
  readonly citations: Loose[];
}

/** The usual event of a text without escapes, as Anthropic writes it, with its padding: read without parsing. */
const PLAIN_TEXT_DELTA = /^\{"type":"content_block_delta","index":\d{1,9},"delta":\{"type":"text_delta","text":"([^"\\\p{Cc}]*)"\} *\}$/u;

export class MessagesStreamEvents implements StreamFormat {
  private head = toHead({});
  private hasBegun = false;
  private usage: Loose = {};
  private ending: Loose | null = null;
  /** Fields of the message beside its content, the newer in place of the older. */
  private fields: Loose = {};
  private readonly open = new Map<unknown, OpenBlock>();
  private readonly kinds: BlockKind[] = [];
  private calls = 0;
  private thoughts = 0;
  private textChars = 0;
  /** Of texts that have ended, in their order. */
  private readonly lengths: number[] = [];

  constructor(
    private readonly secrets: Secrets,
    /** About the request; the first chunk has them. */
    private readonly warnings: readonly string[] = [],
    private readonly onUnknownNames?: OnUnknownNames,
  ) {}

  get isWhole(): boolean {
    return this.ending !== null;
  }

  take(event: SseEvent, batch: ChatChunk[]): boolean {
    const plain = PLAIN_TEXT_DELTA.exec(event.data);
    if (plain) {
      this.sayText(plain[1] ?? "", batch);
      return false;
    }
    if (isForeign(event) || event.data === "") return false;
    const object = parseObject(event.bytes, event.data);
    if (object === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    return this.takeObject(object, batch);
  }

  end(batch: ChatChunk[]): void {
    this.finish(batch);
  }

  private takeObject(event: Loose, batch: ChatChunk[]): boolean {
    switch (event.type) {
      case "message_start":
        this.start(isRecord(event.message) ? event.message : {});
        return false;
      case "content_block_start":
        if (isRecord(event.content_block)) this.begin(event.index, event.content_block, batch);
        return false;
      case "content_block_delta":
        if (isRecord(event.delta)) this.grow(event.index, event.delta, batch);
        return false;
      case "content_block_stop":
        this.stop(event.index, batch);
        return false;
      case "message_delta":
        this.usage = mergeUsage(this.usage, event.usage);
        this.fields = mergeUsage(mergeUsage(this.fields, event), event.delta);
        if (isRecord(event.delta) && event.delta.stop_reason != null) this.ending = toEnd(event.delta);
        return false;
      case "message_stop":
        this.finish(batch);
        return true;
      case "error":
        throw toEmbeddedError(event.error ?? event, this.secrets);
      default:
        // Pings, and events that are newer than this file.
        return false;
    }
  }

  private start(message: Loose): void {
    this.head = toHead(message);
    this.fields = message;
    this.usage = mergeUsage({}, message.usage);
  }

  private begin(index: unknown, block: Loose, batch: ChatChunk[]): void {
    const kind = kindOf(block);
    if (kind === "text" && this.kinds.at(-1) === "text") this.say(batch, toExtra({ begins: "text" }));
    if (kind !== null) this.kinds.push(kind);
    const isCall = kind === "call";
    this.open.set(index, {
      block,
      thinking: "",
      signature: textOf(block.signature),
      callIndex: isCall ? this.calls++ : -1,
      hasInput: false,
      input: "",
      start: this.textChars,
      citations: [...recordsOf(block.citations)],
    });
    if (kind === "text") this.sayText(textOf(block.text), batch);
    else if (block.type === "thinking") this.think(this.open.get(index) as OpenBlock, textOf(block.thinking), batch);
    else if (isCall) {
      const called = { name: textOf(block.name), arguments: "" };
      this.say(batch, { tool_calls: [{ index: this.calls - 1, id: textOf(block.id), type: "function", function: called }] });
    }
  }

  private grow(index: unknown, delta: Loose, batch: ChatChunk[]): void {
    const open = this.open.get(index);
    switch (delta.type) {
      case "text_delta":
        this.sayText(textOf(delta.text), batch);
        break;
      case "thinking_delta":
        if (open) this.think(open, textOf(delta.thinking), batch);
        break;
      case "signature_delta":
        if (open) open.signature += textOf(delta.signature);
        break;
      case "citations_delta":
        if (open && isRecord(delta.citation)) open.citations.push(delta.citation);
        break;
      case "input_json_delta":
        this.addInput(open, textOf(delta.partial_json), batch);
        break;
    }
  }

  private addInput(open: OpenBlock | undefined, text: string, batch: ChatChunk[]): void {
    if (!open) throw new ProviderError("invalid-response", "The upstream's stream goes on with a call that has not begun.");
    if (text === "") return;
    if (open.callIndex === -1) {
      open.input += text;
      return;
    }
    open.hasInput = true;
    this.say(batch, { tool_calls: [{ index: open.callIndex, function: { arguments: text } }] });
  }

  private stop(index: unknown, batch: ChatChunk[]): void {
    const open = this.open.get(index);
    if (!open) return;
    this.open.delete(index);
    const { block, callIndex, citations, start } = open;
    if (block.type === "text") this.lengths.push(this.textChars - start);
    if (isThought(block)) {
      const whole = block.type === "thinking" ? { type: "thinking", thinking: open.thinking, signature: open.signature } : block;
      // Sent whole, because the signature covers the whole.
      if (isSigned(whole)) this.say(batch, { reasoning_details: [toDetail(whole, this.thoughts++)] });
    } else if (callIndex !== -1 && !open.hasInput) {
      this.say(batch, { tool_calls: [{ index: callIndex, function: { arguments: JSON.stringify(block.input ?? {}) } }] });
    } else if (citations.length > 0) {
      this.say(batch, { annotations: citations.map((citation) => toAnnotation(citation, start, this.textChars)) });
    } else if (isServerBlock(block.type)) {
      this.say(batch, toExtra({ block: open.input === "" ? block : { ...block, input: inputOf(open.input) } }));
    }
  }

  private finish(batch: ChatChunk[]): void {
    const { ending } = this;
    if (ending === null) throw new ProviderError("invalid-response", "The upstream's answer does not say why it ended.");
    const order = toOrder(this.kinds);
    const own = endingIn(this.fields, this.usage);
    const ordered = order !== null && { order, ...(this.lengths.length > 1 && { texts: this.lengths }) };
    if (ordered || own !== null) this.say(batch, toExtra({ ...ordered, ...(own !== null && { ending: own }) }));
    this.push(batch, { choices: [{ index: 0, delta: this.deltaOf({}), logprobs: null, ...ending }] });
    const usage = toChatUsage(this.usage);
    if (usage === null) return;
    if (this.onUnknownNames) toUsage(this.usage, this.onUnknownNames);
    batch.push(toChunk({ ...this.head, object: "chat.completion.chunk", choices: [], usage }));
  }

  private sayText(text: string, batch: ChatChunk[]): void {
    this.textChars += text.length;
    if (text === "") return;
    const choices = [{ index: 0, delta: this.deltaOf({ content: text }), logprobs: null, finish_reason: null }];
    if (this.hasBegun) batch.push(new UnwrittenChunk({ ...this.head, object: "chat.completion.chunk", choices }, text));
    else this.push(batch, { choices });
  }

  private think(open: OpenBlock, text: string, batch: ChatChunk[]): void {
    open.thinking += text;
    if (text !== "") this.say(batch, { reasoning_content: text });
  }

  private say(batch: ChatChunk[], delta: Loose): void {
    this.push(batch, { choices: [{ index: 0, delta: this.deltaOf(delta), logprobs: null, finish_reason: null }] });
  }

  /** The first delta has the role. */
  private deltaOf(delta: Loose): Loose {
    return this.hasBegun ? delta : { role: "assistant", ...delta };
  }

  private push(batch: ChatChunk[], fields: Loose): void {
    const chunk = { ...this.head, object: "chat.completion.chunk", ...fields };
    batch.push(this.hasBegun ? new UnwrittenChunk(chunk) : { ...warnedChunk(chunk, this.warnings), ...this.begunReport() });
    this.hasBegun = true;
  }

  /** The input is reported at the start, so an answer that is cut is charged for it. Clients do not get this report. */
  private begunReport(): Pick<ChatChunk, "usage" | "report"> | null {
    const report = toChatUsage(this.usage);
    const usage = toUsage(report);
    return usage === null ? null : { usage, report };
  }
}

function inputOf(text: string): unknown {
  return parseObject(Buffer.from(text), text) ?? {};
}
