/**
 * Transcription (docs/spec/audio.md#transcriptions): what is said in a recording, billed per second of it. The recording is measured
 * before it is held for, so that the hold is what it will cost. Measuring is work: the limits come before it, and whoever could not pay
 * for the shortest recording is refused before it, too.
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
import { MORE_HEARD_MS_MAX } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import type { Metered } from "../run.js";
import type { Upstreams } from "../upstreams.js";
import type { InspectedFile, MediaInspector } from "./media-inspector.js";

// What a transcription is asked with (docs/spec/audio.md#transcriptions): as GraphQL states it, and as the texts of a form.

export const TRANSCRIPT_FORMATS = ["json", "text", "verbose_json", "srt", "vtt"] as const;
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

/** What is not named here travels on to the upstream untouched. */
export const transcriptionInput = z.looseObject(fields).refine(areTimesShown, TIMES_ARE_SHOWN);
type TranscriptionInput = z.output<typeof transcriptionInput>;

/** POST /v1/audio/transcriptions, beside the file. */
export const transcriptionForm = z
  .looseObject({ ...fields, temperature: queryNumber(temperature).optional(), stream: queryFlag.default(false) })
  .refine(areTimesShown, TIMES_ARE_SHOWN)
  .refine(({ stream, response_format }) => !stream || (response_format ?? "json") === "json", {
    message: "needs response_format json",
    path: ["stream"],
  });

export interface TranscriptionResult {
  readonly transcript: Transcript;
  readonly format: TranscriptFormat;
  /** What the recording was billed for, in milliseconds. */
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
  async create(ctx: RequestContext, file: InputFile | undefined, input: TranscriptionInput): Promise<TranscriptionResult> {
    const { accountId } = requireCaller(ctx);
    const { model: name, language, prompt, temperature, response_format, timestamp_granularities, safe, ...extra } = input;
    const { generations, upstreams, inspector } = this.deps;
    const format = response_format ?? "json";
    // A wrong model is told before the recording is looked at.
    const least = generations.plan(ctx, "transcription", name, extra, () => lasting(1));
    const bytes = bytesOf(file);
    const checked = { words: { texts: [prompt ?? ""], extra }, safe };
    const admitted = await generations.admit(ctx, least, checked);
    await generations.assertPayable(least);
    const { audio, durationMs } = await measure({ accountId, bytes }, inspector);
    const plan = expecting(least, lasting(durationMs));
    const wants = timesWanted(format, timestamp_granularities ?? []);
    const { answer, receipt, charged } = await generations.run<TranscriptionAnswer>(ctx, plan, {
      ...checked,
      admitted,
      call: (model, signal, { texts: [hint = ""], extra }) =>
        upstreams.serving(ctx, model, "transcription").transcribe({
          upstreamModel: model.upstreamModel,
          audio,
          language: language ?? null,
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
      language: answer.language ?? language ?? null,
      durationMs: answer.durationMs ?? durationMs,
      segments: wants.wantsSegments ? answer.segments : null,
      words: wants.wantsWords ? answer.words : null,
    };
    return { transcript, format, billedMs: charged.inputAudioMilliseconds ?? durationMs, receipt };
  }
}

/** The transcript as it was asked for, but for `json` and `verbose_json`, which are objects. */
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
    throw invalidInput("The file holds no sound that can be read: it may be MP3, WAV, FLAC, Ogg, Opus, AAC, M4A, MP4 or WebM.", "file");
  }
  // Upstreams go by the name's ending, which the caller may have got wrong; the rest of the name is nobody's business.
  const audio = { bytes: file.bytes, contentType: facts.contentType, name: `audio.${facts.extension}` };
  return { audio, durationMs: facts.durationMs };
}

function timesWanted(format: TranscriptFormat, granularities: readonly ("segment" | "word")[]) {
  const wantsWords = granularities.includes("word");
  const isTimed = format === "verbose_json" || format === "srt" || format === "vtt";
  return { wantsSegments: isTimed && (granularities.length === 0 || granularities.includes("segment")), wantsWords };
}

/** A recording is what it was measured to be, packet by packet. An upstream that heard more is charged for a second of it. */
function meter({ durationMs: heardMs }: TranscriptionAnswer, measuredMs: number): Metered {
  const mostMs = measuredMs + MORE_HEARD_MS_MAX;
  if (heardMs === null || heardMs <= mostMs) return { quantities: lasting(measuredMs), source: "estimated" };
  return { quantities: lasting(mostMs), source: "bounded", reported: lasting(heardMs) };
}

// A transcript as each `response_format` has it.

type Transcript = Pick<TranscriptionAnswer, "text" | "language" | "segments" | "words"> & {
  /** Length of the recording. */
  readonly durationMs: number;
};

/**
 * Unspecified: what a segment's upstream did not tell of its decoding. Strict clients read no segment that lacks a field, so each has a
 * value that none of OpenAI's own tests for a bad transcript takes offence at.
 */
const UNTOLD: Omit<SegmentDecoding, "id"> = {
  seek: 0,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
};

/** OpenAI's `verbose_json`, with every field that its description requires. */
function toVerboseJson(transcript: Transcript): Record<string, unknown> {
  const { text, language, durationMs, segments, words } = transcript;
  return {
    task: "transcribe",
    language: language ?? "unknown",
    duration: durationMs / 1000,
    text,
    ...(segments !== null && { segments: segments.map(toVerboseSegment) }),
    ...(words !== null && { words: words.map(({ start, end, text: word }) => ({ word, start, end })) }),
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

/** One caption for the whole when the upstream told no times. A blank line within a caption would end it. */
function captions({ text, segments, durationMs }: Transcript): readonly TranscriptSegment[] {
  const timed = segments !== null && segments.length > 0 ? segments : [{ start: 0, end: durationMs / 1000, text }];
  return timed
    .map((segment) => ({ ...segment, end: Math.max(segment.start, segment.end), text: withoutBlankLines(segment.text) }))
    .filter((segment) => segment.text !== "");
}

function withoutBlankLines(text: string): string {
  return text.trim().replace(/\s+/g, (space) => (space.includes("\n") ? "\n" : space));
}

/** WebVTT gives a meaning to these. */
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
