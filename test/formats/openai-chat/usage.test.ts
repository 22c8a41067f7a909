import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toUsage } from "../../../src/formats/openai-chat/usage.js";
import { NO_USAGE, USAGE_AMOUNT_MAX, type UsageQuantities } from "../../../src/lib/usage.js";

/** [what, the upstream's report, the amounts worked out by hand] */
const TABLE: [string, Record<string, unknown>, Partial<UsageQuantities>][] = [
  ["plain totals", { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 }, { inputTextTokens: 12, outputTextTokens: 34 }],
  ["totals without their sum", { prompt_tokens: 12, completion_tokens: 34 }, { inputTextTokens: 12, outputTextTokens: 34 }],
  ["zeros", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, {}],
  [
    "cached input",
    { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 64 } },
    { inputTextTokens: 36, inputCachedTokens: 64, outputTextTokens: 5 },
  ],
  [
    "every kind at once",
    {
      prompt_tokens: 1000,
      completion_tokens: 500,
      total_tokens: 1500,
      prompt_tokens_details: { cached_tokens: 300, cache_write_tokens: 200, audio_tokens: 100, image_tokens: 50, text_tokens: 350 },
      completion_tokens_details: { reasoning_tokens: 250, audio_tokens: 40, image_tokens: 10, accepted_prediction_tokens: 7 },
    },
    {
      inputTextTokens: 350,
      inputCachedTokens: 300,
      inputCacheWriteTokens: 200,
      inputAudioTokens: 100,
      inputImageTokens: 50,
      outputTextTokens: 200,
      outputReasoningTokens: 250,
      outputAudioTokens: 40,
      outputImageTokens: 10,
    },
  ],
  [
    "the other name of a cache write",
    { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cache_creation_tokens: 4 } },
    { inputTextTokens: 6, inputCacheWriteTokens: 4, outputTextTokens: 1 },
  ],
  [
    "a cache hit outside the details",
    { prompt_tokens: 10, completion_tokens: 1, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 2 },
    { inputTextTokens: 2, inputCachedTokens: 8, outputTextTokens: 1 },
  ],
  [
    "the newer names",
    {
      input_tokens: 20,
      output_tokens: 10,
      input_tokens_details: { cached_tokens: 5 },
      output_tokens_details: { reasoning_tokens: 4 },
    },
    { inputTextTokens: 15, inputCachedTokens: 5, outputTextTokens: 6, outputReasoningTokens: 4 },
  ],
  [
    "details that are null",
    { prompt_tokens: 3, completion_tokens: 4, prompt_tokens_details: null, completion_tokens_details: { reasoning_tokens: null } },
    { inputTextTokens: 3, outputTextTokens: 4 },
  ],
  [
    "nothing but reasoning",
    { prompt_tokens: 3, completion_tokens: 7, completion_tokens_details: { reasoning_tokens: 7 } },
    { inputTextTokens: 3, outputReasoningTokens: 7 },
  ],
  [
    "reasoning that completion_tokens leave out, as the total shows",
    { prompt_tokens: 32, completion_tokens: 9, total_tokens: 441, completion_tokens_details: { reasoning_tokens: 400 } },
    { inputTextTokens: 32, outputTextTokens: 9, outputReasoningTokens: 400 },
  ],
  [
    "details that claim more than the total",
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 8, audio_tokens: 8 },
      completion_tokens_details: { reasoning_tokens: 20 },
    },
    { inputCachedTokens: 8, inputAudioTokens: 2, outputReasoningTokens: 5 },
  ],
  ["an embedding's report", { prompt_tokens: 8, total_tokens: 8 }, { inputTextTokens: 8 }],
  ["an input to be worked out", { completion_tokens: 3, total_tokens: 10 }, { inputTextTokens: 7, outputTextTokens: 3 }],
  [
    "the largest amounts",
    { prompt_tokens: USAGE_AMOUNT_MAX, completion_tokens: USAGE_AMOUNT_MAX },
    { inputTextTokens: USAGE_AMOUNT_MAX, outputTextTokens: USAGE_AMOUNT_MAX },
  ],
];

describe("toUsage", () => {
  it.each(TABLE)("reads %s", (_name, raw, amounts) => {
    expect(toUsage(raw)).toEqual({ ...NO_USAGE, ...amounts });
  });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["a list", [1, 2]],
    ["a text", "12"],
    ["an empty object", {}],
    ["details alone", { prompt_tokens_details: { cached_tokens: 5 } }],
    ["input alone", { prompt_tokens: 5 }],
    ["output alone", { completion_tokens: 5 }],
    ["a total alone", { total_tokens: 5 }],
    ["a total below its part", { prompt_tokens: 5, total_tokens: 4 }],
  ])("answers null for %s", (_name, raw) => {
    expect(toUsage(raw)).toBeNull();
  });

  it.each([-5, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5", true, {}, 1e12, USAGE_AMOUNT_MAX + 1])(
    "does not believe a report that holds %s anywhere",
    (amount) => {
      const good = { prompt_tokens: 10, completion_tokens: 10 };

      expect(toUsage({ ...good, prompt_tokens: amount })).toBeNull();
      expect(toUsage({ ...good, completion_tokens: amount })).toBeNull();
      expect(toUsage({ ...good, total_tokens: amount })).toBeNull();
      expect(toUsage({ ...good, prompt_tokens_details: { cached_tokens: amount } })).toBeNull();
      expect(toUsage({ ...good, completion_tokens_details: { reasoning_tokens: amount } })).toBeNull();
    },
  );

  it("never makes more of a report than its totals, nor less than 0 of a kind", () => {
    const amount = fc.nat(USAGE_AMOUNT_MAX);
    const raw = fc.record({
      prompt_tokens: amount,
      completion_tokens: amount,
      prompt_tokens_details: fc.record({ cached_tokens: amount, cache_write_tokens: amount, audio_tokens: amount, image_tokens: amount }),
      completion_tokens_details: fc.record({ reasoning_tokens: amount, audio_tokens: amount, image_tokens: amount }),
    });
    fc.assert(
      fc.property(raw, (report) => {
        const usage = toUsage(report) ?? NO_USAGE;
        const input =
          usage.inputTextTokens + usage.inputCachedTokens + usage.inputCacheWriteTokens + usage.inputAudioTokens + usage.inputImageTokens;
        const output = usage.outputTextTokens + usage.outputReasoningTokens + usage.outputAudioTokens + usage.outputImageTokens;

        expect(input).toBe(report.prompt_tokens);
        expect(output).toBe(report.completion_tokens);
        expect(Math.min(...Object.values(usage))).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("survives anything", () => {
    fc.assert(
      fc.property(fc.anything(), (raw) => {
        const usage = toUsage(raw);

        expect(usage === null || Object.values(usage).every((amount) => Number.isInteger(amount) && amount >= 0)).toBe(true);
      }),
    );
  });
});
