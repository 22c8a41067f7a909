/** What speech, music and transcriptions are asked with. The services' own schemas check it, under the names on the wire. */

import type { SafetyFeature as SafetyFeatureName } from "../../services/catalog/model.js";
import type { MusicInput as MusicRequest } from "../../services/generation/media/speech.js";
import type { TIMESTAMP_GRANULARITIES, TRANSCRIPT_FORMATS } from "../../services/generation/media/transcriptions.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { SafetyFeature } from "./models.js";

const AudioFormat = builder.enumType("AudioFormat", {
  description: "How a sound is written.",
  values: {
    MP3: { value: "mp3", description: "MPEG audio, layer 3." },
    OPUS: { value: "opus", description: "Opus in Ogg." },
    AAC: { value: "aac", description: "Advanced Audio Coding." },
    FLAC: { value: "flac", description: "Free Lossless Audio Codec." },
    WAV: { value: "wav", description: "Samples with a head that describes them." },
    PCM: { value: "pcm", description: "Samples alone: 16-bit little-endian mono at 24 kHz, without a head." },
  } satisfies Record<string, { value: NonNullable<MusicRequest["response_format"]>; description: string }>,
});

const TranscriptFormat = builder.enumType("TranscriptFormat", {
  description: "How a transcript is written.",
  values: {
    JSON: { value: "json", description: "An object with the text." },
    TEXT: { value: "text", description: "The text alone." },
    SRT: { value: "srt", description: "SubRip subtitles." },
    VERBOSE_JSON: { value: "verbose_json", description: "An object with the text, its segments and words." },
    VTT: { value: "vtt", description: "WebVTT subtitles." },
  } satisfies Record<string, { value: (typeof TRANSCRIPT_FORMATS)[number]; description: string }>,
});

const TimestampGranularity = builder.enumType("TimestampGranularity", {
  description: "Of what a transcript tells the times.",
  values: {
    WORD: { value: "word", description: "Of each word." },
    SEGMENT: { value: "segment", description: "Of each sentence or so." },
  } satisfies Record<string, { value: (typeof TIMESTAMP_GRANULARITIES)[number]; description: string }>,
});

export const SpeechInput = builder.inputType("SpeechInput", {
  description: "The text to be read out, and how.",
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default speech model." }),
    input: t.string({ required: true, description: "What is to be said: 1 to 10000 characters." }),
    voice: t.string({ defaultValue: "alloy", description: "One of the model's voices." }),
    responseFormat: t.field({ type: AudioFormat, defaultValue: "mp3", description: "How the sound is written." }),
    speed: t.float({ description: "0.25 to 4. As usual unless stated." }),
    instructions: t.string({ description: "How it is to be said. Honoured by some models only." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

export const MusicInput = builder.inputType("MusicInput", {
  description: "The piece of music to be made.",
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default music model." }),
    prompt: t.string({ required: true, description: "What is to be heard: 1 to 10000 characters." }),
    duration: t.float({ description: "Seconds, 1 to 300. Omitted: the model decides." }),
    responseFormat: t.field({ type: AudioFormat, defaultValue: "mp3", description: "How the sound is written." }),
    seed: t.int({ description: "-1 is a random one. Honoured by some models only." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

export const CreateTranscriptionInput = builder.inputType("CreateTranscriptionInput", {
  description: "The recording to be written down, and how.",
  fields: (t) => ({
    file: t.field({ type: "File", required: true, description: "MP3, WAV, FLAC, Ogg, Opus, AAC, M4A, MP4 or WebM, at most 25 MiB." }),
    model: t.string({ description: "An id or alias. Omitted: the default transcription model." }),
    language: t.string({ description: "ISO 639-1. Omitted: the model finds out." }),
    prompt: t.string({ description: "Words and names that may occur, or what was said before." }),
    temperature: t.float({ description: "How freely the model chooses its words: 0 to 1." }),
    responseFormat: t.field({ type: TranscriptFormat, defaultValue: "json", description: "What `formatted` is." }),
    timestampGranularities: t.field({
      type: [TimestampGranularity],
      description: "With VERBOSE_JSON: of what the times are told. SEGMENT unless stated.",
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

/** What makes an answer something else than sound or text. */
const RESERVED_FIELDS = ["stream", "stream_format"];

interface AudioInput extends Readonly<Record<string, unknown>> {
  readonly safe?: readonly SafetyFeatureName[] | null | undefined;
  readonly maxCost?: unknown;
}

/** The fields by their names on the wire, those that are null or absent left out. Throws BAD_REQUEST. */
export function toWire(input: AudioInput): Record<string, unknown> {
  const { extra, safe, maxCost: _, ...stated } = input;
  const named = Object.fromEntries(Object.entries(stated).map(([name, value]) => [toSnakeCase(name), value]));
  return withExtra({ ...named, safe: toSafeText(safe) }, extra, RESERVED_FIELDS);
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
