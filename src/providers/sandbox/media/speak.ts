/** Speech by eSpeak NG, sentence by sentence: each is sent when it has been spoken. */
import type { Synthesizer } from "@echogarden/espeak-ng-emscripten";
import { refuse } from "../refusal.js";
import { openAudioFile } from "./audio-file.js";
import { type JobRun, SPEECH_ALBUM, type SpeechJob } from "./jobs.js";
import { changeTempo, resample } from "./samples.js";
import { languageOf, VOICE_SOUNDS, type VoiceSound } from "./voices.js";

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
