import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  AMOUNT_CHARS_MAX,
  formatNanocredits,
  formatPicocredits,
  larger,
  parseNanocredits,
  parsePicocredits,
  roundToNanocredits,
  smaller,
  toCreditsNumber,
  toPlainDecimal,
} from "../../src/lib/money.js";

const NANO = 10n ** 9n;
const PICO = 10n ** 12n;
/** The largest balance that the store holds (PostgreSQL's bigint). */
const STORED_MAX = 2n ** 63n - 1n;
const amount = fc.oneof(fc.bigInt(-10n * NANO, 10n * NANO), fc.bigInt(-STORED_MAX, STORED_MAX));

const READERS = [
  { unit: "nanocredits", decimals: 9, one: NANO, parse: parseNanocredits, format: formatNanocredits },
  { unit: "picocredits", decimals: 12, one: PICO, parse: parsePicocredits, format: formatPicocredits },
];

describe.each(READERS)("parsing $unit", ({ decimals, one, parse, format }) => {
  const smallest = `0.${"0".repeat(decimals - 1)}1`;

  it.each([
    ["0", 0n],
    ["1", one],
    ["1.5", one + one / 2n],
    ["-1.5", -one - one / 2n],
    ["-0", 0n],
    ["-0.0", 0n],
    ["007", 7n * one],
    ["1000000000", 1_000_000_000n * one],
    [smallest, 1n],
    [`-${smallest}`, -1n],
    [`1.${"9".repeat(decimals)}`, 2n * one - 1n],
  ])("reads %s", (text, expected) => {
    expect(parse(text)).toBe(expected);
  });

  it("refuses one decimal place more than the unit has, and ignores zeros at the end", () => {
    expect(parse(`${smallest}0`)).toBe(1n);
    expect(parse(`${smallest}1`)).toBeNull();
    expect(parse(`0.${"0".repeat(decimals)}1`)).toBeNull();
    expect(parse(`1.${"0".repeat(decimals + 1)}`)).toBe(one);
  });

  it("refuses text above its length bound, and reads text at the bound exactly", () => {
    const digits = "9".repeat(AMOUNT_CHARS_MAX);

    expect(parse(digits)).toBe(BigInt(digits) * one);
    expect(parse(`${digits}9`)).toBeNull();
    expect(parse(`0.${"0".repeat(AMOUNT_CHARS_MAX - 2)}`)).toBe(0n);
    expect(parse(`0.${"0".repeat(AMOUNT_CHARS_MAX - 1)}`)).toBeNull();
  });

  it.each([
    "",
    " ",
    ".",
    "-",
    "+1",
    "--1",
    "1.",
    ".5",
    "1..5",
    "1.5.5",
    "1,5",
    "1_000",
    "1e3",
    "1E-3",
    "0x10",
    "0b1",
    "1n",
    "NaN",
    "Infinity",
    "null",
    " 1",
    "1 ",
    "1\n",
    "1\0",
    "١",
    "１",
    "−1",
    "1.5٠",
  ])("refuses %j", (text) => {
    expect(parse(text)).toBeNull();
  });

  it("equals exact integer arithmetic on the digits", () => {
    const digits = fc.stringMatching(/^\d{1,20}$/);
    const fraction = fc.stringMatching(new RegExp(`^\\d{1,${decimals}}$`));
    fc.assert(
      fc.property(fc.constantFrom("", "-"), digits, fraction, (sign, whole, part) => {
        const magnitude = BigInt(whole) * one + BigInt(part) * 10n ** BigInt(decimals - part.length);

        expect(parse(`${sign}${whole}.${part}`)).toBe(sign ? -magnitude : magnitude);
      }),
    );
  });

  it("never throws, and accepts only plain decimals", () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("0", "7", ".", "-", "e", " ", "٣"), maxLength: 70 }));
    fc.assert(
      fc.property(text, (each) => {
        const parsed = parse(each);
        if (parsed === null) return;
        expect(each).toMatch(/^-?[0-9]+(\.[0-9]+)?$/);
        expect(parse(format(parsed))).toBe(parsed);
      }),
      { numRuns: 500 },
    );
  });

  it("returns every amount that was formatted", () => {
    fc.assert(
      fc.property(amount, (each) => {
        expect(parse(format(each))).toBe(each);
      }),
    );
  });
});

describe.each(READERS)("formatting $unit", ({ decimals, one, format }) => {
  it.each([
    [0n, "0"],
    [1n, `0.${"0".repeat(decimals - 1)}1`],
    [-1n, `-0.${"0".repeat(decimals - 1)}1`],
    [one - 1n, `0.${"9".repeat(decimals)}`],
    [one, "1"],
    [-one, "-1"],
    [10n * one, "10"],
    [one / 10n, "0.1"],
    [100n * one + one / 2n, "100.5"],
  ])("writes %d as %s", (each, text) => {
    expect(format(each)).toBe(text);
  });

  it("writes the shortest plain decimal", () => {
    fc.assert(
      fc.property(amount, (each) => {
        expect(format(each)).toMatch(/^(?!-0$)-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/);
      }),
    );
  });
});

describe("rounding to nanocredits", () => {
  it.each([
    [0n, 0n],
    [1n, 0n],
    [499n, 0n],
    [500n, 1n],
    [501n, 1n],
    [1_000n, 1n],
    [1_499n, 1n],
    [1_500n, 2n],
    [2_500n, 3n],
    [10n ** 30n + 500n, 10n ** 27n + 1n],
  ])("rounds %d picocredits half up to %d", (picocredits, nanocredits) => {
    expect(roundToNanocredits(picocredits)).toBe(nanocredits);
  });

  it("is off by at most half a nanocredit, and by exactly that only upwards", () => {
    fc.assert(
      fc.property(fc.oneof(fc.bigInt(0n, 10_000n), fc.bigInt(0n, 10n ** 40n)), (picocredits) => {
        const excess = roundToNanocredits(picocredits) * 1_000n - picocredits;

        expect(excess).toBeGreaterThan(-500n);
        expect(excess).toBeLessThanOrEqual(500n);
      }),
    );
  });
});

describe("a number as a plain decimal", () => {
  it.each([
    [0, "0"],
    [-0, "0"],
    [0.1, "0.1"],
    [1e-7, "0.0000001"],
    [-1.5e-7, "-0.00000015"],
    [1.25e-9, "0.00000000125"],
    [1e21, `1${"0".repeat(21)}`],
    [-1.234e22, `-1234${"0".repeat(19)}`],
    [1.234567890123456e21, "1234567890123456000000"],
    [Number.MAX_SAFE_INTEGER, "9007199254740991"],
  ])("writes %d as %s", (value, text) => {
    expect(toPlainDecimal(value)).toBe(text);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])("is absent for %d", (value) => {
    expect(toPlainDecimal(value)).toBeNull();
  });

  it("has no exponent, and the value of its number", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = toPlainDecimal(value) ?? "";

        expect(text).toMatch(/^-?\d+(?:\.\d+)?$/);
        // `-0` is written without its sign.
        expect(Number(text)).toBe(value === 0 ? 0 : value);
      }),
      { numRuns: 1_000 },
    );
  });

  it("parses to the amount that was written as a JSON number", () => {
    // A double keeps every decimal of 15 digits.
    const upTo15Digits = fc.integer({ min: 0, max: 10 ** 15 - 1 });
    fc.assert(
      fc.property(upTo15Digits, fc.integer({ min: 0, max: 9 }), (digits, places) => {
        const value = Number(`${digits}e-${places}`);

        expect(parseNanocredits(toPlainDecimal(value) ?? "")).toBe(BigInt(digits) * 10n ** BigInt(9 - places));
      }),
    );
  });
});

describe("credits as a JSON number", () => {
  it("is the double closest to the amount", () => {
    expect(toCreditsNumber(1n)).toBe(1e-9);
    expect(toCreditsNumber(-NANO / 2n)).toBe(-0.5);
    expect(toCreditsNumber(300_000_000n)).toBe(0.3);
    expect(toCreditsNumber(STORED_MAX)).toBe(9_223_372_036.854776);
  });

  it("returns amounts of up to fifteen digits exactly when it is read again", () => {
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 15n), 10n ** 15n), (nanocredits) => {
        const parsed: number = JSON.parse(JSON.stringify(toCreditsNumber(nanocredits)));

        expect(parseNanocredits(toPlainDecimal(parsed) ?? "")).toBe(nanocredits);
      }),
    );
  });
});

describe("comparing amounts", () => {
  it("finds the smaller and the larger of two, beyond the range of a double's whole numbers", () => {
    const big = 2n ** 53n;

    expect([smaller(big + 1n, big), smaller(big, big + 1n), smaller(-1n, 0n)]).toEqual([big, big, -1n]);
    expect([larger(big + 1n, big), larger(big, big + 1n), larger(-1n, 0n)]).toEqual([big + 1n, big + 1n, 0n]);
  });
});
