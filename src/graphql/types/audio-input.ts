/** What speech, music and transcriptions are asked with. The services' own schemas check it, under the names on the wire. */
import { TIMESTAMP_GRANULARITIES, TRANSCRIPT_FORMATS } from "../../services/generation/media/transcriptions.js";
import { builder, enumValues } from "../builder.js";
import { withExtra } from "../extra.js";

const SPEECH_FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const;

const AudioFormat = builder.enumType("AudioFormat", {
  description: "PCM is 16-bit little-endian mono at 24 kHz, without a head.",
  values: enumValues(SPEECH_FORMATS),
});

const TranscriptFormat = builder.enumType("TranscriptFormat", { values: enumValues(TRANSCRIPT_FORMATS) });
const TimestampGranularity = builder.enumType("TimestampGranularity", { values: enumValues(TIMESTAMP_GRANULARITIES) });

const EXTRA = "An object of further fields, by their wire names; they reach the upstream as they are, but for those that are billed (400).";
const SAFE = "`true`, or safety features separated by commas.";

/** The mutation and the subscription take the same thing; each argument is named after its own field. */
function speechInput(name: string) {
  return builder.inputType(name, {
    fields: (t) => ({
      model: t.string({ description: "An id or alias. Omitted: the default speech model." }),
      input: t.string({ required: true, description: "What is to be said: 1 to 10000 characters." }),
      voice: t.string({ description: "One of the model's voices. `alloy` unless stated." }),
      responseFormat: t.field({ type: AudioFormat, description: "MP3 unless stated." }),
      speed: t.float({ description: "0.25 to 4." }),
      instructions: t.string({ description: "How it is to be said. Honoured by some models only." }),
      safe: t.string({ description: SAFE }),
      extra: t.field({ type: "JSON", description: EXTRA }),
    }),
  });
}

export const CreateSpeechInput = speechInput("CreateSpeechInput");
export const SpeechSubscriptionInput = speechInput("SpeechInput");

/** Made at once or as a job, music is asked for alike; each argument is named after its own field. */
function musicInput(name: string) {
  return builder.inputType(name, {
    fields: (t) => ({
      model: t.string({ description: "An id or alias. Omitted: the default music model." }),
      prompt: t.string({ required: true, description: "1 to 10000 characters." }),
      duration: t.float({ description: "Seconds, 1 to 300. Omitted: the model decides." }),
      responseFormat: t.field({ type: AudioFormat, description: "MP3 unless stated." }),
      seed: t.int({ description: "-1 is a random one. Honoured by some models only." }),
      safe: t.string({ description: SAFE }),
      extra: t.field({ type: "JSON", description: EXTRA }),
    }),
  });
}

export const GenerateMusicInput = musicInput("GenerateMusicInput");
export const StartMusicInput = musicInput("StartMusicInput");

export const CreateTranscriptionInput = builder.inputType("CreateTranscriptionInput", {
  fields: (t) => ({
    file: t.field({ type: "File", required: true, description: "MP3, WAV, FLAC, Ogg, Opus, AAC, M4A, MP4 or WebM, at most 25 MiB." }),
    model: t.string({ description: "An id or alias. Omitted: the default transcription model." }),
    language: t.string({ description: "ISO 639-1. Omitted: the model finds out." }),
    prompt: t.string({ description: "Words and names that may occur, or what was said before." }),
    temperature: t.float({ description: "0 to 1." }),
    responseFormat: t.field({ type: TranscriptFormat, description: "What `formatted` is. JSON unless stated." }),
    timestampGranularities: t.field({ type: [TimestampGranularity], description: "With VERBOSE_JSON. SEGMENT unless stated." }),
    safe: t.string({ description: SAFE }),
    extra: t.field({ type: "JSON", description: EXTRA }),
  }),
});

/** What makes an answer something else than sound or text. */
const RESERVED_FIELDS = ["stream", "stream_format"];

/** The fields by their names on the wire, those that are null or absent left out. Throws BAD_REQUEST. */
export function toWire(input: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { extra, ...stated } = input;
  const named = Object.fromEntries(Object.entries(stated).map(([name, value]) => [toSnakeCase(name), value]));
  return withExtra(named, extra, RESERVED_FIELDS);
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
