/**
 * Transcription (docs/spec/audio.md#transcriptions), billed per second of the recording. The recording is measured before the hold, so that
 * the hold is the cost. Measuring is work, so limits are checked before it, and a balance that is too low for the shortest recording is
 * refused.
 */

import * as z from "zod";
import type { RequestContext } from "../../../context.js";
import { AppError, invalidInput, wrongField } from "../../../errors.js";
import { NO_USAGE } from "../../../lib/usage.js";
import { TRANSCRIPTION_FILE_BYTES_MAX } from "../../../limits.js";
import type { InputFile, SegmentDecoding, TranscriptionAnswer, TranscriptSegment } from "../../../providers/media.js";
import { requireCaller } from "../../access/permissions.js";
import type { BillableQuantities } from "../../catalog/pricing.js";
import { queryFlag, queryNumber } from "../../requests/query-values.js";
import { SAFE_PATTERN } from "../../safety/features.js";
import { expecting, type Generations } from "../generations.js";
import type { Metered } from "../metered.js";
import { MORE_HEARD_MS_MAX } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import type { Upstreams } from "../upstreams.js";
import type { InspectedFile, MediaInspector } from "./media-inspector.js";

// Input of transcriptions (docs/spec/audio.md#transcriptions), as GraphQL and as a form.

export const TRANSCRIPT_FORMATS = ["json", "text", "verbose_json", "srt", "vtt", "diarized_json"] as const;
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number];
export const TIMESTAMP_GRANULARITIES = ["segment", "word"] as const;

const temperature = z.number().min(0).max(1);

const fields = {
  model: z.string().min(1).max(253).nullish(),
  /** ISO 639-1; longer tags such as `pt-BR` are left to the upstream. */
  language: z
    .string()
    .regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, "must be a tag such as en or pt-BR")
    .nullish(),
  prompt: z.string().nullish(),
  temperature: temperature.nullish(),
  response_format: z.enum(TRANSCRIPT_FORMATS).nullish(),
  timestamp_granularities: z.array(z.enum(TIMESTAMP_GRANULARITIES)).max(TIMESTAMP_GRANULARITIES.length).nullish(),
  safe: z.string().meta({ pattern: SAFE_PATTERN }).nullish(),
};

type Stated = Pick<z.output<z.ZodObject<typeof fields>>, "response_format" | "timestamp_granularities">;

const areTimesShown = (input: Stated) => !input.timestamp_granularities?.length || input.response_format === "verbose_json";
const TIMES_ARE_SHOWN = { message: "needs response_format verbose_json", path: ["timestamp_granularities"] };

export const transcriptionInput = z.looseObject(fields).refine(areTimesShown, TIMES_ARE_SHOWN);
type TranscriptionInput = z.output<typeof transcriptionInput>;

export const transcriptionForm = z
  .looseObject({ ...fields, temperature: queryNumber(temperature).optional(), stream: queryFlag.default(false) })
  .refine(areTimesShown, TIMES_ARE_SHOWN)
  .refine(({ stream, response_format }) => !stream || (response_format ?? "json") === "json", {
    message: "needs response_format json",
    path: ["stream"],
  });

/** A translation is a transcript in English. */
export const translationForm = z.looseObject({ ...fields, temperature: queryNumber(temperature).optional() });

export interface TranscriptionResult {
  readonly transcript: Transcript;
  readonly format: TranscriptFormat;
  /** The billed length in milliseconds. */
  readonly billedMs: number;
  readonly receipt: Receipt;
}

export class Transcriptions {
  constructor(
    private readonly deps: {
      readonly generations: Generations;
      readonly upstreams: Upstreams;
      readonly inspector: MediaInspector;
    },
  ) {}

  /** Throws BAD_REQUEST or PAYLOAD_TOO_LARGE with the parameter `file`. Resolves when the charge is committed. */
  async create(
    ctx: RequestContext,
    file: InputFile | undefined,
    input: TranscriptionInput,
    task: "transcribe" | "translate" = "transcribe",
  ): Promise<TranscriptionResult> {
    const isTranslation = task === "translate";
    if (isTranslation) assertTranslatable(input);
    const { accountId } = requireCaller(ctx);
    const { model: name, language, prompt, temperature, response_format, timestamp_granularities, safe, ...extra } = input;
    const { generations, upstreams, inspector } = this.deps;
    const format = response_format ?? "json";
    // A wrong model is refused before the recording is measured.
    const least = generations.plan(ctx, "transcription", name, extra, () => lasting(1));
    const bytes = bytesOf(file);
    const checked = { words: { texts: [prompt ?? ""], extra }, safe };
    const admitted = await generations.admit(ctx, least, checked);
    await generations.assertPayable(least);
    const { audio, durationMs } = await measure({ accountId, bytes }, inspector);
    const plan = expecting(least, lasting(durationMs), {
      most: () => lasting(durationMs + MORE_HEARD_MS_MAX),
      notes: () => ["A model may report up to a second more than the recording has, and is charged for it."],
    });
    const wants = requestedTimes(format, timestamp_granularities ?? []);
    const { answer, receipt, charged } = await generations.run<TranscriptionAnswer>(ctx, plan, {
      ...checked,
      admitted,
      call: (candidate, signal, { texts: [hint = ""], extra }) =>
        upstreams.serving(ctx, candidate, "transcription").transcribe({
          upstreamModel: candidate.route.upstreamModel,
          audio,
          language: language ?? null,
          isTranslation,
          prompt: hint === "" ? null : hint,
          temperature: temperature ?? null,
          ...wants,
          extra,
          signal,
        }),
      meter: (heard) => meter(heard, durationMs),
      warnings: ({ warnings }) => warnings,
    });
    const transcript = {
      text: answer.text,
      language: isTranslation ? "english" : (answer.language ?? language ?? null),
      isTranslation,
      durationMs: answer.durationMs ?? durationMs,
      segments: wants.wantsSegments ? answer.segments : null,
      words: wants.wantsWords ? answer.words : null,
    };
    return { transcript, format, billedMs: charged.inputAudioMilliseconds ?? durationMs, receipt };
  }
}

/** Throws BAD_REQUEST: the formats of translations name no speakers and no times of words. */
function assertTranslatable({ response_format, timestamp_granularities }: Stated): void {
  if (response_format === "diarized_json")
    throw invalidInput("A translation names no speakers: use another response_format.", "response_format");
  if (timestamp_granularities?.includes("word")) throw invalidInput("A translation has no times of words.", "timestamp_granularities");
}

/** The transcript in the requested text format; `json`, `verbose_json` and `diarized_json` are objects. */
export function toTranscriptText({ transcript, format }: TranscriptionResult): string {
  switch (format) {
    case "srt":
      return toSrt(transcript);
    case "vtt":
      return toVtt(transcript);
    case "json":
      return JSON.stringify({ text: transcript.text });
    case "verbose_json":
      return JSON.stringify(toVerboseJson(transcript));
    case "diarized_json":
      return JSON.stringify(toDiarizedJson(transcript));
    case "text":
      return `${transcript.text}\n`;
  }
}

function lasting(milliseconds: number): BillableQuantities {
  return { ...NO_USAGE, inputAudioMilliseconds: milliseconds };
}

function bytesOf(file: InputFile | undefined): Uint8Array {
  if (file === undefined) throw wrongField("file", "is required");
  if (file.bytes.byteLength === 0) throw invalidInput("The file is empty.", "file");
  if (file.bytes.byteLength > TRANSCRIPTION_FILE_BYTES_MAX) {
    throw new AppError("PAYLOAD_TOO_LARGE", `The file is larger than ${TRANSCRIPTION_FILE_BYTES_MAX} bytes.`, { param: "file" });
  }
  return file.bytes;
}

async function measure(
  file: InspectedFile,
  inspector: MediaInspector,
): Promise<{ readonly audio: InputFile; readonly durationMs: number }> {
  const facts = await inspector.audio(file);
  if (facts === null) {
    throw invalidInput("The file has no audio that can be read: send MP3, WAV, FLAC, Ogg, Opus, AAC, M4A, MP4 or WebM.", "file");
  }
  // Upstreams use the file extension, which the client may have got wrong; they need not see the rest of the name.
  const audio = { bytes: file.bytes, contentType: facts.contentType, name: `audio.${facts.extension}` };
  return { audio, durationMs: facts.durationMs };
}

function requestedTimes(format: TranscriptFormat, granularities: readonly ("segment" | "word")[]) {
  const wantsWords = granularities.includes("word");
  const wantsSpeakers = format === "diarized_json";
  const isTimed = format === "verbose_json" || format === "srt" || format === "vtt" || wantsSpeakers;
  return { wantsSpeakers, wantsSegments: isTimed && (granularities.length === 0 || granularities.includes("segment")), wantsWords };
}

/** Charges the measured length; an upstream that reports more is believed up to one more second. */
function meter({ durationMs: heardMs }: TranscriptionAnswer, measuredMs: number): Metered {
  const mostMs = measuredMs + MORE_HEARD_MS_MAX;
  if (heardMs === null || heardMs <= mostMs) return { quantities: lasting(measuredMs), source: "estimated" };
  return { quantities: lasting(mostMs), source: "bounded", reported: lasting(heardMs), counted: () => lasting(measuredMs) };
}

// Transcripts in each `response_format`.

type Transcript = Pick<TranscriptionAnswer, "text" | "language" | "segments" | "words"> & {
  readonly durationMs: number;
  readonly isTranslation?: boolean;
};

/**
 * Unspecified: decoding data that a segment's upstream did not report. Strict clients need every field, so each has a value that passes
 * OpenAI's own tests for a bad transcript.
 */
const UNTOLD: Omit<SegmentDecoding, "id"> = {
  seek: 0,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
};

/** OpenAI's `verbose_json`, with every required field. */
function toVerboseJson(transcript: Transcript): Record<string, unknown> {
  const { text, language, durationMs, segments, words, isTranslation } = transcript;
  return {
    task: isTranslation ? "translate" : "transcribe",
    language: language ?? "unknown",
    duration: durationMs / 1000,
    text,
    ...(segments !== null && { segments: segments.map(toVerboseSegment) }),
    ...(words !== null && { words: words.map(({ start, end, text: word }) => ({ word, start, end })) }),
    usage: { type: "duration", seconds: durationMs / 1000 },
  };
}

/** OpenAI's `diarized_json`. */
function toDiarizedJson({ text, durationMs, segments }: Transcript): Record<string, unknown> {
  return {
    task: "transcribe",
    duration: durationMs / 1000,
    text,
    segments: (segments ?? []).map(({ start, end, text: said, speaker = "" }, index) => ({
      ...{ type: "transcript.text.segment", id: `seg_${index}`, start, end, text: said, speaker },
    })),
    usage: { type: "duration", seconds: durationMs / 1000 },
  };
}

function toVerboseSegment({ start, end, text, decoding }: TranscriptSegment, index: number): Record<string, unknown> {
  const { id = index, seek, tokens, temperature, avg_logprob, compression_ratio, no_speech_prob } = { ...UNTOLD, ...decoding };
  return { id, seek, start, end, text, tokens, temperature, avg_logprob, compression_ratio, no_speech_prob };
}

export function toSrt(transcript: Transcript): string {
  return captions(transcript)
    .map(({ start, end, text }, index) => `${index + 1}\n${timeOf(start, ",")} --> ${timeOf(end, ",")}\n${text}\n\n`)
    .join("");
}

function toVtt(transcript: Transcript): string {
  const cues = captions(transcript).map(({ start, end, text }) => `${timeOf(start, ".")} --> ${timeOf(end, ".")}\n${escapeCue(text)}\n\n`);
  return `WEBVTT\n\n${cues.join("")}`;
}

/** One caption for the whole when the upstream reported no times. A blank line within a caption would end it. */
function captions({ text, segments, durationMs }: Transcript): readonly TranscriptSegment[] {
  const timed = segments !== null && segments.length > 0 ? segments : [{ start: 0, end: durationMs / 1000, text }];
  return timed
    .map((segment) => ({ ...segment, end: Math.max(segment.start, segment.end), text: withoutBlankLines(segment.text) }))
    .filter((segment) => segment.text !== "");
}

function withoutBlankLines(text: string): string {
  return text.trim().replace(/\s+/g, (space) => (space.includes("\n") ? "\n" : space));
}

/** Characters with a meaning in WebVTT. */
function escapeCue(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** 3661.5 to `01:01:01,500`. */
function timeOf(seconds: number, separator: "," | "."): string {
  const milliseconds = Math.round(seconds * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const clock = `${two(milliseconds / 3_600_000)}:${two((milliseconds / 60_000) % 60)}:${two((milliseconds / 1000) % 60)}`;
  return `${clock}${separator}${String(milliseconds % 1000).padStart(3, "0")}`;
}
