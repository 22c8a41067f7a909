/** How each of the 35 voices sounds (docs/spec/audio.md#voices): a speaker of eSpeak NG, and its pitch, tempo and liveliness. */

export interface VoiceSound {
  /** Accent, for text in Latin letters. */
  readonly accent: "en-us" | "en" | "en-gb-x-rp" | "en-gb-scotland" | "en-029" | "en-gb-x-gbclan";
  /** One of eSpeak NG's speaker variants. */
  readonly variant: string;
  /** 0 to 99; 50 is the variant's own. */
  readonly pitch: number;
  /** Words per minute. */
  readonly rate: number;
  /** 0 to 99: how much the melody moves. */
  readonly range: number;
}

type Row = readonly [name: string, accent: VoiceSound["accent"], variant: string, pitch: number, rate: number, range: number];

const ROWS: readonly Row[] = [
  ["alloy", "en-us", "f3", 48, 165, 50],
  ["echo", "en-us", "m3", 46, 165, 50],
  ["fable", "en-gb-x-rp", "m1", 58, 160, 65],
  ["onyx", "en-us", "m7", 26, 155, 40],
  ["nova", "en-us", "f2", 60, 172, 60],
  ["shimmer", "en-us", "f5", 52, 160, 55],
  ["ash", "en-us", "m2", 40, 168, 45],
  ["ballad", "en-gb-x-rp", "m4", 50, 148, 70],
  ["coral", "en-us", "f4", 62, 170, 62],
  ["sage", "en-us", "f1", 42, 152, 42],
  ["verse", "en-us", "m5", 54, 166, 66],
  ["rachel", "en-us", "linda", 50, 162, 50],
  ["domi", "en-us", "f2", 46, 178, 58],
  ["bella", "en-us", "Alicia", 54, 158, 56],
  ["elli", "en-us", "f4", 72, 172, 64],
  ["charlotte", "en-gb-x-rp", "f1", 54, 158, 56],
  ["dorothy", "en", "aunty", 56, 156, 58],
  ["sarah", "en-us", "steph", 48, 164, 48],
  ["emily", "en", "f3", 58, 150, 46],
  ["lily", "en-gb-x-rp", "f5", 64, 162, 60],
  ["matilda", "en", "belinda", 50, 160, 52],
  ["adam", "en-us", "adam", 38, 160, 44],
  ["antoni", "en-us", "antonio", 48, 166, 54],
  ["arnold", "en-us", "m6", 30, 158, 48],
  ["josh", "en-us", "m2", 52, 172, 56],
  ["sam", "en-us", "m8", 46, 176, 44],
  ["daniel", "en-gb-x-rp", "m3", 40, 162, 46],
  ["charlie", "en-029", "m5", 50, 170, 60],
  ["james", "en", "m7", 36, 150, 44],
  ["fin", "en-gb-scotland", "m4", 48, 164, 56],
  ["callum", "en-gb-scotland", "m6", 42, 160, 48],
  ["liam", "en-us", "Gene", 54, 170, 52],
  ["george", "en", "m2", 34, 152, 46],
  ["brian", "en", "m8", 38, 158, 40],
  ["bill", "en-gb-x-gbclan", "m1", 32, 150, 42],
];

export const VOICE_SOUNDS: ReadonlyMap<string, VoiceSound> = new Map(
  ROWS.map(([name, accent, variant, pitch, rate, range]) => [name, { accent, variant, pitch, rate, range }]),
);

/** In the order of docs/spec/audio.md#voices; the first is the default. */
export const SANDBOX_VOICES: readonly string[] = [...VOICE_SOUNDS.keys()];

/** Texts in other scripts are spoken in a language that is written in them. */
const SCRIPTS: readonly (readonly [RegExp, string])[] = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/u, "ja"],
  [/\p{Script=Han}/u, "cmn"],
  [/\p{Script=Hangul}/u, "ko"],
  [/\p{Script=Cyrillic}/u, "ru"],
  [/\p{Script=Greek}/u, "el"],
  [/\p{Script=Arabic}/u, "ar"],
  [/\p{Script=Hebrew}/u, "he"],
  [/\p{Script=Devanagari}/u, "hi"],
];

export function languageOf(text: string, sound: VoiceSound): string {
  if (/\p{Script=Latin}/u.test(text)) return sound.accent;
  return SCRIPTS.find(([script]) => script.test(text))?.[1] ?? sound.accent;
}
