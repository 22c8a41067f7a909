import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_USAGE, USAGE_AMOUNT_MAX, USAGE_KINDS } from "../../../src/lib/usage.js";
import { IMAGE_PRICINGS, MODALITIES } from "../../../src/services/catalog/modality.js";
import {
  type BillableQuantities,
  type BilledKind,
  billedKinds,
  costOf,
  cutToCost,
  holdFor,
  MULTIPLIER_ONE,
  PRICE_FIELDS,
  type StatedPrices,
  toRateCard,
  usedPriceFields,
  withFieldPrices,
  withShare,
} from "../../../src/services/catalog/pricing.js";

const TEXT = { modality: "text", imagePricing: "request" } as const;

/** Credits per million tokens, the way price lists put it, to picocredits per token. */
function perMillion(credits: number): bigint {
  return BigInt(credits * 1_000_000);
}

describe("costOf, worked out by hand", () => {
  const rates = toRateCard(
    {
      promptTextPrice: perMillion(2.5),
      promptCachedPrice: perMillion(0.25),
      promptCacheWritePrice: perMillion(3.125),
      promptAudioPrice: perMillion(40),
      promptImagePrice: perMillion(5),
      completionTextPrice: perMillion(10),
      completionReasoningPrice: perMillion(12),
      completionAudioPrice: perMillion(80),
    },
    TEXT,
  );

  it.each<[string, Partial<BillableQuantities>, bigint]>([
    // 1,000 x 2.5 + 500 x 10 = 2,500 + 5,000 = 7,500 credits per million = 0.0075 credits
    ["text in and out", { inputTextTokens: 1_000, outputTextTokens: 500 }, 7_500_000n],
    // 200 x 2.5 + 800 x 0.25 + 100 x 10 = 500 + 200 + 1,000 = 1,700 = 0.0017
    ["a prompt read from the cache", { inputTextTokens: 200, inputCachedTokens: 800, outputTextTokens: 100 }, 1_700_000n],
    // 10 x 2.5 + 4,000 x 3.125 + 1 x 10 = 25 + 12,500 + 10 = 12,535 = 0.012535
    ["a prompt written to the cache", { inputTextTokens: 10, inputCacheWriteTokens: 4_000, outputTextTokens: 1 }, 12_535_000n],
    // 50 x 2.5 + 20 x 10 + 300 x 12 = 125 + 200 + 3,600 = 3,925 = 0.003925
    ["reasoning", { inputTextTokens: 50, outputTextTokens: 20, outputReasoningTokens: 300 }, 3_925_000n],
    // 7 x 2.5 + 93 x 40 + 12 x 10 + 210 x 80 = 17.5 + 3,720 + 120 + 16,800 = 20,657.5 = 0.0206575
    ["audio in and out", { inputTextTokens: 7, inputAudioTokens: 93, outputTextTokens: 12, outputAudioTokens: 210 }, 20_657_500n],
    // 3 x 2.5 + 1,105 x 5 + 8 x 10 = 7.5 + 5,525 + 80 = 5,612.5 = 0.0056125
    ["an image in", { inputTextTokens: 3, inputImageTokens: 1_105, outputTextTokens: 8 }, 5_612_500n],
    // 1 x 2.5 + 2 x 0.25 + 3 x 3.125 + 4 x 40 + 5 x 5 + 6 x 10 + 7 x 12 + 8 x 80 + 9 x 10 (an image out, as completion text)
    // = 2.5 + 0.5 + 9.375 + 160 + 25 + 60 + 84 + 640 + 90 = 1,071.375 = 0.001071375
    [
      "every kind at once",
      {
        inputTextTokens: 1,
        inputCachedTokens: 2,
        inputCacheWriteTokens: 3,
        inputAudioTokens: 4,
        inputImageTokens: 5,
        outputTextTokens: 6,
        outputReasoningTokens: 7,
        outputAudioTokens: 8,
        outputImageTokens: 9,
      },
      1_071_375n,
    ],
    ["nothing", {}, 0n],
  ])("charges %s", (_what, usage, nanocredits) => {
    expect(costOf({ ...NO_USAGE, ...usage }, rates)).toBe(nanocredits);
  });

  it.each([
    // 0.000000000499 credits = 499 picocredits: below half a nanocredit.
    [499n, 1, 0n],
    // 500 picocredits are exactly half a nanocredit, which is rounded up.
    [500n, 1, 1n],
    // 3 x 500 = 1,500: one and a half. Rounding each token first would charge 3.
    [500n, 3, 2n],
    // 1,000 x 1 picocredit = 1 nanocredit. Rounding each token first would charge 0.
    [1n, 1_000, 1n],
  ])("rounds %d picocredits x %d once, half up", (price, tokens, nanocredits) => {
    const card = toRateCard({ promptTextPrice: price }, TEXT);

    expect(costOf({ ...NO_USAGE, inputTextTokens: tokens }, card)).toBe(nanocredits);
  });

  it("charges video by the second without rounding its milliseconds", () => {
    const card = toRateCard({ completionVideoPrice: 50_000_000_000n }, { modality: "video", imagePricing: "request" });

    // 4.04 s x 0.05 credits = 0.202 credits
    expect(costOf({ ...NO_USAGE, outputVideoMilliseconds: 4_040 }, card)).toBe(202_000_000n);
  });

  it("rounds a fraction of a picocredit only together with the rest", () => {
    const card = toRateCard({ completionVideoPrice: 1_001n }, { modality: "video", imagePricing: "request" });

    // 499 ms x 1,001 = 499.499 picocredits, below half a nanocredit; 500 ms x 1,001 = 500.5, above it.
    expect(costOf({ ...NO_USAGE, outputVideoMilliseconds: 499 }, card)).toBe(0n);
    expect(costOf({ ...NO_USAGE, outputVideoMilliseconds: 500 }, card)).toBe(1n);
  });

  it("charges an image once for each generation", () => {
    const card = toRateCard({ completionImagePrice: 40_000_000_000n }, { modality: "image", imagePricing: "request" });

    // One generation costs 0.04 credits, independent of the tokens that its upstream reports.
    expect(costOf({ ...NO_USAGE, imageRequests: 1, inputTextTokens: 20, outputImageTokens: 4_160 }, card)).toBe(40_000_000n);
  });

  it("charges an image by its tokens", () => {
    const prices = { promptTextPrice: perMillion(5), promptImagePrice: perMillion(10), completionImagePrice: perMillion(40) };
    const card = toRateCard(prices, { modality: "image", imagePricing: "tokens" });

    // 20 x 5 + 300 x 10 + 4,160 x 40 = 100 + 3,000 + 166,400 = 169,500 = 0.1695
    expect(costOf({ ...NO_USAGE, inputTextTokens: 20, inputImageTokens: 300, outputImageTokens: 4_160 }, card)).toBe(169_500_000n);
  });

  it("charges speech by the character and transcription by the second heard", () => {
    const speech = toRateCard({ completionAudioPrice: 15_000_000n }, { modality: "speech", imagePricing: "request" });
    const transcription = toRateCard({ promptAudioPrice: 100_000_000n }, { modality: "transcription", imagePricing: "request" });

    // 1,200 characters x 0.000015 = 0.018; 61.5 s x 0.0001 = 0.00615
    expect(costOf({ ...NO_USAGE, characters: 1_200 }, speech)).toBe(18_000_000n);
    expect(costOf({ ...NO_USAGE, inputAudioMilliseconds: 61_500 }, transcription)).toBe(6_150_000n);
  });

  it("charges music by the second made", () => {
    const music = toRateCard({ completionAudioPrice: 2_000_000_000n }, { modality: "music", imagePricing: "request" });

    // 30.25 s x 0.002 = 0.0605
    expect(costOf({ ...NO_USAGE, outputAudioMilliseconds: 30_250 }, music)).toBe(60_500_000n);
  });
});

describe("toRateCard", () => {
  it("falls back to the text prices", () => {
    expect(toRateCard({ promptTextPrice: 3n, completionTextPrice: 7n }, TEXT)).toEqual({
      isFree: false,
      searchUnits: 0n,
      inputTextTokens: 3n,
      inputCachedTokens: 3n,
      inputCacheWriteTokens: 3n,
      inputCacheWriteHourTokens: 3n,
      inputAudioTokens: 3n,
      inputImageTokens: 3n,
      outputTextTokens: 7n,
      outputReasoningTokens: 7n,
      outputAudioTokens: 7n,
      outputImageTokens: 7n,
      outputVideoMilliseconds: 0n,
      outputAudioMilliseconds: 0n,
      imageRequests: 0n,
      characters: 0n,
      inputAudioMilliseconds: 0n,
    });
  });

  it("takes a stated 0 for free", () => {
    const prices: StatedPrices = { promptTextPrice: 3n, promptCachedPrice: 0n, completionTextPrice: 7n, completionReasoningPrice: 0n };

    const rates = toRateCard(prices, TEXT);

    expect(rates).toMatchObject({ inputTextTokens: 3n, inputCachedTokens: 0n, outputTextTokens: 7n, outputReasoningTokens: 0n });
  });

  it("never bills audio tokens at a price per second", () => {
    const rates = toRateCard({ promptAudioPrice: 100_000_000n }, { modality: "transcription", imagePricing: "request" });

    expect(costOf({ ...NO_USAGE, inputAudioTokens: 1_000, inputTextTokens: 1_000, outputTextTokens: 1_000 }, rates)).toBe(0n);
  });

  it("bills everything that an image model priced by tokens puts out", () => {
    const rates = toRateCard({ promptTextPrice: 3n, completionImagePrice: 9n }, { modality: "image", imagePricing: "tokens" });

    expect(rates).toMatchObject({ inputImageTokens: 3n, outputTextTokens: 9n, outputReasoningTokens: 9n, outputImageTokens: 9n });
  });
});

describe("usedPriceFields", () => {
  it.each([
    ["text", "request", PRICE_FIELDS.filter((field) => field !== "completionImagePrice" && field !== "completionVideoPrice")],
    ["image", "request", ["completionImagePrice"]],
    ["image", "tokens", ["promptTextPrice", "promptImagePrice", "completionImagePrice"]],
    ["video", "request", ["completionVideoPrice"]],
    ["speech", "request", ["completionAudioPrice"]],
    ["transcription", "request", ["promptAudioPrice"]],
    ["embedding", "request", ["promptTextPrice"]],
  ] as const)("knows the fields of %s priced by %s", (modality, imagePricing, fields) => {
    expect(usedPriceFields({ modality, imagePricing })).toEqual(fields);
  });
});

describe("a card that is free", () => {
  it("has only prices of 0", () => {
    expect(toRateCard({}, TEXT).isFree).toBe(true);
    expect(toRateCard({ promptTextPrice: 0n, completionTextPrice: 0n }, TEXT).isFree).toBe(true);
    expect(toRateCard({ promptTextPrice: 0n, completionAudioPrice: 1n }, TEXT).isFree).toBe(false);
  });

  it("has no price for a longer prompt, nor for a stated field", () => {
    const long = (promptTextPrice: bigint) => toRateCard({}, TEXT, [{ abovePromptTokens: 1_000, prices: { promptTextPrice } }]);
    const withField = (perRequest: bigint, multiplier = MULTIPLIER_ONE) =>
      withFieldPrices({ ...TEXT, prices: { promptTextPrice: 0n }, longContext: [] }, [{ prices: {}, multiplier, perRequest }]);

    expect([long(0n).isFree, long(1n).isFree]).toEqual([true, false]);
    expect([withField(0n).isFree, withField(1n).isFree, withField(0n, 2n * MULTIPLIER_ONE).isFree]).toEqual([true, false, true]);
  });
});

/** An exact fraction of nanocredits, rounded half up by its definition: the nearest whole, a tie away from zero. */
function roundedFraction(numerator: bigint, denominator: bigint): bigint {
  const whole = numerator / denominator;
  const rest = numerator - whole * denominator;
  return rest * 2n >= denominator ? whole + 1n : whole;
}

describe("costOf, for any usage and prices", () => {
  const basis = fc.record({ modality: fc.constantFrom(...MODALITIES), imagePricing: fc.constantFrom(...IMAGE_PRICINGS) });
  const price = fc.oneof(fc.bigInt(0n, 2_000n), fc.bigInt(0n, 10n ** 15n));
  const prices = fc.record(Object.fromEntries(PRICE_FIELDS.map((field) => [field, price])), { requiredKeys: [] });
  const amount = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 0, max: USAGE_AMOUNT_MAX }));
  const kinds: readonly BilledKind[] = [...USAGE_KINDS, "imageRequests", "characters", "inputAudioMilliseconds"];
  const usage = fc
    .record(Object.fromEntries(kinds.map((kind) => [kind, amount])))
    .map((amounts): BillableQuantities => ({ ...NO_USAGE, ...amounts }));

  it("equals the exact sum of amount times price, rounded once", () => {
    fc.assert(
      fc.property(basis, prices, usage, (chosen, stated, amounts) => {
        const rates = toRateCard(stated, chosen);
        let millionthsOfNanocredits = 0n;
        for (const kind of kinds) {
          const perUnit = kind.endsWith("Milliseconds") ? rates[kind] : rates[kind] * 1_000n;
          millionthsOfNanocredits += BigInt(amounts[kind] ?? 0) * perUnit;
        }

        expect(costOf(amounts, rates)).toBe(roundedFraction(millionthsOfNanocredits, 1_000_000n));
      }),
      { numRuns: 500 },
    );
  });

  it("is 0 when every kind used is free, and never falls when more is used", () => {
    fc.assert(
      fc.property(
        basis,
        prices,
        usage,
        fc.constantFrom(...kinds),
        fc.integer({ min: 1, max: 1_000 }),
        (chosen, stated, amounts, kind, more) => {
          const rates = toRateCard(stated, chosen);
          const cost = costOf(amounts, rates);

          expect(costOf({ ...amounts, [kind]: (amounts[kind] ?? 0) + more }, rates)).toBeGreaterThanOrEqual(cost);
          if (kinds.every((used) => !amounts[used] || rates[used] === 0n)) expect(cost).toBe(0n);
        },
      ),
    );
  });

  it("bills only the kinds of the model's modality", () => {
    fc.assert(
      fc.property(basis, prices, (chosen, stated) => {
        const rates = toRateCard(stated, chosen);
        const billed = new Set(billedKinds(chosen));

        expect(kinds.filter((kind) => rates[kind] > 0n && !billed.has(kind))).toEqual([]);
      }),
    );
  });
});

/** Text models of any prices, hourly cache writes among them. */
const textCards = fc
  .record(
    {
      promptTextPrice: fc.bigInt(0n, 10n ** 9n),
      promptCachedPrice: fc.bigInt(0n, 10n ** 9n),
      promptCacheWritePrice: fc.bigInt(0n, 10n ** 9n),
      promptCacheWriteHourPrice: fc.bigInt(0n, 10n ** 9n),
      completionTextPrice: fc.bigInt(0n, 10n ** 9n),
    },
    { requiredKeys: [] },
  )
  .chain((prices) => fc.boolean().map((isHourCacheRequested) => ({ ...toRateCard(prices, TEXT), isHourCacheRequested })));
const tokens = fc.integer({ min: 0, max: 1_000_000 });
const usages = fc
  .record({ inputTextTokens: tokens, inputCacheWriteTokens: tokens, outputTextTokens: tokens })
  .map((amounts) => ({ ...NO_USAGE, ...amounts }));

describe("holdFor", () => {
  it("covers the charge, whichever part of the prompt is written to the cache", () => {
    fc.assert(
      fc.property(textCards, tokens, tokens, fc.double({ min: 0, max: 1, noNaN: true }), (card, prompt, output, part) => {
        const written = Math.floor(prompt * part);
        const counted = { ...NO_USAGE, inputTextTokens: prompt, outputTextTokens: output };
        const charged = { ...counted, inputTextTokens: prompt - written, inputCacheWriteTokens: written };

        expect(holdFor(counted, card)).toBeGreaterThanOrEqual(costOf(charged, card));
      }),
      { numRuns: 300 },
    );
  });

  it("is at the price of a longer prompt from four fifths of its bound on", () => {
    const card = toRateCard({ promptTextPrice: 1_000n }, TEXT, [{ abovePromptTokens: 100, prices: { promptTextPrice: 2_000n } }]);
    const holdOf = (inputTextTokens: number) => holdFor({ ...NO_USAGE, inputTextTokens }, card);

    expect([holdOf(80), holdOf(81)]).toEqual([80n, 162n]);
    expect(costOf({ ...NO_USAGE, inputTextTokens: 100 }, card)).toBe(100n);
    expect(costOf({ ...NO_USAGE, inputTextTokens: 101 }, card)).toBe(202n);
  });
});

describe("cutToCost", () => {
  it("leaves usage within the cost unchanged, and cuts other usage in proportion", () => {
    const card = toRateCard({ promptTextPrice: 1_000n, completionTextPrice: 3_000n }, TEXT);
    const usage = { ...NO_USAGE, inputTextTokens: 100, outputTextTokens: 100 };

    expect(cutToCost(usage, card, 400n)).toBe(usage);
    expect(cutToCost(usage, card, 200n)).toEqual({ ...NO_USAGE, inputTextTokens: 50, outputTextTokens: 50 });
    expect(cutToCost(usage, card, 399n)).toEqual({ ...NO_USAGE, inputTextTokens: 99, outputTextTokens: 99 });
    expect(cutToCost(usage, card, 0n)).toEqual(NO_USAGE);
  });

  it("does not cut the price of the request itself", () => {
    const card = { ...toRateCard({ completionTextPrice: 1_000n }, TEXT), perRequest: 100_000n };
    const usage = { ...NO_USAGE, outputTextTokens: 300 };

    expect(cutToCost(usage, card, 400n)).toBe(usage);
    expect(cutToCost(usage, card, 250n)).toEqual({ ...NO_USAGE, outputTextTokens: 150 });
    expect(cutToCost(usage, card, 100n)).toEqual(NO_USAGE);
    expect(cutToCost(usage, card, 99n)).toEqual(NO_USAGE);
    expect(cutToCost(NO_USAGE, card, 99n)).toEqual(NO_USAGE);
  });

  it("never costs more than its bound, and no kind grows", () => {
    fc.assert(
      fc.property(textCards, usages, fc.bigInt(0n, 10n ** 9n), fc.bigInt(0n, 10n ** 9n), (prices, usage, perRequest, more) => {
        const card = { ...prices, perRequest };
        const bound = costOf(NO_USAGE, card) + more;

        const cut = cutToCost(usage, card, bound);

        expect(costOf(cut, card)).toBeLessThanOrEqual(bound);
        expect(USAGE_KINDS.filter((kind) => cut[kind] > usage[kind] || cut[kind] < 0)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a share of the rates", () => {
  const card = toRateCard({ promptTextPrice: 7n, completionTextPrice: 333n }, TEXT);
  const usage = { ...NO_USAGE, inputTextTokens: 1_000_001, outputTextTokens: 333 };

  it("is rounded once, from the exact price", () => {
    // 7,000,007 and 110,889 picocredits: 2.5% are 177,772.4.
    expect(costOf(usage, withShare(card, 25_000n))).toBe(178n);
    expect(costOf(usage, card)).toBe(7_111n);
  });

  it("is never above the price, and never further from it than its rounding", () => {
    for (const share of [1n, 9_999n, 500_000n, 999_999n, 1_000_000n]) {
      const exact = (7_110_896n * share) / 1_000_000n;
      expect(costOf(usage, withShare(card, share))).toBe((exact + 500n) / 1_000n);
    }
  });

  it("of nothing is free", () => {
    expect(withShare(card, 0n).isFree).toBe(true);
    expect(costOf(usage, withShare(withShare(card, 0n), 0n))).toBe(0n);
  });
});
