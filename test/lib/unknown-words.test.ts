import { beforeEach, expect, it } from "vitest";
import { UnknownWords } from "../../src/lib/unknown-words.js";

let lines: Record<string, unknown>[];
let counted: string[];
let words: UnknownWords;

beforeEach(() => {
  lines = [];
  counted = [];
  const log = { warn: (line: Record<string, unknown>) => void lines.push(line) } as unknown as ConstructorParameters<
    typeof UnknownWords
  >[0];
  words = new UnknownWords(log, (kind) => void counted.push(kind));
});

it("logs a word of one source once, and counts it each time", () => {
  for (const source of ["acme", "acme", "other"]) words.note(source, "job-status", "dozing");

  expect(lines).toEqual([
    { event: "unknown-word", kind: "job-status", source: "acme", word: "dozing" },
    { event: "unknown-word", kind: "job-status", source: "other", word: "dozing" },
  ]);
  expect(counted).toEqual(["job-status", "job-status", "job-status"]);
});

it("logs no more of a word than a name has, and nothing that could pass for a line of the log", () => {
  words.note("acme", "job-status", `a\n{"level":60}${"x".repeat(1_000)}`);

  expect(lines[0]?.word).toBe(`a??"level":60?${"x".repeat(50)}`.replaceAll('"', "?"));
});

it("logs a bounded number of words, however many occur", () => {
  for (let index = 0; index < 2_000; index += 1) words.note("acme", "job-status", `word-${index}`);

  expect(lines).toHaveLength(500);
  expect(counted).toHaveLength(2_000);
});
