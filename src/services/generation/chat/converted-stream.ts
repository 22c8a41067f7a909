/** A chat's stream in the events of another format. */
import type { ChatChunkObject } from "../../../formats/openai-chat/schema.js";
import { append } from "../../../lib/collections.js";
import type { Receipt } from "../receipt.js";
import type { ChatCompletionStream } from "./stream.js";
import type { ChatStreamBatch } from "./stream-tail.js";

interface NamedEvent {
  readonly type: string;
}

/** The bytes of events on the wire. */
export type WriteEvents<Event> = (events: readonly Event[]) => Buffer;

/** A chat's stream with other events. */
export interface ConvertedStream<Event> extends Omit<ChatCompletionStream, "events"> {
  readonly events: AsyncIterableIterator<ConvertedBatch<Event>>;
}

export interface ConvertedBatch<Event> {
  readonly events: readonly Event[];
  /** All of them, as server-sent events unless the stream is written in another form. */
  readonly bytes: Uint8Array;
}

/** Converts one stream. */
export interface StreamConverter<Event> {
  begin(): readonly Event[];
  read(chunk: ChatChunkObject): readonly Event[];
  /** `receipt` is null when nothing was charged. */
  end(receipt: Receipt | null): readonly Event[];
}

/** `begin` is called when the first chunk arrives. */
export function convertStream<Event>(
  chat: ChatCompletionStream,
  begin: () => Promise<StreamConverter<Event>>,
  write: WriteEvents<Event>,
): ConvertedStream<Event> {
  return {
    generationId: chat.generationId,
    opened: chat.opened,
    ...(chat.admitted && { admitted: chat.admitted }),
    notes: chat.notes ?? [],
    receipt: () => chat.receipt(),
    timing: () => chat.timing(),
    events: convertEvents(chat, begin, write),
  };
}

/** Keeps the chat's own `return()`, which takes effect at once, also during a pending pull. */
function convertEvents<Event>(
  { events: source, receipt }: Pick<ChatCompletionStream, "events" | "receipt">,
  begin: () => Promise<StreamConverter<Event>>,
  write: WriteEvents<Event>,
): AsyncIterableIterator<ConvertedBatch<Event>> {
  let converter: StreamConverter<Event> | null = null;
  let isEnded = false;
  const pull = async (): Promise<IteratorResult<ConvertedBatch<Event>>> => {
    for (;;) {
      if (isEnded) return { done: true, value: undefined };
      const next = await source.next();
      const opening: Event[] = [];
      if (!converter) {
        if (next.done) return next;
        converter = await begin();
        append(opening, converter.begin());
      }
      isEnded = next.done === true;
      const converted = await convert(converter, next);
      const events = [...opening, ...converted];
      if (events.length > 0) return { done: false, value: { events, bytes: write(events) } };
    }
  };
  /** A fault of the conversion ends the generation, charged for the delivered part. */
  const convert = async (made: StreamConverter<Event>, next: IteratorResult<ChatStreamBatch>): Promise<readonly Event[]> => {
    try {
      return next.done ? made.end(receipt()) : next.value.chunks.flatMap((chunk) => made.read(chunk));
    } catch (error) {
      isEnded = true;
      await source.return?.();
      throw error;
    }
  };
  return {
    next: pull,
    return: async () => {
      isEnded = true;
      await source.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Server-sent events with the name of each. */
export function writeEvents(events: readonly NamedEvent[]): Buffer {
  // JSON has no line ends.
  return Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}
