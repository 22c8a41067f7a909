/** POST /v1/audio/transcriptions: OpenAI's wire format (docs/spec/audio.md#transcriptions). */
import type { Exchange } from "../../http/exchange.js";
import type { AnswerType } from "../../lib/content-types.js";
import { formatSseEvent } from "../../lib/sse.js";
import { TRANSCRIPTION_FILE_BYTES_MAX, TRANSCRIPTION_FORM_BYTES_MAX } from "../../limits.js";
import {
  type TranscriptFormat,
  type TranscriptionResult,
  toTranscriptText,
  transcriptionForm,
} from "../../services/generation/media/transcriptions.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import type { Route } from "../route.js";

const CONTENT_TYPES: Readonly<Record<TranscriptFormat, AnswerType>> = {
  json: "application/json; charset=utf-8",
  verbose_json: "application/json; charset=utf-8",
  text: "text/plain; charset=utf-8",
  srt: "application/x-subrip; charset=utf-8",
  vtt: "text/vtt; charset=utf-8",
};

export function addTranscriptionRoutes(route: Route, endpoint: Endpoint, { transcriptions }: Pick<Services, "transcriptions">): void {
  route("/v1/audio/transcriptions", {
    POST: endpoint({
      isGeneration: true,
      form: {
        fields: transcriptionForm,
        files: { file: { countMax: 1, isRequired: true } },
        fileBytesMax: TRANSCRIPTION_FILE_BYTES_MAX,
        bytesMax: TRANSCRIPTION_FORM_BYTES_MAX,
      },
      handler: async (ctx, { body: { stream, ...input }, files, exchange }) => {
        const result = await transcriptions.create(ctx, files.file?.[0], input);
        exchange.setHeaders({ ...receiptHeaders(result.receipt), "X-Usage-Input-Audio-Seconds": String(result.billedMs / 1000) });
        if (stream) sendEvents(exchange, result);
        else exchange.sendBytes(Buffer.from(toTranscriptText(result)), CONTENT_TYPES[result.format]);
      },
    }),
  });
}

/** Unspecified: what is said is known as a whole, so `stream` is answered with one delta and the end. */
function sendEvents(exchange: Exchange, { transcript: { text }, billedMs }: TranscriptionResult): void {
  const usage = { type: "duration", seconds: billedMs / 1000 };
  const events = [
    { type: "transcript.text.delta", delta: text },
    { type: "transcript.text.done", text, usage },
  ];
  const bytes = Buffer.concat(events.map((event) => formatSseEvent(JSON.stringify(event))));
  exchange.sendBytes(bytes, "text/event-stream; charset=utf-8");
}
