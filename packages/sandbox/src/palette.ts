/** Colours that go together, from the prompt's own colour words where it has any. */
import type { Random } from "./random.js";

export interface Palette {
  readonly isNight: boolean;
  /** From the zenith to the horizon. */
  readonly sky: readonly [string, string, string];
  readonly light: string;
  /** The prompt's own colour. */
  readonly main: string;
  /** Four shades, from far to near. */
  readonly shades: readonly [string, string, string, string];
  readonly accents: readonly [string, string, string];
}

/** Hues in degrees. */
const HUES: readonly (readonly [RegExp, number])[] = [
  [/\b(red|crimson|scarlet|rose|cherry)\b/i, 355],
  [/\b(orange|autumn|fire|copper|sunset|amber)\b/i, 24],
  [/\b(yellow|gold(en)?|desert|sand|lemon|wheat)\b/i, 46],
  [/\b(green|forest|jungle|emerald|lime|spring|grass)\b/i, 130],
  [/\b(teal|turquoise|mint|lagoon)\b/i, 174],
  [/\b(blue|sky|sea|ocean|ice|winter|navy|lake)\b/i, 212],
  [/\b(purple|violet|lavender|galaxy|magic)\b/i, 272],
  [/\b(pink|magenta|candy|blossom)\b/i, 328],
];
const NIGHT = /\b(night|dark|moon(light|lit)?|midnight|stars?|space|galaxy|noir)\b/i;
const DAY = /\b(day|sunny|morning|noon|bright|light|sunset|sunrise)\b/i;

export function choosePalette(prompt: string, random: Random): Palette {
  const wanted = HUES.find(([words]) => words.test(prompt))?.[1];
  const drift = random.between(-14, 14);
  const free = random.between(0, 360);
  const hue = wanted === undefined ? free : wanted + drift;
  const drawnNight = random.next() < 0.3;
  const isNight = NIGHT.test(prompt) || (drawnNight && !DAY.test(prompt));
  const other = hue + random.pick([150, 180, 210, 35, -35]);
  const lightness = isNight ? [9, 18, 30] : [46, 66, 84];
  const shade = (step: number) => hsl(hue + step * 7, isNight ? 34 : 42, (isNight ? 26 : 62) - step * (isNight ? 5 : 13));
  return {
    isNight,
    sky: [hsl(hue, 58, lightness[0]), hsl(hue + 12, 60, lightness[1]), hsl(other, 70, lightness[2])],
    light: isNight ? hsl(other, 45, 88) : hsl(random.between(28, 54), 95, 76),
    main: hsl(hue, 72, 56),
    shades: [shade(0), shade(1), shade(2), shade(3)],
    accents: [hsl(other, 78, 62), hsl(other + 28, 82, 68), hsl(hue + 180, 66, 58)],
  };
}

function hsl(hue: number, saturation: number, lightness = 50): string {
  return `hsl(${Math.round(((hue % 360) + 360) % 360)},${Math.round(saturation)}%,${Math.round(lightness)}%)`;
}
