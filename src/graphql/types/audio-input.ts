/** Inputs of speech, music and transcriptions. The services' own schemas check them, under the wire names. */

import type { SafetyFeature as SafetyFeatureName } from "../../services/catalog/model.js";
import type { MusicInput as MusicRequest } from "../../services/generation/media/speech.js";
import type { TIMESTAMP_GRANULARITIES, TRANSCRIPT_FORMATS } from "../../services/generation/media/transcriptions.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { PROVIDER_DESCRIPTION, ProviderInput } from "../wishes.js";
import { SafetyFeature } from "./models.js";

const AudioFormat = builder.enumType("AudioFormat", {
  description: "An audio format.",
  values: {
    MP3: { value: "mp3", description: "MPEG audio, layer 3." },
    OPUS: { value: "opus", description: "Opus in Ogg." },
    AAC: { value: "aac", description: "Advanced Audio Coding." },
    FLAC: { value: "flac", description: "Advanced Audio Coding." },
    WAV: { value: "wav", description: "Samples with a WAV header." },
    PCM: { value: "pcm", description: "Raw samples without a header: 16-bit little-endian mono at 24 kHz." },
  } satisfies Record<string, { value: NonNullable<MusicRequest["response_format"]>; description: string }>,
});

const TranscriptFormat = builder.enumType("TranscriptFormat", {
  description: "The format of a transcript.",
  values: {
    JSON: { value: "json", description: "A JSON object with the text." },
    TEXT: { value: "text", description: "Plain text." },
    SRT: { value: "srt", description: "SubRip subtitles." },
    VERBOSE_JSON: { value: "verbose_json", description: "A JSON object with the text, its segments and words." },
    VTT: { value: "vtt", description: "WebVTT subtitles." },
    DIARIZED_JSON: { value: "diarized_json", description: "A JSON object with the text and its segments, each with its speaker." },
  } satisfies Record<string, { value: (typeof TRANSCRIPT_FORMATS)[number]; description: string }>,
});

const TimestampGranularity = builder.enumType("TimestampGranularity", {
  description: "The granularity of timestamps in a transcript.",
  values: {
    WORD: { value: "word", description: "Timestamps for each word." },
    SEGMENT: { value: "segment", description: "Timestamps for each segment, about a sentence." },
  } satisfies Record<string, { value: (typeof TIMESTAMP_GRANULARITIES)[number]; description: string }>,
});

export const SpeechInput = builder.inputType("SpeechInput", {
  description: "Parameters of speech generation.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default speech model." }),
    input: t.string({ required: true, description: "The text to speak, 1 to 10000 characters." }),
    voice: t.string({ defaultValue: "alloy", description: "A voice of the model." }),
    responseFormat: t.field({ type: AudioFormat, defaultValue: "mp3", description: "The audio format." }),
    speed: t.float({ description: "The speed, 0.25 to 4. Defaults to normal speed." }),
    instructions: t.string({ description: "Instructions for the delivery. Some models ignore it." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

export const MusicInput = builder.inputType("MusicInput", {
  description: "Parameters of music generation.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default music model." }),
    prompt: t.string({ required: true, description: "A description of the music, 1 to 10000 characters." }),
    duration: t.float({ description: "The length in seconds, 1 to 300. Defaults to the model's choice." }),
    responseFormat: t.field({ type: AudioFormat, defaultValue: "mp3", description: "The audio format." }),
    seed: t.int({ description: "The random seed. -1 draws a random one. Some models ignore it." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

export const CreateTranscriptionInput = builder.inputType("CreateTranscriptionInput", {
  description: "Parameters of `createTranscription`.",
  fields: (t) => ({
    file: t.field({
      type: "File",
      required: true,
      description: "The recording: MP3, WAV, FLAC, Ogg, Opus, AAC, M4A, MP4 or WebM, at most 25 MiB.",
    }),
    model: t.string({ description: "A model ID or alias. Defaults to the default transcription model." }),
    language: t.string({ description: "The spoken language as an ISO 639-1 code. Detected by the model when omitted." }),
    isTranslation: t.boolean({
      description: "True: the transcript is in English, as POST /v1/audio/translations returns it. Not every model can.",
    }),
    prompt: t.string({ description: "Words and names that may occur, or the text that precedes the recording." }),
    temperature: t.float({ description: "The sampling temperature, 0 to 1." }),
    responseFormat: t.field({ type: TranscriptFormat, defaultValue: "json", description: "The format of `formatted`." }),
    timestampGranularities: t.field({
      type: [TimestampGranularity],
      description: "The granularities of timestamps, with VERBOSE_JSON. Defaults to SEGMENT.",
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

/** Fields whose value changes the type of the answer. */
const RESERVED_FIELDS = ["stream", "stream_format"];

interface AudioInput extends Readonly<Record<string, unknown>> {
  readonly safe?: readonly SafetyFeatureName[] | null | undefined;
  readonly maxCost?: unknown;
  readonly provider?: unknown;
}

/** Converts the fields to their wire names, without those that are null or absent. Throws BAD_REQUEST. */
export function toWire(input: AudioInput): Record<string, unknown> {
  const { extra, safe, maxCost: _, provider: __, ...stated } = input;
  const named = Object.fromEntries(Object.entries(stated).map(([name, value]) => [toSnakeCase(name), value]));
  return withExtra({ ...named, safe: toSafeText(safe) }, extra, RESERVED_FIELDS);
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
