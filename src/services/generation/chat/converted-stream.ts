/** A chat's stream in the events of another format. */
import { type Pulled, type PulledIterator, pullFrom } from "../../../fast/pull.js";
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
  readonly events: AsyncIterableIterator<ConvertedBatch<Event>> & PulledIterator<ConvertedBatch<Event>>;
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
    settled: async () => chat.settled?.(),
    events: convertEvents(chat, begin, write),
  };
}

/** Keeps the chat's own `return()`, which takes effect at once, also during a pending pull. */
function convertEvents<Event>(
  { events: source, receipt }: Pick<ChatCompletionStream, "events" | "receipt">,
  begin: () => Promise<StreamConverter<Event>>,
  write: WriteEvents<Event>,
): ConvertedStream<Event>["events"] {
  let converter: StreamConverter<Event> | null = null;
  let isEnded = false;
  type Next = Pulled<ConvertedBatch<Event>>;
  const pull = (): Next | Promise<Next> => {
    for (;;) {
      if (isEnded) return { done: true, value: undefined };
      const next = pullFrom(source);
      if (next instanceof Promise) return next.then(resume);
      if (!converter) return open(next);
      const converted = convert(converter, next, []);
      if (converted !== null) return converted;
    }
  };
  const resume = (next: Pulled<ChatStreamBatch>): Next | Promise<Next> =>
    converter ? (convert(converter, next, []) ?? pull()) : open(next);
  const open = async (next: Pulled<ChatStreamBatch>): Promise<Next> => {
    if (next.done) return { done: true, value: undefined };
    converter = await begin();
    return convert(converter, next, converter.begin()) ?? pull();
  };
  /** Null when nothing is to be sent. A fault of the conversion ends the generation, charged for the delivered part. */
  const convert = (made: StreamConverter<Event>, next: Pulled<ChatStreamBatch>, opening: readonly Event[]): Next | Promise<Next> | null => {
    const isLast = next.done === true || next.isLast === true;
    if (isLast) isEnded = true;
    try {
      const events = [...opening];
      if (!next.done) for (const chunk of next.value.chunks) append(events, made.read(chunk));
      if (isLast) append(events, made.end(receipt()));
      return events.length === 0 && !isLast ? null : { done: false, value: { events, bytes: write(events) }, isLast };
    } catch (error) {
      isEnded = true;
      return fail(error);
    }
  };
  const fail = async (error: unknown): Promise<never> => {
    await source.return?.();
    throw error;
  };
  return {
    next: async () => pull(),
    pull,
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
