import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { extendHash, loadVocabulary, NO_RANK } from "../../src/lib/byte-pairs.js";

const vocabulary = loadVocabulary();
/** The same vocabulary as the package's own code has it: a text or its bytes, by rank. */
const tokens = (createRequire(import.meta.url)("gpt-tokenizer/bpeRanks/o200k_base") as { default: readonly (string | readonly number[])[] })
  .default;

function rankOf(bytes: Uint8Array): number {
  return vocabulary.rankOf(bytes, 0, bytes.length, bytes.reduce(extendHash, 0));
}

describe("Vocabulary", () => {
  it("knows every token by its bytes", () => {
    const wrong = tokens.filter((token, rank) => rankOf(Buffer.from(token as string)) !== rank);

    expect(tokens.length).toBe(199_998);
    expect(wrong).toEqual([]);
    expect(vocabulary.longest).toBe(128);
  });

  it("knows nothing else", () => {
    const known = new Set(tokens.map((token) => Buffer.from(token as string).toString("latin1")));
    const others = [...known].map((token) => `${token}\0`).filter((bytes) => !known.has(bytes));

    expect(others.length).toBeGreaterThan(190_000);
    expect(others.filter((bytes) => rankOf(Buffer.from(bytes, "latin1")) !== NO_RANK)).toEqual([]);
    expect(rankOf(new Uint8Array(0))).toBe(NO_RANK);
  });

  it("finds a token within other bytes", () => {
    const bytes = Buffer.from("\0hello world");
    const before = bytes.subarray(0, 1).reduce(extendHash, 0);
    const upToEnd = bytes.subarray(0, 6).reduce(extendHash, 0);

    const rank = vocabulary.rankOf(bytes, 1, 6, vocabulary.hashBetween(before, upToEnd, 5));

    expect(rank).toBe(tokens.indexOf("hello"));
  });
});
