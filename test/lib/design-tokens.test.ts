import { describe, expect, it } from "vitest";
import { chosenTokens, SYSTEM_TOKENS } from "../../src/lib/design-tokens.js";

type Tokens = ReadonlyMap<string, string>;

/** The custom properties of each rule, in order. */
function rulesOf(css: string): Tokens[] {
  return [...css.matchAll(/\{ (--[^{}]*) \}/g)].map(
    ([, body = ""]) => new Map([...body.matchAll(/--([a-z-]+): ([^;]+);/g)].map(([, name = "", value = ""]) => [name, value])),
  );
}

/** Relative luminance (WCAG 2.2). */
function luminance(colour: string): number {
  expect(colour).toMatch(/^#[0-9a-f]{6}$/);
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const [light = new Map<string, string>(), dark = new Map<string, string>()] = rulesOf(SYSTEM_TOKENS);
const BACKGROUNDS = ["paper", "card", "hover", "field", "note"];
const TEXTS = ["ink", "soft", "strong", "good", "warn", "bad"];

describe.each([
  ["light", light],
  ["dark", dark],
])("the colours of the %s scheme", (_scheme, tokens) => {
  const colour = (name: string) => tokens.get(name) ?? "";
  const contrastOf = (pair: readonly [string, string]) => contrast(colour(pair[0]), colour(pair[1]));

  it("have a contrast of 4.5 at least between every text and background", () => {
    const pairs = TEXTS.flatMap((text) => BACKGROUNDS.map((background) => [text, background] as const));

    expect([...pairs, ["on-strong", "strong"] as const].filter((pair) => contrastOf(pair) < 4.5)).toEqual([]);
  });

  it("have a contrast of 3 at least between the border of an input and its surroundings", () => {
    const pairs = ["field", "card", "paper", "hover"].map((background) => ["edge", background] as const);

    expect(pairs.filter((pair) => contrastOf(pair) < 3)).toEqual([]);
  });
});

describe("the style sheets", () => {
  it("state every colour in both schemes", () => {
    const colours = (tokens: Tokens) => [...tokens].filter(([, value]) => value.startsWith("#")).map(([name]) => name);

    expect(colours(light)).toEqual(expect.arrayContaining([...BACKGROUNDS, ...TEXTS]));
    expect(colours(dark)).toEqual(colours(light));
  });

  it("follow an attribute with the same values as the system's scheme", () => {
    expect(rulesOf(chosenTokens("data-scheme"))).toEqual([light, dark]);
    expect(chosenTokens("data-scheme")).toContain('[data-scheme="dark"]');
  });
});
