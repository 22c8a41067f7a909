/**
 * Server-sent events. Writes a generation's stream batch by batch at the client's pace, and ends the generation when the client disconnects
 * (docs/spec/http.md#streams).
 */
import type { OutgoingHttpHeaders } from "node:http";
import type { RequestContext } from "../context.js";
import { type Pulled, type PulledIterator, pullFrom } from "../fast/pull.js";
import { toMessageFailure } from "../formats/anthropic-messages/answer.js";
import { toGeminiError } from "../formats/gemini/errors.js";
import type { AnswerWriting } from "../formats/gemini/writing.js";
import { type ErrorObject, explain, statusOf, toErrorObject } from "../http/errors.js";
import type { Exchange } from "../http/exchange.js";
import { EVENT_STREAM_HEADERS, EventStreamWriter } from "../http/sse.js";
import { formatSseEvent } from "../lib/sse.js";
import { STREAM_HEAD_WAIT_MS } from "../limits.js";
import type { CompletionStream } from "../services/generation/chat/completions.js";
import { writeEvents } from "../services/generation/chat/converted-stream.js";
import type { GenerateContentStream } from "../services/generation/chat/generate-content.js";
import type { MessageStream } from "../services/generation/chat/messages.js";
import type { ResponseStream } from "../services/generation/chat/responses.js";
import type { ChatCompletionStream } from "../services/generation/chat/stream.js";
import type { SpokenStream } from "../services/generation/media/speech-stream.js";
import { receiptHeaders, startedHeaders, streamHeaders } from "./headers.js";
import { EVENT_STREAM } from "./openapi/answer.js";

const DONE = Buffer.from("data: [DONE]\n\n");
const NOTHING = Buffer.alloc(0);

interface Written {
  readonly bytes: Uint8Array;
}

/** A generation's stream, generic in its events and in the data at its start. */
interface EventStream<Opened> extends Pick<ChatCompletionStream, "admitted"> {
  readonly opened: Promise<Opened>;
  readonly events: AsyncIterableIterator<Written> & PulledIterator<Written>;
}

interface StreamFormat<Opened> {
  /** Null: no upstream has begun to answer. */
  readonly toHeaders: (opened: Opened | null) => OutgoingHttpHeaders;
  /** Written after the last event. */
  readonly done: Uint8Array | (() => Uint8Array);
  readonly toErrorEvent: (error: ErrorObject) => Uint8Array;
  /** Default: server-sent events. */
  readonly contentType?: string;
  /** Sent in long silences; default: a comment. */
  readonly keepAlive?: Uint8Array;
}

/** Writes the whole stream, then `[DONE]`. Rejects while nothing has been sent; a later failure is a `data:` line with `error`, without `[DONE]`. */
export function sendChatStream(exchange: Exchange, ctx: RequestContext, stream: ChatCompletionStream): Promise<void> {
  return sendEventStream(exchange, ctx, stream, {
    toHeaders: (opened) => streamHeaders(stream, opened),
    done: DONE,
    toErrorEvent: toChatErrorEvent,
  });
}

/** As `sendChatStream`, in chunks of the completions format. */
export function sendCompletionStream(exchange: Exchange, ctx: RequestContext, stream: CompletionStream): Promise<void> {
  return sendEventStream(exchange, ctx, stream, {
    toHeaders: (opened) => streamHeaders(stream, opened),
    done: DONE,
    toErrorEvent: toChatErrorEvent,
  });
}

/** As `sendChatStream`; audio events have no `[DONE]`, and their cost is known at the start. */
export function sendSpeechEvents(
  exchange: Exchange,
  ctx: RequestContext,
  { generationId, opened, admitted }: SpokenStream,
  events: EventStream<unknown>["events"],
): Promise<void> {
  const toHeaders = (begun: Awaited<typeof opened> | null) => (begun ? receiptHeaders(begun.quote) : startedHeaders(generationId));
  return sendEventStream(exchange, ctx, { opened, admitted, events }, { toHeaders, done: NOTHING, toErrorEvent: toChatErrorEvent });
}

/** As `sendChatStream`; the Responses format has no `[DONE]`, and its own events of a failure. */
export function sendResponseStream(exchange: Exchange, ctx: RequestContext, stream: ResponseStream): Promise<void> {
  return sendEventStream(exchange, ctx, stream, {
    toHeaders: (opened) => streamHeaders(stream, opened),
    done: NOTHING,
    toErrorEvent: (error) => writeEvents(stream.failed(error)),
  });
}

/** The events of a response in the background. Leaving them does not end it. */
export function sendFollowedResponse(exchange: Exchange, ctx: RequestContext, events: EventStream<unknown>["events"]): Promise<void> {
  return sendEventStream(
    exchange,
    ctx,
    { opened: Promise.resolve(), events },
    { toHeaders: () => ({}), done: NOTHING, toErrorEvent: toChatErrorEvent },
  );
}

/** As `sendChatStream`; the Messages format has no `[DONE]`, and its own event of a failure. */
export function sendMessageStream(exchange: Exchange, ctx: RequestContext, stream: MessageStream): Promise<void> {
  return sendEventStream(exchange, ctx, stream, {
    toHeaders: (opened) => streamHeaders(stream, opened),
    done: NOTHING,
    toErrorEvent: (error) => formatSseEvent(JSON.stringify(toMessageFailure(error, statusOf(error.code))), "error"),
  });
}

/** As `sendChatStream`, in the form of `writing`, which also writes the stream's answers. */
export function sendAnswerStream(
  exchange: Exchange,
  ctx: RequestContext,
  stream: GenerateContentStream,
  writing: AnswerWriting,
): Promise<void> {
  return sendEventStream(exchange, ctx, stream, {
    toHeaders: (opened) => streamHeaders(stream, opened),
    // Depends on whether anything was written.
    done: () => writing.done,
    toErrorEvent: (error) => writing.writeError(toGeminiError(error, statusOf(error.code))),
    contentType: writing.contentType,
    keepAlive: writing.filler,
  });
}

async function sendEventStream<Opened>(
  exchange: Exchange,
  ctx: RequestContext,
  stream: EventStream<Opened>,
  format: StreamFormat<Opened>,
): Promise<void> {
  const { events } = stream;
  let isOver = false;
  const leave = () => {
    if (!isOver) void events.return?.().then(ignore, ignore);
  };
  if (ctx.leaving) ctx.leaving.onGone(leave);
  else ctx.signal.addEventListener("abort", leave, { once: true });
  // Pulled at once: a lazy source would otherwise never open.
  const reading: Reading = { events, pulled: pullFrom(events) };
  if (reading.pulled instanceof Promise) reading.pulled.catch(ignore);
  try {
    // Waits for the checks however long they take, so that a refusal has its own status.
    if (stream.admitted) await stream.admitted.catch(ignore);
    const opened = await openedInTime(stream.opened);
    exchange.writeHead(
      200,
      Object.assign(
        { "Content-Type": `${format.contentType ?? EVENT_STREAM}; charset=utf-8` },
        EVENT_STREAM_HEADERS,
        format.toHeaders(opened),
      ),
    );
    await sendEvents(exchange, reading, format);
  } finally {
    isOver = true;
    if (!ctx.leaving) ctx.signal.removeEventListener("abort", leave);
  }
}

/** The only reference to the pending pull, so that written data is not kept while waiting for more. */
interface Reading {
  readonly events: EventStream<unknown>["events"];
  pulled: Pulled<Written> | Promise<Pulled<Written>>;
}

async function sendEvents(
  exchange: Exchange,
  reading: Reading,
  format: Pick<StreamFormat<unknown>, "done" | "toErrorEvent" | "keepAlive">,
): Promise<void> {
  const writer = new EventStreamWriter(exchange.res, format.keepAlive);
  try {
    while (!writer.isEnded) {
      const taken = writePulled(writer, reading.pulled instanceof Promise ? await reading.pulled : reading.pulled, format);
      if (taken !== undefined) await taken;
      if (!writer.isEnded) reading.pulled = pullFrom(reading.events);
    }
  } catch (error) {
    if (!exchange.isGone) writer.end(format.toErrorEvent(toErrorObject(explain(error, exchange), exchange.requestId)));
  } finally {
    writer.close();
  }
}

/** Undefined when the reader keeps up; else resolves once it does, or has disconnected. */
function writePulled(
  writer: EventStreamWriter,
  pulled: Pulled<Written>,
  format: Pick<StreamFormat<unknown>, "done">,
): Promise<void> | undefined {
  if (pulled.done) return writer.end(doneOf(format));
  const { bytes } = pulled.value;
  return pulled.isLast ? writer.endWith(bytes, doneOf(format)) : writer.write(bytes);
}

function doneOf({ done }: Pick<StreamFormat<unknown>, "done">): Uint8Array {
  return typeof done === "function" ? done() : done;
}

/** Null when the upstream takes longer: the answer then begins without its data. */
function openedInTime<Opened>(opened: Promise<Opened>): Promise<Opened | null> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, STREAM_HEAD_WAIT_MS, null);
    opened.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Without an event line, as OpenAI sends it: common clients read data lines alone. */
function toChatErrorEvent(error: ErrorObject): Buffer {
  return formatSseEvent(JSON.stringify({ error }));
}

function ignore(): void {}
