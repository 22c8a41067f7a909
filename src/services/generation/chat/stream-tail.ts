/**
 * The tail of a chat stream: the chunk that finishes the answer is withheld until the charge is committed, because it, or a
 * chunk of its own when the caller asked for `stream_options.include_usage`, carries the usage (docs/spec/chat.md#streams).
 */

import { AnswerName } from "../../../lib/answer-name.js";
import type { ChatChunkObject } from "../../../lib/chat-format.js";
import { formatSseEvent } from "../../../lib/sse.js";
import { countDeltaTokens } from "../../../lib/tokenizer.js";
import type { ChatChunk, ChatChunkBatch } from "../../../providers/provider.js";
import { type Receipt, toStreamReceipt } from "../receipt.js";
import { cutChunk, namedChunk, withCost } from "./answer.js";

export interface ChatStreamBatch {
  readonly chunks: readonly ChatChunkObject[];
  /** All of the chunks as server-sent events, ready to write. */
  readonly bytes: Uint8Array;
}

export class ChatTail {
  private withheld: ChatChunk | null = null;
  /** The upstream's own usage object, as it came, when it is one that was believed. */
  private reported: unknown = null;
  private last: ChatChunkObject;
  private readonly name: AnswerName;

  /** `model` is the id of the one that was asked for: every chunk bears it, whoever sends it. */
  constructor(
    model: string,
    private readonly includeUsage: boolean,
  ) {
    this.name = new AnswerName(model);
    this.last = { model };
  }

  /** What has come ends because it may not be longer. */
  get endsAtLength(): boolean {
    return this.withheld?.object.choices?.some((choice) => choice.finish_reason === "length") ?? false;
  }

  /** What of a batch goes on at once; null when nothing does. */
  pass(batch: ChatChunkBatch): ChatStreamBatch | null {
    const passed: ChatChunk[] = [];
    for (const received of batch) {
      const chunk = namedChunk(received, this.name);
      this.last = chunk.object;
      if (chunk.usage) this.reported = chunk.object.usage;
      if (isUsageOnly(chunk)) continue;
      if (this.withheld) passed.push(this.withheld);
      this.withheld = isFinishing(chunk) ? chunk : null;
      if (!this.withheld) passed.push(chunk);
    }
    return passed.length === 0 ? null : toBatch(passed);
  }

  /** The last batch of an answer that came to its end. */
  close(receipt: Receipt): ChatStreamBatch {
    const told = this.told(receipt);
    if (!this.includeUsage) return toBatch([rewritten({ ...(this.withheld?.object ?? this.skeleton()), ...told })]);
    const finishing = this.withheld ? [withoutUsage(this.withheld)] : [];
    return toBatch([...finishing, rewritten({ ...this.skeleton(), ...told })]);
  }

  /** The last batch of an answer that was stopped because nobody pays for more of it, the last tokens of what has come among it. */
  cutAtLength(passed: ChatStreamBatch | null, unpaidTokens: number, receipt: Receipt): ChatStreamBatch {
    const choices = [{ index: 0, delta: {}, finish_reason: "length" }];
    const cut = rewritten({ ...this.skeleton(), choices, ...this.told(receipt) });
    const paid = passed && unpaidTokens > 0 ? withoutLast(passed.chunks, unpaidTokens).map(rewritten) : null;
    if (paid) return toBatch([...paid, cut]);
    return {
      chunks: [...(passed?.chunks ?? []), cut.object],
      bytes: passed ? Buffer.concat([passed.bytes, cut.bytes]) : cut.bytes,
    };
  }

  /** What the last chunk tells. The upstream's report goes on when it is what was charged for. */
  private told(receipt: Receipt): Pick<ChatChunkObject, "usage" | "receipt"> {
    const usage = withCost(receipt.usageSource === "provider" ? this.reported : null, receipt);
    return { usage, receipt: toStreamReceipt(receipt) };
  }

  /** What every chunk of a stream has in common, with nothing in it. */
  private skeleton(): ChatChunkObject {
    const { usage: _usage, ...common } = this.last;
    return { ...common, object: "chat.completion.chunk", choices: [] };
  }
}

/** The chunks without so many of their last tokens. */
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

function isUsageOnly(chunk: ChatChunk): boolean {
  const { choices, usage } = chunk.object;
  return Boolean(usage) && (choices?.length ?? 0) === 0;
}

function isFinishing(chunk: ChatChunk): boolean {
  return chunk.object.choices?.some((choice) => choice.finish_reason) ?? false;
}

function withoutUsage(chunk: ChatChunk): ChatChunk {
  return chunk.object.usage ? rewritten({ ...chunk.object, usage: null }) : chunk;
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
