import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatNanocredits } from "../../../src/lib/money.js";
import { CREDITS_MAX } from "../../../src/limits.js";
import { creditsAmount } from "../../../src/services/credits/credits-amount.js";
import { readMaxCost, smallerCost, takeMaxCost } from "../../../src/services/credits/max-cost.js";

const NANOCREDITS_MAX = BigInt(CREDITS_MAX) * 10n ** 9n;

describe("a request's highest charge", () => {
  it.each<[unknown, bigint]>([
    [0, 0n],
    [-0, 0n],
    ["0", 0n],
    [0.25, 250_000_000n],
    ["0.25", 250_000_000n],
    [" 0.25 ", 250_000_000n],
    [1e-9, 1n],
    ["0.000000001", 1n],
    [250_000_000n, 250_000_000n],
    [CREDITS_MAX, NANOCREDITS_MAX],
    [String(CREDITS_MAX), NANOCREDITS_MAX],
    [NANOCREDITS_MAX, NANOCREDITS_MAX],
  ])("is read from %s", (stated, nanocredits) => {
    expect(readMaxCost(stated, "max_cost")).toEqual({ nanocredits });
  });

  it.each<[unknown]>([
    [-1],
    ["-0.000000001"],
    [-1n],
    [1e-10],
    ["0.0000000001"],
    [CREDITS_MAX + 1],
    [`${CREDITS_MAX}.000000001`],
    [NANOCREDITS_MAX + 1n],
    [Number.MAX_VALUE],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [""],
    ["free"],
    ["1e-3"],
    ["0,25"],
    [true],
    [null],
    [{}],
    [["1"]],
  ])("is refused as %s, and names its field", (stated) => {
    expect(() => readMaxCost(stated, "max_cost")).toThrow(
      expect.objectContaining({ message: expect.stringContaining("from 0 to"), param: "max_cost" }),
    );
  });

  it("is taken out of the input", () => {
    expect(takeMaxCost({ model: "a", max_cost: "0.5" })).toEqual({ rest: { model: "a" }, maxCost: { nanocredits: 500_000_000n } });
    expect(takeMaxCost({ model: "a", max_cost: null })).toEqual({ rest: { model: "a" }, maxCost: undefined });
    for (const input of [{ model: "a" }, [], null, "max_cost", Object.create({ max_cost: 1 })]) expect(takeMaxCost(input)).toBeNull();
  });

  it("is the smaller one of two", () => {
    const [small, large] = [{ nanocredits: 1n }, { nanocredits: 2n }];

    expect([smallerCost(small, large), smallerCost(large, small), smallerCost(undefined, large)]).toEqual([small, small, large]);
  });
});

describe("an amount of credits", () => {
  it("is an exact number of nanocredits, from 0 to the bound", () => {
    const parse = (value: unknown) => creditsAmount.safeParse(value);

    expect([parse(0).data, parse(1e-9).data, parse(0.3).data, parse(CREDITS_MAX).data]).toEqual([0n, 1n, 300_000_000n, NANOCREDITS_MAX]);
    expect([parse(0n).data, parse(NANOCREDITS_MAX).data]).toEqual([0n, NANOCREDITS_MAX]);
    for (const value of [-1e-9, 1e-10, CREDITS_MAX + 1, -1n, NANOCREDITS_MAX + 1n, "1", null, Number.NaN]) {
      expect(parse(value).success).toBe(false);
    }
  });

  it("is the amount that was written, as a number or as text", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 15n), (nanocredits) => {
        const text = formatNanocredits(nanocredits);

        expect(creditsAmount.parse(Number(text))).toBe(nanocredits);
        expect(readMaxCost(text, "max_cost")).toEqual({ nanocredits });
        expect(readMaxCost(Number(text), "max_cost")).toEqual({ nanocredits });
      }),
    );
  });
});
