/**
 * Transcription (docs/spec/audio.md#transcriptions): what is said in a recording, billed per second of it. The recording is measured
 * before it is held for, so that the hold is what it will cost. Measuring is work: the limits come before it, and whoever could not pay
 * for the shortest recording is refused before it, too.
 */
import type { RequestContext } from "../../../context.js";
import { AppError, invalidInput, wrongField } from "../../../errors.js";
import { NO_USAGE } from "../../../lib/usage.js";
import { TRANSCRIPTION_FILE_BYTES_MAX } from "../../../limits.js";
import type { InputFile, TranscriptionAnswer } from "../../../providers/media.js";
import { requireCaller } from "../../access/permissions.js";
import type { BillableQuantities } from "../../catalog/pricing.js";
import { expecting, type Generations } from "../generations.js";
import type { Receipt } from "../receipt.js";
import type { Metered } from "../run.js";
import type { Upstreams } from "../upstreams.js";
import type { InspectedFile, MediaInspector } from "./media-inspector.js";
import { type Transcript, toSrt, toVerboseJson, toVtt } from "./transcript-formats.js";
import type { TranscriptFormat, TranscriptionInput } from "./transcriptions-input.js";

export interface TranscriptionResult {
  readonly transcript: Transcript;
  readonly format: TranscriptFormat;
  /** What the recording was billed for, in milliseconds. */
  readonly billedMs: number;
  readonly receipt: Receipt;
}

/** A recording is what it was measured to be, unless the upstream heard clearly more: a head can lie about what follows it. */
const BELIEVED_FACTOR = 1.1;
const BELIEVED_MARGIN_MS = 1_000;

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
    const checked = { texts: [prompt ?? ""], safe };
    const admitted = await generations.admit(ctx, least, checked);
    await generations.assertPayable(least);
    const { audio, durationMs } = await measure({ accountId, bytes }, inspector);
    const plan = expecting(least, lasting(durationMs));
    const wants = timesWanted(format, timestamp_granularities ?? []);
    const { answer, receipt, charged } = await generations.run<TranscriptionAnswer>(ctx, plan, {
      ...checked,
      admitted,
      call: (model, signal, [hint = ""]) =>
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

function meter({ durationMs: heardMs }: TranscriptionAnswer, measuredMs: number): Metered {
  const isMore = heardMs !== null && heardMs > measuredMs * BELIEVED_FACTOR + BELIEVED_MARGIN_MS;
  const inputAudioMilliseconds = isMore ? heardMs : measuredMs;
  return { quantities: { ...NO_USAGE, inputAudioMilliseconds }, source: isMore ? "provider" : "estimated" };
}
