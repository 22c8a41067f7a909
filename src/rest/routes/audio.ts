/** Audio (docs/spec/audio.md): GET /audio/{text} as bytes, speech and transcriptions in OpenAI's format. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { Exchange } from "../../http/exchange.js";
import { drained } from "../../lib/back-pressure.js";
import type { AnswerType } from "../../lib/content-types.js";
import { toCreditsNumber } from "../../lib/money.js";
import { formatSseEvent } from "../../lib/sse.js";
import { countTextTokens } from "../../lib/tokenizer.js";
import { SLOW_READER_TIMEOUT_MS, TRANSCRIPTION_FILE_BYTES_MAX, TRANSCRIPTION_FORM_BYTES_MAX } from "../../limits.js";
import { audioQuery, countCharacters, speechInput } from "../../services/generation/media/speech.js";
import type { SpokenStream } from "../../services/generation/media/speech-stream.js";
import {
  type TranscriptFormat,
  type TranscriptionResult,
  toTranscriptText,
  transcriptionForm,
  translationForm,
} from "../../services/generation/media/transcriptions.js";
import type { Receipt } from "../../services/generation/receipt.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, sent, writtenJson } from "../openapi/answer.js";
import { pathText } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendGenerated } from "../stored-file.js";
import { sendSpeechEvents } from "../streaming.js";

/** By `response_format`, the default first. */
const AUDIO_TYPES = ["audio/mpeg", "audio/ogg", "audio/aac", "audio/flac", "audio/wav", "audio/pcm"] as const;

/** GET /audio/{text}: speech or music, depending on the model (docs/spec/audio.md#get-audio). */
export function addAudioRoutes(route: Route, endpoint: Endpoint, { audio }: Pick<Services, "audio">): void {
  route("/audio/*text", {
    GET: endpoint({
      id: "getAudio",
      tag: "Audio",
      summary: "Generates speech from text, or music with a music model.",
      answer: sent(...AUDIO_TYPES),
      example: { parameters: { text: "Hello!", model: "sandbox/speech" } },
      isForAgents: true,
      isBounded: true,
      params: z.object({ text: pathText("The text to speak, or a description of the music. May contain slashes.") }),
      query: audioQuery,
      handler: (ctx, { params, query, exchange }) => sendGenerated(exchange, audio.ask(ctx, params.text, query)),
    }),
  });
}

/** POST /v1/audio/speech (docs/spec/audio.md#speech), streamed as the speech is generated. */
export function addSpeechRoutes(route: Route, endpoint: Endpoint, { speech }: Pick<Services, "speech">): void {
  route("/v1/audio/speech", {
    POST: endpoint({
      id: "createSpeech",
      tag: "Audio",
      summary: "Generates speech, in OpenAI's wire format.",
      answer: sent(...AUDIO_TYPES, EVENT_STREAM),
      example: { body: { model: "sandbox/speech", input: "Hello!", voice: "alloy", response_format: "mp3" } },
      isForAgents: true,
      isGeneration: true,
      body: speechInput,
      handler: (ctx, { body, exchange }) => {
        const stream = speech.stream(ctx, body);
        exchange.setHeaders({ "X-Usage-Characters": String(countCharacters(body.input)) });
        if (body.stream_format !== "sse") return sendSpeech(exchange, ctx, stream);
        return sendSpeechEvents(exchange, ctx, stream, toSpeechEvents(stream, body.input));
      },
    }),
  });
}

/** Bytes written ahead of the client; less is not worth waiting for. */
const WRITE_AHEAD_BYTES = 256 * 1024;

/**
 * Its cost is known at the start, and is in the headers. Rejects while nothing has been sent; a later failure breaks the connection, as
 * audio bytes cannot carry an error.
 */
async function sendSpeech(exchange: Exchange, ctx: RequestContext, { opened, chunks }: SpokenStream): Promise<void> {
  const { res } = exchange;
  const leave = () => void chunks.return?.().then(ignore, ignore);
  ctx.signal.addEventListener("abort", leave, { once: true });
  if (ctx.signal.aborted) leave();
  try {
    // Headers are sent with the first piece: until then a failure has its own status.
    let next = await chunks.next();
    const { contentType, quote } = await opened;
    exchange.setHeaders(receiptHeaders(quote));
    exchange.writeHead(200, { "Content-Type": contentType });
    for (; !next.done; next = await chunks.next()) {
      // Node sends everything written in one turn together.
      for (const piece of next.value) res.write(piece);
      if (res.writableLength > WRITE_AHEAD_BYTES) await drained(res, SLOW_READER_TIMEOUT_MS);
    }
    res.end();
  } catch (error) {
    await chunks.return?.();
    throw error;
  } finally {
    ctx.signal.removeEventListener("abort", leave);
  }
}

function ignore(): void {}

// Speech as OpenAI's events (`stream_format: "sse"`): audio in base64, then usage.

interface SpeechEvent {
  readonly bytes: Uint8Array;
}

const END = { done: true, value: undefined } as const;

/** `speech.audio.done` follows the charge. Streams that were abandoned or failed have none. */
function toSpeechEvents(stream: SpokenStream, input: string): AsyncIterableIterator<SpeechEvent> {
  let isDone = false;
  return {
    async next() {
      if (isDone) return END;
      const { done, value } = await stream.chunks.next();
      if (!done) return { done: false, value: toEvent({ type: "speech.audio.delta", audio: Buffer.concat(value).toString("base64") }) };
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

/** Unspecified: the price is by character, and tokens of audio are not counted. */
function toUsage(input: string, { costNanocredits }: Receipt): Record<string, number> {
  const tokens = countTextTokens(input);
  return { input_tokens: tokens, output_tokens: 0, total_tokens: tokens, cost: toCreditsNumber(costNanocredits) };
}

function toEvent(event: object): SpeechEvent {
  return { bytes: formatSseEvent(JSON.stringify(event)) };
}

// POST /v1/audio/transcriptions (docs/spec/audio.md#transcriptions).

const CONTENT_TYPES: Readonly<Record<TranscriptFormat, AnswerType>> = {
  json: "application/json; charset=utf-8",
  verbose_json: "application/json; charset=utf-8",
  diarized_json: "application/json; charset=utf-8",
  text: "text/plain; charset=utf-8",
  srt: "application/x-subrip; charset=utf-8",
  vtt: "text/vtt; charset=utf-8",
};

const RECORDING = {
  files: { file: { countMax: 1, isRequired: true } },
  fileBytesMax: TRANSCRIPTION_FILE_BYTES_MAX,
  bytesMax: TRANSCRIPTION_FORM_BYTES_MAX,
} as const;

export function addTranscriptionRoutes(route: Route, endpoint: Endpoint, { transcriptions }: Pick<Services, "transcriptions">): void {
  route("/v1/audio/transcriptions", {
    POST: endpoint({
      id: "createTranscription",
      tag: "Audio",
      summary: "Transcribes a recording, in OpenAI's wire format.",
      answer: writtenJson(json("Transcription", z.looseObject({ text: z.string() })), "text/plain", "text/vtt"),
      example: { form: { model: "sandbox/transcription", response_format: "json" } },
      isForAgents: true,
      isGeneration: true,
      form: { fields: transcriptionForm, ...RECORDING },
      handler: async (ctx, { body: { stream, ...input }, files, exchange }) => {
        const result = await transcriptions.create(ctx, files.file?.[0], input);
        exchange.setHeaders(transcriptHeaders(result));
        if (stream) sendEvents(exchange, result);
        else sendTranscript(exchange, result);
      },
    }),
  });
}

/** POST /v1/audio/translations (docs/spec/audio.md#translations). */
export function addTranslationRoutes(route: Route, endpoint: Endpoint, { transcriptions }: Pick<Services, "transcriptions">): void {
  route("/v1/audio/translations", {
    POST: endpoint({
      id: "createTranslation",
      tag: "Audio",
      summary: "Transcribes a recording in English, in OpenAI's wire format.",
      description: "Needs a transcription model whose upstream translates. Others are rejected with 400.",
      answer: writtenJson(json("Translation", z.looseObject({ text: z.string() })), "text/plain", "text/vtt"),
      example: { form: { model: "sandbox/transcription", response_format: "json" } },
      isForAgents: true,
      isGeneration: true,
      form: { fields: translationForm, ...RECORDING },
      handler: async (ctx, { body, files, exchange }) => {
        const result = await transcriptions.create(ctx, files.file?.[0], body, "translate");
        exchange.setHeaders(transcriptHeaders(result));
        sendTranscript(exchange, result);
      },
    }),
  });
}

function transcriptHeaders({ receipt, billedMs }: TranscriptionResult) {
  return { ...receiptHeaders(receipt), "X-Usage-Input-Audio-Seconds": String(billedMs / 1000) };
}

function sendTranscript(exchange: Exchange, result: TranscriptionResult): void {
  exchange.sendBytes(Buffer.from(toTranscriptText(result)), CONTENT_TYPES[result.format]);
}

/** Unspecified: transcripts arrive whole, so `stream` gives one delta and the end. */
function sendEvents(exchange: Exchange, { transcript: { text }, billedMs }: TranscriptionResult): void {
  const usage = { type: "duration", seconds: billedMs / 1000 };
  const events = [
    { type: "transcript.text.delta", delta: text },
    { type: "transcript.text.done", text, usage },
  ];
  const bytes = Buffer.concat(events.map((event) => formatSseEvent(JSON.stringify(event))));
  exchange.sendBytes(bytes, "text/event-stream; charset=utf-8");
}
