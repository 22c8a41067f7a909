/** Speech by eSpeak NG, sentence by sentence: each is sent when it has been spoken. */
import type { Synthesizer } from "@echogarden/espeak-ng-emscripten";
import { ALL_FORMATS, BufferSource, Input } from "mediabunny";
import {
  type BytesResult,
  type JobRun,
  type MusicJob,
  SPEECH_ALBUM,
  type SpeechJob,
  type TranscriptionJob,
  type TranscriptionResult,
} from "../../../src/providers/sandbox/media/jobs.js";
import { languageOf, VOICE_SOUNDS, type VoiceSound } from "../../../src/providers/sandbox/media/voices.js";
import { refuse } from "../../../src/providers/sandbox/refusal.js";
import { openAudioFile } from "./audio-file.js";
import { Random } from "./random.js";
import { changeTempo, halve, resample } from "./samples.js";
import { composeTune, MUSIC_RATE, renderTune } from "./tune.js";

/** eSpeak NG's own, and that of OpenAI's `pcm`. */
const SYNTHESIZER_RATE = 22_050;
export const SPEECH_RATE = 24_000;
const SPEECH_BITRATE = 64_000;
/** What the synthesizer can do by itself, in words per minute. */
const WORDS_PER_MINUTE_MIN = 80;
const WORDS_PER_MINUTE_MAX = 450;
/** A sentence that is longer is spoken in parts, so that the first sound comes soon. */
const PART_CHARS_MAX = 240;
const CHUNK_BYTES = 64 * 1024;

let loading: Promise<Synthesizer> | null = null;

function loadSynthesizer(): Promise<Synthesizer> {
  loading ??= import("@echogarden/espeak-ng-emscripten").then(async ({ default: load }) => new (await load()).eSpeakNGWorker());
  return loading;
}

export async function* speak(job: SpeechJob): JobRun<null> {
  const sound = VOICE_SOUNDS.get(job.voice);
  if (sound === undefined) throw refuse(`There is no voice ${job.voice}: use one of ${[...VOICE_SOUNDS.keys()].join(", ")}.`, "voice");
  const synthesizer = await loadSynthesizer();
  const tags = { artist: job.voice, album: SPEECH_ALBUM, comment: job.text };
  const file = await openAudioFile({ format: job.format, sampleRate: SPEECH_RATE, bitrate: SPEECH_BITRATE, tags });
  try {
    for (const part of splitText(job.text)) {
      await file.add(say(synthesizer, part, sound, job.speed));
      yield* chunksOf(file.take());
    }
    await file.finish();
    yield* chunksOf(file.take());
  } finally {
    await file.close();
  }
  return null;
}

/** The synthesizer is shared: everything is set for each part. */
function say(synthesizer: Synthesizer, part: string, sound: VoiceSound, speed: number): Int16Array {
  const language = languageOf(part, sound);
  if (synthesizer.set_voice(`${language}+${sound.variant}`) !== 0) synthesizer.set_voice(language);
  const wanted = sound.rate * speed;
  const rate = Math.min(WORDS_PER_MINUTE_MAX, Math.max(WORDS_PER_MINUTE_MIN, Math.round(wanted)));
  synthesizer.set_rate(rate);
  synthesizer.set_pitch(sound.pitch);
  synthesizer.set_range(sound.range);
  const pieces: Int16Array[] = [];
  synthesizer.synthesize(withoutMarkup(part), (samples) => {
    if (samples) pieces.push(samples.slice());
    return false;
  });
  const spoken = new Int16Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    spoken.set(piece, offset);
    offset += piece.length;
  }
  const atPace = changeTempo(spoken, wanted / rate, SYNTHESIZER_RATE);
  return resample(atPace, SYNTHESIZER_RATE, SPEECH_RATE);
}

/** The synthesizer would take tags and double brackets for instructions. */
function withoutMarkup(text: string): string {
  return text.replaceAll("&", " and ").replaceAll(/[<>[\]]/g, " ");
}

/** Sentences, long ones in parts between words. */
export function splitText(text: string): readonly string[] {
  const sentences = [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(text)].map(({ segment }) => segment);
  return sentences.flatMap(
    (sentence) => sentence.match(new RegExp(`[^]{1,${PART_CHARS_MAX}}(?=\\s|$)|[^]{1,${PART_CHARS_MAX}}`, "gu")) ?? [],
  );
}

function* chunksOf(bytes: Uint8Array): Generator<{ readonly chunk: Uint8Array }> {
  for (let from = 0; from < bytes.length; from += CHUNK_BYTES) yield { chunk: bytes.slice(from, from + CHUNK_BYTES) };
}

// Returns the text of sandbox speech, which is stored in the recording's tags.

export async function listen({ bytes }: TranscriptionJob): Promise<TranscriptionResult> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  try {
    if (!(await input.canRead())) throw unreadable();
    const track = await input.getPrimaryAudioTrack();
    if (!track) throw refuse("The file holds no sound.", "file");
    const { album, comment } = await input.getMetadataTags();
    const durationMs = Math.max(0, Math.round((await track.computeDuration()) * 1_000));
    return { text: album === SPEECH_ALBUM && comment ? comment : null, durationMs };
  } catch (error) {
    throw error instanceof Error && error.name === "ProviderError" ? error : unreadable(error);
  } finally {
    input.dispose();
  }
}

function unreadable(cause?: unknown): Error {
  const refusal = refuse("The file is no recording in a format that the sandbox can read: MP3, WAV, FLAC, Ogg, AAC, MP4, WebM.", "file");
  refusal.cause = cause;
  return refusal;
}

// Music: a tune of the asked length in the asked format.

const MUSIC_BITRATE = 128_000;
/** A step of the work, in seconds of sound. */
const STEP_SECONDS = 2;

export async function* play({ prompt, seed, seconds, format }: MusicJob): JobRun<BytesResult> {
  const notes = composeTune(prompt, seconds, new Random("music", prompt, seed));
  // Samples without a container are 24,000 a second, as for speech.
  const isBare = format === "pcm";
  const tags = { title: prompt.slice(0, 200) || "Sandbox tune", artist: "Sluice sandbox", comment: `Composed by rules, seed ${seed}` };
  const file = await openAudioFile({ format, sampleRate: MUSIC_RATE, bitrate: MUSIC_BITRATE, tags });
  try {
    for (let from = 0; from < seconds; from += STEP_SECONDS) {
      const samples = renderTune(notes, from, Math.min(seconds, from + STEP_SECONDS), seconds);
      await file.add(isBare ? halve(samples) : samples);
      yield { percent: Math.floor((from / seconds) * 100) };
    }
    await file.finish();
    return { bytes: file.take(), durationMs: Math.round(seconds * 1_000) };
  } finally {
    await file.close();
  }
}
