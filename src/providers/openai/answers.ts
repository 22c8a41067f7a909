/**
 * Reads the answer to a chat, a stream or JSON by its first bytes: some servers send the other form, or label it wrongly, and bill
 * it all the same.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { CollectedAnswer } from "../../formats/openai-chat/collect.js";
import type { ChatChunk, StreamFormat } from "../../formats/openai-chat/stream.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { ReportedUsage } from "../../lib/usage.js";
import type { ChatAnswer, ChatBatches } from "../provider.js";
import type { UpstreamResponse } from "../upstream-response.js";
import { contentTypeOf, isEventStream } from "./client.js";
import { ChatEventStream, isEventText, type StreamSource } from "./event-stream.js";

/** One format of answers, with the bounds of its upstream. */
export interface AnswerFormat {
  readonly answerBytesMax: number;
  readonly streamBytesMax: number;
  /** The format of one stream's events. */
  events(): StreamFormat;
  /** Reads a JSON answer. Throws a ProviderError. */
  read(bytes: Buffer): ChatAnswer;
  toChunks(answer: ChatAnswer): readonly ChatChunk[];
}

/** The answer to a request without `stream`. A stream is put together. */
export function readWholeAnswer(response: UpstreamResponse, format: AnswerFormat): ChatAnswer | Promise<ChatAnswer> {
  if (isEventStream(response)) return putTogether(response, format);
  const read = (bytes: Buffer) => (isEventText(bytes) ? putTogether(received(bytes), format) : format.read(bytes));
  const bytes = response.atHand(format.answerBytesMax);
  return bytes === null ? response.readAll(format.answerBytesMax).then(read) : read(bytes);
}

/** The answer to a request with `stream`. JSON becomes the chunks of the same answer. */
export function readStreamedAnswer(response: UpstreamResponse, format: AnswerFormat): ChatBatches | Promise<ChatBatches> {
  // An upstream without a content type is assumed to answer with the requested one.
  const isLabelled = isEventStream(response) || contentTypeOf(response) === "";
  const stream = new ChatEventStream(response, {
    ...boundsOf(format),
    isLabelled,
    format: format.events(),
    readWhole: (bytes) => format.toChunks(format.read(bytes)),
  });
  // A failure told in another document is the call's, not the stream's.
  return isLabelled ? stream : stream.begin();
}

/** The answer with the warnings in its object and bytes. */
export function warnedAnswer(answer: ChatAnswer, warnings: readonly string[]): ChatAnswer {
  if (warnings.length === 0) return { ...answer, warnings };
  const completion = { ...answer.completion, warnings };
  return { ...answer, completion, bytes: Buffer.from(JSON.stringify(completion)), warnings };
}

async function putTogether(source: StreamSource, format: AnswerFormat): Promise<ChatAnswer> {
  let whole: ChatAnswer | null = null;
  const stream = new ChatEventStream(source, {
    ...boundsOf(format),
    isLabelled: true,
    format: format.events(),
    readWhole: (bytes) => {
      whole = format.read(bytes);
      return [];
    },
  });
  const collected = new CollectedAnswer();
  let usage: ReportedUsage | null = null;
  let bytes = 0;
  for await (const batch of stream) {
    for (const chunk of batch) {
      // All of a chunk, because each of its fields is kept.
      bytes += chunk.text?.length ?? chunk.bytes.length;
      if (bytes > format.answerBytesMax) {
        throw new ProviderError("invalid-response", `The upstream's answer is larger than ${format.answerBytesMax} bytes.`);
      }
      usage = chunk.usage ?? usage;
      collected.add(chunk.object, chunk.report);
    }
  }
  if (whole !== null) return whole;
  const completion = collected.toCompletion();
  return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage };
}

function boundsOf({ streamBytesMax, answerBytesMax }: AnswerFormat) {
  return { bytesMax: streamBytesMax, wholeBytesMax: answerBytesMax };
}

/** Bytes of a received stream that are read in one turn of the event loop. */
const TURN_BYTES = 64 * 1024;

/** A body that has been received whole. */
function received(bytes: Buffer): StreamSource {
  let at = 0;
  return {
    untilReadable: () => (at === 0 ? null : nextTurn()),
    take: () => {
      if (at >= bytes.length) return null;
      at += TURN_BYTES;
      return [bytes.subarray(at - TURN_BYTES, at)];
    },
    destroy: () => undefined,
    finish: () => undefined,
  };
}
