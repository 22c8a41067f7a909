/**
 * The tail of a chat stream: the finishing chunk is withheld until the charge is committed, because it, or an additional chunk with
 * `stream_options.include_usage`, has the usage (docs/spec/chat.md#streams).
 */

import type { ChunkFrame, Framed } from "../../../formats/openai-chat/chunk-frame.js";
import { countDeltaTokens } from "../../../formats/openai-chat/count.js";
import type { ChatChunkObject, ChatDelta } from "../../../formats/openai-chat/schema.js";
import type { ChatChunk, ChatChunkBatch } from "../../../formats/openai-chat/stream.js";
import { withoutUsage } from "../../../formats/openai-chat/usage-dialects.js";
import { AnswerName } from "../../../lib/answer-name.js";
import { withFields } from "../../../lib/own-values.js";
import { formatSseEvent } from "../../../lib/sse.js";
import { type Receipt, toStreamReceipt } from "../receipt.js";
import { cutChunk, withCost } from "./answer.js";

export interface ChatStreamBatch {
  readonly chunks: readonly ChatChunkObject[];
  readonly bytes: Uint8Array;
}

export class ChatTail {
  /** As received, like `last`. */
  private withheld: ChatChunk | null = null;
  private last: ChatChunk | null = null;
  private readonly name: AnswerName;
  /** The last frame, with its literals under this name. */
  private frame: ChunkFrame | null = null;
  private literals: readonly string[] | null = null;

  /** `model` is the id of the requested one: every chunk has it, whichever candidate sends it. */
  constructor(
    private readonly model: string,
    private readonly includeUsage: boolean,
  ) {
    this.name = new AnswerName(model);
  }

  get endsAtLength(): boolean {
    return this.withheld?.object.choices?.some((choice) => choice.finish_reason === "length") ?? false;
  }

  /** The part to pass on at once; null for none. */
  pass(batch: ChatChunkBatch): ChatStreamBatch | null {
    const passed: ChatChunk[] = [];
    for (const chunk of batch) {
      if (chunk.framed) {
        this.last = chunk;
        if (this.withheld) passed.push(this.withheld);
        this.withheld = null;
        passed.push(chunk);
        continue;
      }
      const rest = withoutReport(chunk);
      this.last = rest;
      if (rest !== chunk && saysNothing(rest, this.withheld !== null)) continue;
      if (this.withheld) passed.push(this.withheld);
      this.withheld = isFinishing(rest) ? rest : null;
      if (!this.withheld) passed.push(rest);
    }
    return passed.length === 0 ? null : new PassedBatch(passed, this.name, () => this.bytesOf(passed));
  }

  /** The last batch of a finished answer. `report`: the upstream's own, by which it was charged. */
  close(receipt: Receipt, report?: unknown): ChatStreamBatch {
    const ending = this.usageAndReceipt(receipt, report);
    const { withheld } = this;
    if (!this.includeUsage)
      return toBatch([rewritten(withFields(withheld ? this.name.inObject(withheld.object) : this.skeleton(), ending))]);
    const finishing = withheld ? [this.named(withheld)] : [];
    return toBatch([...finishing, rewritten(withFields(this.skeleton(), ending))]);
  }

  /** The last batch of an answer that was stopped because its hold is used up, without the unpaid last tokens. */
  cutAtLength(passed: ChatStreamBatch | null, unpaidTokens: number, receipt: Receipt, report?: unknown): ChatStreamBatch {
    const choices = [{ index: 0, delta: {}, finish_reason: "length" }];
    const cut = rewritten({ ...this.skeleton(), choices, ...this.usageAndReceipt(receipt, report) });
    const paid = passed && unpaidTokens > 0 ? withoutLast(passed.chunks, unpaidTokens).map(rewritten) : null;
    if (paid) return toBatch([...paid, cut]);
    return {
      chunks: [...(passed?.chunks ?? []), cut.object],
      bytes: passed ? Buffer.concat([passed.bytes, cut.bytes]) : cut.bytes,
    };
  }

  /** Usage and receipt of the last chunk. The upstream's report is passed on when the charge is based on it. */
  private usageAndReceipt(receipt: Receipt, report: unknown): Pick<ChatChunkObject, "usage" | "receipt"> {
    const usage = withCost(receipt.usageSource === "provider" ? report : null, receipt);
    return { usage, receipt: toStreamReceipt(receipt) };
  }

  /** The common fields of a stream's chunks, without content. */
  private skeleton(): ChatChunkObject {
    const { usage: _usage, ...common } = this.last ? this.name.inObject(this.last.object) : { model: this.model };
    return withFields(common, { object: "chat.completion.chunk", choices: [] });
  }

  /** Writes chunks of a frame by their differing strings, a batch in one piece. */
  private bytesOf(chunks: readonly ChatChunk[]): Buffer {
    const pieces: Uint8Array[] = [];
    let written = "";
    for (const chunk of chunks) {
      const { framed } = chunk;
      const literals = framed ? this.literalsOf(framed) : null;
      if (framed && literals) written = fill(written, literals, framed.fillings);
      else {
        if (written !== "") pieces.push(Buffer.from(written, "latin1"));
        written = "";
        pieces.push(this.named(chunk).bytes);
      }
    }
    if (pieces.length === 0) return Buffer.from(written, "latin1");
    if (written !== "") pieces.push(Buffer.from(written, "latin1"));
    return Buffer.concat(pieces);
  }

  /** A provider's chunk under the requested name; here and in `literalsOf` all of a provider's chunks are renamed (see `AnswerName`). */
  private named({ bytes, object, usage }: ChatChunk): ChatChunk {
    const named = this.name.inObject(object);
    return { object: named, bytes: this.name.inBytes(bytes, object) ?? formatSseEvent(JSON.stringify(named)), usage };
  }

  /** Null when its chunks are renamed one by one. */
  private literalsOf({ frame }: Framed): readonly string[] | null {
    if (frame === this.frame) return this.literals;
    this.frame = frame;
    const named = frame.rewritten((data, object) => this.name.inBytes(data, object));
    this.literals = named && [`data: ${named[0]}`, ...named.slice(1, -1), `${named.at(-1)}\n\n`];
    return this.literals;
  }
}

function fill(before: string, literals: readonly string[], fillings: readonly string[]): string {
  let written = before;
  for (let index = 0; index < fillings.length; index++) written += literals[index] + (fillings[index] ?? "");
  return written + literals[fillings.length];
}

/** Makes the objects and the bytes on demand: a chat needs the bytes alone, other faces the objects alone. */
class PassedBatch implements ChatStreamBatch {
  private objects: readonly ChatChunkObject[] | null = null;
  private written: Buffer | null = null;

  constructor(
    private readonly passed: readonly ChatChunk[],
    private readonly name: AnswerName,
    private readonly write: () => Buffer,
  ) {}

  get bytes(): Buffer {
    this.written ??= this.write();
    return this.written;
  }

  get chunks(): readonly ChatChunkObject[] {
    this.objects ??= this.passed.map(({ object }) => this.name.inObject(object));
    return this.objects;
  }
}

function withoutLast(chunks: readonly ChatChunkObject[], tokens: number): ChatChunkObject[] {
  let unpaid = tokens;
  const paid: ChatChunkObject[] = [];
  for (const chunk of chunks.toReversed()) {
    const said = chunk.choices?.reduce((sum, { delta }) => sum + countDeltaTokens(delta), 0) ?? 0;
    paid.unshift(unpaid > 0 && said > 0 ? cutChunk(chunk, Math.max(0, said - unpaid)) : chunk);
    unpaid -= said;
  }
  return paid;
}

/** A report beside no choice, or beside choices without content behind the finishing chunk. */
function saysNothing({ object: { choices } }: ChatChunk, isFinished: boolean): boolean {
  if (!choices || choices.length === 0) return true;
  return isFinished && choices.every(({ delta, finish_reason: reason }) => !reason && isEmpty(delta));
}

function isEmpty(delta: ChatDelta | null | undefined): boolean {
  const isNothing = (value: unknown) =>
    value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  return Object.entries(delta ?? {}).every(([name, value]) => name === "role" || isNothing(value));
}

function isFinishing(chunk: ChatChunk): boolean {
  return chunk.object.choices?.some((choice) => choice.finish_reason) ?? false;
}

/** Usage leaves in the last chunk alone. */
function withoutReport(chunk: ChatChunk): ChatChunk {
  const object = withoutUsage(chunk.object);
  return object === chunk.object ? chunk : { ...chunk, ...rewritten(object) };
}

function rewritten(object: ChatChunkObject): ChatChunk {
  return { object, bytes: formatSseEvent(JSON.stringify(object)), usage: null };
}

function toBatch(chunks: readonly ChatChunk[]): ChatStreamBatch {
  const [only] = chunks;
  return {
    chunks: chunks.map((chunk) => chunk.object),
    bytes: chunks.length === 1 && only ? only.bytes : Buffer.concat(chunks.map((chunk) => chunk.bytes)),
  };
}
