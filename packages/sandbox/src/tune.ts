/** Tunes: chords, a melody over them, a bass and a beat, all decided by the prompt's words and chance; then the sound of it. */
import { append } from "../../../src/lib/collections.js";
import type { Random } from "./random.js";

export const MUSIC_RATE = 48_000;

type Voice = "melody" | "chord" | "bass" | "kick" | "hat";

interface Note {
  readonly voice: Voice;
  /** Seconds. */
  readonly start: number;
  readonly length: number;
  /** MIDI number. */
  readonly pitch: number;
  /** 0 to 1. */
  readonly strength: number;
}

interface Mood {
  readonly words: RegExp;
  readonly tempo: readonly [number, number];
  readonly isMinor: boolean | null;
  readonly hasBeat: boolean | null;
}

const MOODS: readonly Mood[] = [
  {
    words: /\b(calm|slow|ambient|sleep|lullaby|meditat\w*|soft|peaceful|relax\w*|lo-?fi)\b/i,
    tempo: [66, 84],
    isMinor: null,
    hasBeat: false,
  },
  {
    words: /\b(fast|dance|techno|party|happy|energetic|upbeat|disco|rock|punk|chase)\b/i,
    tempo: [122, 144],
    isMinor: false,
    hasBeat: true,
  },
  { words: /\b(sad|dark|melanchol\w*|rain|night|mystery|horror|minor|lonely|noir)\b/i, tempo: [76, 96], isMinor: true, hasBeat: null },
  { words: /(?:)/, tempo: [92, 118], isMinor: null, hasBeat: null },
];
const MAJOR = [0, 2, 4, 5, 7, 9, 11] as const;
const MINOR = [0, 2, 3, 5, 7, 8, 10] as const;
/** Degrees of the scale, a chord for each bar. */
const PROGRESSIONS: readonly [readonly number[], ...(readonly number[])[]] = [
  [0, 4, 5, 3],
  [0, 5, 3, 4],
  [5, 3, 0, 4],
  [0, 3, 4, 3],
  [0, 2, 3, 4],
];
/** Lengths of a bar's notes, in beats. */
const RHYTHMS: readonly [readonly number[], ...(readonly number[])[]] = [
  [1, 1, 1, 1],
  [1.5, 0.5, 1, 1],
  [1, 0.5, 0.5, 2],
  [0.5, 0.5, 1, 0.5, 0.5, 1],
  [2, 1, 1],
  [0.75, 0.75, 0.5, 1, 1],
];
const BEATS_PER_BAR = 4;

export function composeTune(prompt: string, seconds: number, random: Random): readonly Note[] {
  const mood = MOODS.find(({ words }) => words.test(prompt)) ?? { tempo: [92, 118] as const, isMinor: null, hasBeat: null };
  const beat = 60 / random.integer(mood.tempo[0], mood.tempo[1]);
  const drawnMinor = random.next() < 0.4;
  const drawnBeat = random.next() < 0.7;
  const scale = (mood.isMinor ?? drawnMinor) ? MINOR : MAJOR;
  const root = random.integer(50, 58);
  const progression = random.pick(PROGRESSIONS);
  const pitchOf = (degree: number) => root + 12 * Math.floor(degree / 7) + (scale[((degree % 7) + 7) % 7] ?? 0);
  // Two motifs in turn make it a tune rather than notes.
  const motifs = [0, 1].map(() => motif(random));
  const notes: Note[] = [];
  for (let bar = 0; bar * BEATS_PER_BAR * beat < seconds; bar += 1) {
    const start = bar * BEATS_PER_BAR * beat;
    const degree = progression[bar % progression.length] ?? 0;
    for (const [position, length, step] of motifs[(bar >> 1) % 2] ?? []) {
      const pitch = pitchOf(degree + 7 + step);
      notes.push({
        voice: "melody",
        start: start + position * beat,
        length: length * beat * 0.95,
        pitch,
        strength: position === 0 ? 0.9 : 0.75,
      });
    }
    for (const step of [0, 2, 4]) {
      notes.push({ voice: "chord", start, length: BEATS_PER_BAR * beat, pitch: pitchOf(degree + step), strength: 0.5 });
    }
    for (const [position, step] of [
      [0, 0],
      [1.5, 0],
      [2, 4],
      [3, 0],
    ] as const) {
      notes.push({ voice: "bass", start: start + position * beat, length: beat * 0.9, pitch: pitchOf(degree + step) - 24, strength: 0.9 });
    }
    if (mood.hasBeat ?? drawnBeat) append(notes, beats(start, beat));
  }
  return notes.filter((note) => note.start < seconds);
}

/** Positions and lengths in beats, with steps of the scale from the chord's root. */
function motif(random: Random): readonly (readonly [position: number, length: number, step: number])[] {
  const notes: [number, number, number][] = [];
  let position = 0;
  let step = random.pick([0, 2, 4]);
  for (const length of random.pick(RHYTHMS)) {
    notes.push([position, length, step]);
    position += length;
    step = Math.max(-3, Math.min(9, step + random.pick([-2, -1, -1, 1, 1, 2, 3])));
  }
  return notes;
}

function beats(start: number, beat: number): readonly Note[] {
  const strokes: Note[] = [];
  for (let half = 0; half < BEATS_PER_BAR * 2; half += 1) {
    const at = start + half * beat * 0.5;
    if (half % 4 === 0) strokes.push({ voice: "kick", start: at, length: 0.18, pitch: 36, strength: 0.9 });
    strokes.push({ voice: "hat", start: at, length: 0.05, pitch: 80, strength: half % 2 === 0 ? 0.18 : 0.3 });
  }
  return strokes;
}

/** How each voice sounds: overtones with their strengths, attack, and how fast it fades, in seconds. */
const TIMBRES: Readonly<
  Record<Exclude<Voice, "kick" | "hat">, { overtones: readonly number[]; attack: number; fade: number; gain: number }>
> = {
  melody: { overtones: [1, 0.45, 0.22, 0.1], attack: 0.008, fade: 0.7, gain: 0.26 },
  chord: { overtones: [1, 0.2, 0.08], attack: 0.12, fade: 3, gain: 0.1 },
  bass: { overtones: [1, 0.5, 0.12], attack: 0.01, fade: 0.6, gain: 0.3 },
};
const RELEASE_SECONDS = 0.05;
const FADE_OUT_SECONDS = 1;

/** Samples of `from` up to `to` seconds, so that a long tune can be made in parts. */
export function renderTune(notes: readonly Note[], from: number, to: number, seconds: number): Int16Array {
  const first = Math.round(from * MUSIC_RATE);
  const mix = new Float32Array(Math.round(to * MUSIC_RATE) - first);
  for (const note of notes) {
    const start = Math.round(note.start * MUSIC_RATE) - first;
    const length = Math.round((note.length + RELEASE_SECONDS) * MUSIC_RATE);
    if (start >= mix.length || start + length <= 0) continue;
    const sound = note.voice === "kick" || note.voice === "hat" ? stroke(note) : tone(note, note.voice);
    for (let index = Math.max(0, start); index < Math.min(mix.length, start + length); index += 1) {
      mix[index] = (mix[index] ?? 0) + sound((index - start) / MUSIC_RATE, index - start);
    }
  }
  const end = seconds * MUSIC_RATE;
  const fadeOut = Math.min(FADE_OUT_SECONDS, seconds / 2) * MUSIC_RATE;
  return Int16Array.from(mix, (value, index) =>
    Math.round(Math.tanh(value) * 30_000 * Math.min(1, Math.max(0, (end - first - index) / fadeOut))),
  );
}

function tone({ pitch, length, strength }: Note, voice: keyof typeof TIMBRES): (seconds: number) => number {
  const { overtones, attack, fade, gain } = TIMBRES[voice];
  const omega = 2 * Math.PI * 440 * 2 ** ((pitch - 69) / 12);
  return (seconds) => {
    const release = seconds > length ? Math.max(0, 1 - (seconds - length) / RELEASE_SECONDS) : 1;
    const loudness = Math.min(1, seconds / attack) * Math.exp(-seconds / fade) * release * strength * gain;
    let wave = 0;
    for (let index = 0; index < overtones.length; index += 1) wave += (overtones[index] ?? 0) * Math.sin(omega * (index + 1) * seconds);
    return wave * loudness;
  };
}

function stroke({ voice, strength }: Note): (seconds: number, index: number) => number {
  if (voice === "kick")
    return (seconds) =>
      Math.sin(2 * Math.PI * (48 * seconds + 4 * (1 - Math.exp(-seconds * 30)))) * Math.exp(-seconds * 18) * strength * 0.5;
  // Noise without chance: the sample's own number, scrambled.
  return (seconds, index) =>
    (((Math.imul(index + 1, 2_654_435_761) >>> 8) & 0xffff) / 32_768 - 1) * Math.exp(-seconds * 60) * strength * 0.4;
}
