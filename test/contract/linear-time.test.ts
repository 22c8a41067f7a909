/**
 * What others write is read in time that grows no faster than it does: one request must not hold up everybody else's. Every
 * pattern of the sources is fed the worst that can be made for it.
 */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { measureExcess, NOISE_MS, processorMs } from "../support/growth.js";
import { worstCases } from "../support/pattern-attacks.js";
import { findPatterns } from "../support/source-patterns.js";

const CHARS = 1_024;
const FACTOR = 8;
/** Between 1, linear, and FACTOR, quadratic. */
const EXCESS_MAX = 3;
/** What is worse than quadratic would never come to an end with that many. */
const REPEATS_FIRST = 20;

/** Patterns that are slow over long texts and never see one: each with what bounds it. */
const BOUNDED: Readonly<Record<string, string>> = {};

/** As a search, a test and a replacement use it: everywhere in the text. Null when the time is linear. */
function slowness(pattern: RegExp): string | null {
  const everywhere = pattern.sticky ? pattern : new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`);
  for (const { unit, text } of worstCases(pattern)) {
    const replaceIn = (chars: number) => {
      const input = text(chars);
      return processorMs(() => input.replace(everywhere, ""));
    };
    const shown = `${JSON.stringify(text(40))} …`;
    const first = REPEATS_FIRST * unit.length;
    if (replaceIn(first) > NOISE_MS && replaceIn(first) > NOISE_MS) return `${shown} takes exponential time`;
    // Quadratic work is that of the repetitions, times the characters.
    const chars = Math.ceil(CHARS * Math.sqrt(unit.length));
    const excess = measureExcess(replaceIn, chars, FACTOR);
    if (excess > EXCESS_MAX) return `${shown} grows ${excess.toFixed(1)} times too fast`;
  }
  return null;
}

it("matches every pattern in linear time", async () => {
  const patterns = [
    ...new Map((await findPatterns(fileURLToPath(new URL("../../src", import.meta.url)))).map((one) => [one.name, one])).values(),
  ];
  const slow = patterns.flatMap(({ name, pattern }) => {
    const found = name in BOUNDED ? null : slowness(pattern);
    return found === null ? [] : [`${name} ${found}`];
  });

  expect(patterns.length).toBeGreaterThan(250);
  expect(slow).toEqual([]);
});

it.each([/0+$/, / ?Did you mean .+\?$/, /(?<=x+)y/, /^(?:a|a)*$/, /\S+@\S+/])("finds that %s is not linear", (pattern) => {
  expect(slowness(pattern)).not.toBeNull();
});
