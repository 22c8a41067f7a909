/**
 * Streams of texts that the content cache keeps: one that was there already comes as a single chunk, one that is made is remembered
 * when it has come to its end.
 */
import type { ChatChunkObject } from "../../../lib/chat-format.js";
import { formatSseEvent } from "../../../lib/sse.js";
import type { CachedAnswer } from "../content-cache/content-cache.js";
import { type Receipt, toStreamReceipt } from "../receipt.js";
import type { ChatCompletionStream } from "./chat-stream.js";
import type { ChatStreamBatch } from "./chat-tail.js";
import { plainText } from "./chat-text.js";
import { withCost } from "./chat-usage.js";

/** Unspecified: longer streams are not remembered. */
const TEXT_CHARS_MAX = 4 * 1024 * 1024;

/** What a chunk adds to the first choice's text. */
export function textOfChunk(chunk: ChatChunkObject): string {
  const choice = chunk.choices?.find((candidate) => (candidate.index ?? 0) === 0);
  return plainText(choice?.delta?.content);
}

/** A text that is there, as a stream of one chunk which is also its last. */
export function replayText(text: string, { receipt }: Pick<CachedAnswer, "receipt">): ChatCompletionStream {
  const chunk: ChatChunkObject = {
    id: `chatcmpl-${receipt.generationId}`,
    object: "chat.completion.chunk",
    created: Math.floor(Date.now() / 1000),
    model: receipt.model,
    choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: withCost(null, receipt),
    receipt: toStreamReceipt(receipt),
  };
  return {
    generationId: receipt.generationId,
    opened: Promise.resolve({ model: receipt.model, modelUsed: receipt.modelUsed, warnings: receipt.warnings }),
    events: once({ chunks: [chunk], bytes: formatSseEvent(JSON.stringify(chunk)) }),
    receipt: () => receipt,
    timing: () => receipt,
    isHit: true,
  };
}

/** The same stream; `keep` is told the whole text before the stream's end is, when it came to its end and was charged. */
export function rememberText(stream: ChatCompletionStream, keep: (text: string, receipt: Receipt) => Promise<void>): ChatCompletionStream {
  const { events } = stream;
  let text = "";
  return {
    generationId: stream.generationId,
    opened: stream.opened,
    ...(stream.admitted && { admitted: stream.admitted }),
    notes: stream.notes ?? [],
    receipt: () => stream.receipt(),
    timing: () => stream.timing(),
    events: {
      next: async () => {
        const next = await events.next();
        if (!next.done) {
          if (text.length <= TEXT_CHARS_MAX) for (const chunk of next.value.chunks) text += textOfChunk(chunk);
          return next;
        }
        const receipt = stream.receipt();
        if (receipt?.status === "ok" && text.length <= TEXT_CHARS_MAX) await keep(text, receipt);
        return next;
      },
      return: async () => (await events.return?.()) ?? { done: true, value: undefined },
      [Symbol.asyncIterator]() {
        return this;
      },
    },
  };
}

async function* once(batch: ChatStreamBatch): AsyncGenerator<ChatStreamBatch> {
  yield batch;
}
