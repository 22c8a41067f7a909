/**
 * Texts of callers and upstreams are read in time that grows no faster than they do: one request must not hold up the others. Every
 * pattern of the sources is fed the worst that can be made for it.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GrowthWatch } from "../support/growth-watch.js";
import { findPatterns } from "../support/source-patterns.js";
import { READERS } from "./support/readers.js";

let watch: GrowthWatch;
beforeAll(async () => {
  watch = await GrowthWatch.open();
});
afterAll(() => watch.close());

/** Patterns that are slow over long texts and never see one: each with its bound. */
const BOUNDED: ReadonlyMap<string, string> = new Map();

const slownessOf = ({ source, flags }: RegExp) => watch.slownessOf({ kind: "pattern", source, flags });

it("matches every pattern in linear time", async () => {
  const folders = ["src", "packages/sandbox/src"].map((folder) => fileURLToPath(new URL(`../../${folder}`, import.meta.url)));
  const found = (await Promise.all(folders.map(findPatterns))).flat();
  const patterns = new Map(found.map(({ name, pattern }) => [name, pattern]));
  const slow: string[] = [];
  for (const [name, pattern] of patterns) {
    const slowness = BOUNDED.has(name) ? null : await slownessOf(pattern);
    if (slowness !== null) slow.push(`${name} ${slowness}`);
  }

  expect(patterns.size).toBeGreaterThan(250);
  expect(slow).toEqual([]);
});

it.each([/0+$/, / ?Did you mean .+\?$/, /(?<=x+)(?!x)/, /^(?:a|a)*$/, /^(?:a+)+$/, /\S+@\S+/])(
  "finds that %s is not linear",
  async (pattern) => {
    expect(await slownessOf(pattern)).not.toBeNull();
  },
);

describe("in linear time are read", () => {
  it.each([...READERS.keys()])("%s", async (name) => {
    expect(await watch.slownessOf({ kind: "reader", name })).toBeNull();
  });
});
