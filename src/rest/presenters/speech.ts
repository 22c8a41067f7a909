/** Speech as OpenAI's events (`stream_format: "sse"`): pieces of the sound in base64, then what it took. */
import { toCreditsNumber } from "../../lib/money.js";
import { formatSseEvent } from "../../lib/sse.js";
import { countTextTokens } from "../../lib/tokenizer.js";
import type { SpokenStream } from "../../services/generation/media/speech-stream.js";
import type { Receipt } from "../../services/generation/receipt.js";

interface SpeechEvent {
  readonly bytes: Uint8Array;
}

const END = { done: true, value: undefined } as const;

/** `speech.audio.done` comes after the charge. A stream that was left, and one that failed, has none. */
export function toSpeechEvents(stream: SpokenStream, input: string): AsyncIterableIterator<SpeechEvent> {
  let isDone = false;
  return {
    async next() {
      if (isDone) return END;
      const { done, value } = await stream.chunks.next();
      if (!done) return { done: false, value: toEvent({ type: "speech.audio.delta", audio: toBase64(value) }) };
      isDone = true;
      const charged = stream.receipt();
      if (charged?.status !== "ok") return END;
      return { done: false, value: toEvent({ type: "speech.audio.done", usage: toUsage(input, charged) }) };
    },
    async return() {
      await stream.chunks.return?.();
      return END;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Unspecified: the price is by the character, and nobody counts the tokens of a sound. */
function toUsage(input: string, { costNanocredits }: Receipt): Record<string, number> {
  const tokens = countTextTokens(input);
  return { input_tokens: tokens, output_tokens: 0, total_tokens: tokens, cost: toCreditsNumber(costNanocredits) };
}

function toEvent(event: object): SpeechEvent {
  return { bytes: formatSseEvent(JSON.stringify(event)) };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
