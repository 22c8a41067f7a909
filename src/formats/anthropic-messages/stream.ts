/**
 * Converts chunks of a chat to the events of a streamed message. The format has one block open at a time, while pieces of several calls may
 * come in turns: the pieces of a later call wait until the call before it is complete. One per stream; a whole answer passes as one chunk.
 */
import { append } from "../../lib/collections.js";
import { isRecord, recordsOf } from "../../lib/json.js";
import { type ChatChunkObject, type ChatDelta, plainText, reasoningIn } from "../openai-chat/schema.js";
import { Signatures } from "../signatures.js";
import {
  type AnswerBlock,
  type ChoiceEnd,
  type FinishedMessage,
  inputOf,
  type MessageAnswer,
  type MessageUsage,
  NO_MESSAGE_USAGE,
  type StopReason,
  stopReasonOf,
  toChoiceEnd,
  toCitation,
} from "./answer.js";
import { citedTexts } from "./cited-texts.js";
import { extraOf, inOrder, isServerBlock } from "./extra.js";
import { ObjectEnd } from "./object-end.js";
import { NO_ENDING, readEnding } from "./own-ending.js";

export interface MessageEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Server-sent events with the name of each. */
export function writeMessageEvents(events: readonly MessageEvent[]): Buffer {
  return Buffer.from(events.map(writeEvent).join(""));
}

/** JSON has no line ends. The usual event is put together from its two values. */
function writeEvent(event: MessageEvent): string {
  const { type, index, delta } = event;
  const isText = isRecord(delta) && delta.type === "text_delta" && typeof delta.text === "string";
  const data = isText
    ? `{"type":"content_block_delta","index":${String(index)},"delta":{"type":"text_delta","text":${JSON.stringify(delta.text)}}}`
    : JSON.stringify(event);
  return `event: ${type}\ndata: ${data}\n\n`;
}

export interface MessageFrame {
  readonly id: string;
  readonly model: string;
}

type Piece = NonNullable<ChatDelta["tool_calls"]>[number] & {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly extra_content?: unknown;
};

interface Text {
  readonly kind: "text" | "thinking";
  /** Text that was not sent. */
  pending: string;
  /** All of it, for a whole answer only: a stream keeps nothing that it has sent. */
  grown: string;
  readonly citations: unknown[];
  signature: string;
  /** More text is another block. */
  isSealed: boolean;
}

interface Call {
  readonly kind: "call";
  id: string;
  name: string;
  pending: string;
  grown: string;
  isBegun: boolean;
  readonly end: ObjectEnd;
}

/** A block that is whole at once. */
interface Whole {
  readonly kind: "whole";
  readonly block: AnswerBlock;
}

type Block = Text | Call | Whole;

export class MessageEvents {
  /** In the order in which they began. */
  private readonly blocks: Block[] = [];
  /** Blocks before it are closed. */
  private live = 0;
  private isLiveOpen = false;
  /** By the chat's index. */
  private readonly calls = new Map<number, Call>();
  private readonly signatures = new Signatures();
  /** Citations that arrived without a text. */
  private readonly unplaced: unknown[] = [];
  private choiceEnd: ChoiceEnd = { finishReason: null, native: null, stopSequence: null };
  /** The order of a whole answer's blocks, where it is not that of a chat. */
  private order: unknown;
  private own = NO_ENDING;
  /** Of a stream's last chunk. */
  private receipt: unknown;

  /** `isWhole`: the events are not read, and `end` returns the whole message. */
  constructor(
    private readonly frame: MessageFrame,
    private readonly isWhole = false,
  ) {}

  begin(): MessageEvent[] {
    return [{ type: "message_start", message: this.message([], null, NO_MESSAGE_USAGE) }, { type: "ping" }];
  }

  /** Reads only the first choice: a message has one. */
  read(chunk: ChatChunkObject): MessageEvent[] {
    if (chunk.receipt) this.receipt = chunk.receipt;
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    if (choice?.finish_reason) this.choiceEnd = toChoiceEnd(choice);
    return choice?.delta ? this.readDelta(choice.delta) : [];
  }

  /** Closes all blocks. `usage` is the charged one. */
  end(usage: MessageUsage): MessageEvent[] {
    if (this.unplaced.length > 0) append(this.textOf("text").citations, this.unplaced.splice(0));
    const signed = this.signatures.take();
    // Signatures of a thought stand in its block; those of calls, in a block behind them.
    if (signed !== null) this.blocks.push({ kind: "whole", block: { type: "redacted_thinking", data: signed } });
    const events = this.advance(true);
    events.push(
      {
        type: "message_delta",
        delta: this.ending(),
        usage: this.usageOf(usage),
        ...this.own.message,
        ...(this.receipt !== undefined && { receipt: this.receipt }),
      },
      { type: "message_stop" },
    );
    return events;
  }

  /** The whole message with the charged `usage`, instead of events. */
  whole(usage: MessageUsage): FinishedMessage {
    this.end(usage);
    const blocks = orderedBlocks(this.blocks, this.order).map(toAnswerBlock);
    const ending = this.ending();
    return { ...this.message(blocks, ending.stop_reason, this.usageOf(usage)), ...ending, ...this.own.message };
  }

  private ending(): { readonly stop_reason: StopReason; readonly stop_sequence: string | null } {
    const reason = stopReasonOf(this.choiceEnd, this.calls.size > 0);
    return { stop_reason: reason, stop_sequence: reason === "stop_sequence" ? this.choiceEnd.stopSequence : null, ...this.own.delta };
  }

  private usageOf(charged: MessageUsage): MessageUsage {
    return { ...this.own.usage, ...charged };
  }

  private readDelta(delta: ChatDelta): MessageEvent[] {
    if (this.isMoreText(delta)) return [textDelta(this.live, "text", delta.content)];
    const events: MessageEvent[] = [];
    const extra = extraOf(delta);
    if (extra.order !== undefined) this.order = extra.order;
    if (extra.ending !== undefined) this.own = readEnding(extra.ending);
    if (extra.begins === "text") this.seal("text");
    const thought = plainText(reasoningIn(delta));
    const details = recordsOf(delta.reasoning_details);
    const own = details.filter(isOwnThought);
    if (thought !== "" && own.length === 0) append(events, this.grow("thinking", thought));
    for (const detail of own) append(events, this.addOwnThought(detail, thought !== ""));
    this.signatures.addThoughts(details.filter((detail) => !isOwnThought(detail)));
    for (const block of extra.block === undefined ? recordsOf(extra.blocks) : [extra.block]) this.addServerBlock(block);
    const annotations = recordsOf(delta.annotations);
    for (const { text, cited } of citedTexts(plainText(delta.content), annotations, extra.texts)) {
      if (text !== "") append(events, this.grow("text", text));
      if (cited.length > 0) append(events, this.cite(cited));
      if (extra.texts !== undefined) this.seal("text");
    }
    const refusal = plainText(delta.refusal);
    if (refusal !== "") append(events, this.grow("text", refusal));
    for (const [position, piece] of (delta.tool_calls ?? []).entries()) this.readCall(piece, position);
    append(events, this.advance(false));
    return events;
  }

  /** Nothing but more of the open text, as most chunks of a stream are. */
  private isMoreText(delta: ChatDelta): delta is ChatDelta & { readonly content: string } {
    const last = this.blocks.at(-1);
    if (this.isWhole || last?.kind !== "text" || last.isSealed || !this.isOpen(last)) return false;
    for (const name in delta) if (name !== "content") return false;
    return typeof delta.content === "string" && delta.content !== "";
  }

  /** A thought that Anthropic signed, as it is. `isWhole`: its text comes with it, not before it. */
  private addOwnThought(detail: Loose, isWhole: boolean): MessageEvent[] {
    const { signature, redactedData: data } = extraOf(detail);
    if (typeof data === "string") {
      this.seal("thinking");
      this.blocks.push({ kind: "whole", block: { type: "redacted_thinking", data } });
      return [];
    }
    const text = typeof detail.text === "string" ? detail.text : "";
    const events = isWhole && text !== "" ? this.grow("thinking", text) : [];
    const block = this.textOf("thinking");
    block.signature = String(signature);
    block.isSealed = true;
    return events;
  }

  private addServerBlock(block: unknown): void {
    if (!isRecord(block) || !isServerBlock(block.type)) return;
    this.seal("text");
    this.blocks.push({ kind: "whole", block: block as AnswerBlock });
  }

  private seal(kind: Text["kind"]): void {
    const last = this.blocks.at(-1);
    if (last?.kind === kind) last.isSealed = true;
  }

  private grow(kind: Text["kind"], delta: string): MessageEvent[] {
    const text = this.textOf(kind);
    const isOpen = this.isOpen(text);
    if (this.isWhole) text.grown += delta;
    if (!isOpen) {
      // The opening of a block sends its text up to now.
      text.pending += delta;
      return this.advance(false);
    }
    return [textDelta(this.live, kind, delta)];
  }

  private textOf(kind: Text["kind"]): Text {
    const last = this.blocks.at(-1);
    if (last?.kind === kind && !last.isSealed) return last;
    const begun: Text = { kind, pending: "", grown: "", citations: [], signature: "", isSealed: false };
    this.blocks.push(begun);
    return begun;
  }

  private cite(annotations: readonly unknown[]): MessageEvent[] {
    const cited = annotations.map(toCitation).filter((citation) => citation !== null);
    const last = this.blocks.at(-1);
    if (last?.kind !== "text") {
      append(this.unplaced, cited);
      return [];
    }
    if (this.isWhole || !this.isOpen(last)) append(last.citations, cited);
    if (!this.isOpen(last)) return [];
    return cited.map((citation) => deltaEvent(this.live, { type: "citations_delta", citation }));
  }

  private readCall({ index, id, function: called, custom, extra_content: extra }: Piece, position: number): void {
    const key = typeof index === "number" ? index : position;
    let call = this.calls.get(key);
    if (!call) {
      call = {
        kind: "call",
        id: `toolu_${this.frame.id.slice(4)}_${this.calls.size}`,
        name: "",
        pending: "",
        grown: "",
        isBegun: false,
        end: new ObjectEnd(),
      };
      this.calls.set(key, call);
      this.blocks.push(call);
    }
    if (typeof id === "string" && id !== "" && !call.isBegun) call.id = id;
    if (call.name === "") call.name = called?.name ?? custom?.name ?? "";
    const more = called?.arguments ?? custom?.input ?? "";
    call.pending += more;
    if (this.isWhole) call.grown += more;
    call.end.read(more);
    if (isRecord(extra)) this.signatures.addCall(call.id, extra);
  }

  private isOpen(block: Block): boolean {
    return this.isLiveOpen && this.blocks[this.live] === block;
  }

  /** Opens, sends and closes blocks as far as their order allows. */
  private advance(isEnd: boolean): MessageEvent[] {
    const events: MessageEvent[] = [];
    for (;;) {
      const block = this.blocks[this.live];
      if (block === undefined) return events;
      // A call waits for its name.
      if (!this.isLiveOpen && !isEnd && block.kind === "call" && block.name === "") return events;
      if (!this.isLiveOpen) append(events, this.open(block));
      if (block.kind === "call" && block.pending !== "") {
        events.push(deltaEvent(this.live, { type: "input_json_delta", partial_json: block.pending }));
        block.pending = "";
      }
      const isLast = this.live === this.blocks.length - 1;
      const isDone = isEnd || (!isLast && (block.kind !== "call" || block.end.isComplete));
      if (!isDone) return events;
      append(events, this.close(block));
    }
  }

  private open(block: Block): MessageEvent[] {
    this.isLiveOpen = true;
    const index = this.live;
    const events: MessageEvent[] = [{ type: "content_block_start", index, content_block: toEmptyBlock(block) }];
    if (block.kind === "call") block.isBegun = true;
    if (block.kind === "call" || block.kind === "whole") return events;
    if (block.pending !== "") events.push(textDelta(index, block.kind, block.pending));
    block.pending = "";
    const cited = block.citations.map((citation) => deltaEvent(index, { type: "citations_delta", citation }));
    append(events, cited);
    if (!this.isWhole) block.citations.splice(0);
    return events;
  }

  private close(block: Block): MessageEvent[] {
    const index = this.live++;
    this.isLiveOpen = false;
    const stop: MessageEvent = { type: "content_block_stop", index };
    if (block.kind !== "thinking") return [stop];
    block.signature ||= this.signatures.takeThoughts() ?? "";
    return [...(block.signature === "" ? [] : [deltaEvent(index, { type: "signature_delta", signature: block.signature })]), stop];
  }

  private message<Reason extends StopReason | null>(
    content: readonly AnswerBlock[],
    reason: Reason,
    usage: MessageUsage,
  ): MessageAnswer & { readonly stop_reason: Reason } {
    const { id, model } = this.frame;
    const head = { id, type: "message", role: "assistant", model } as const;
    return { ...head, content, stop_reason: reason, stop_sequence: null, usage };
  }
}

type Loose = Readonly<Record<string, unknown>>;

/** Its signature is Anthropic's own, which clients may also return to Anthropic. */
function isOwnThought(detail: Loose): boolean {
  const { signature, redactedData } = extraOf(detail);
  return typeof signature === "string" || typeof redactedData === "string";
}

function orderedBlocks(blocks: readonly Block[], order: unknown): readonly Block[] {
  if (order === undefined) return blocks;
  const isThought = (block: Block) => block.kind === "thinking" || (block.kind === "whole" && block.block.type === "redacted_thinking");
  const thinking = blocks.filter(isThought);
  const server = blocks.filter((block) => block.kind === "whole" && !isThought(block));
  const text = blocks.filter(({ kind }) => kind === "text");
  return inOrder({ thinking, text, call: blocks.filter(({ kind }) => kind === "call"), server }, order) ?? blocks;
}

function textDelta(index: number, kind: Text["kind"], text: string): MessageEvent {
  return deltaEvent(index, kind === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text });
}

function deltaEvent(index: number, delta: Readonly<Record<string, unknown>>): MessageEvent {
  return { type: "content_block_delta", index, delta };
}

function toEmptyBlock(block: Block): AnswerBlock {
  if (block.kind === "call") return { type: "tool_use", id: block.id, name: block.name, input: {} };
  if (block.kind === "whole") return block.block;
  return block.kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" };
}

function toAnswerBlock(block: Block): AnswerBlock {
  switch (block.kind) {
    case "call":
      return { type: "tool_use", id: block.id, name: block.name, input: inputOf(block.grown) };
    case "whole":
      return block.block;
    case "thinking":
      return { type: "thinking", thinking: block.grown, signature: block.signature };
    case "text":
      return { type: "text", text: block.grown, ...(block.citations.length > 0 && { citations: block.citations }) };
  }
}
