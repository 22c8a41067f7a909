/** Which spend of an hour is unusual. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgeSpend } from "../../../src/services/alerts/spend.js";

const CREDIT = 1_000_000_000n;
const hours = (...credits: number[]) => credits.map((each) => BigInt(each) * CREDIT);

describe("spend of an hour", () => {
  it.each([
    ["ten times the usual", 100n, hours(10, 11, 9, 10, 12, 10, 8, 10, 11, 9, 10, 10), true],
    ["the usual", 11n, hours(10, 11, 9, 10, 12, 10, 8, 10, 11, 9, 10, 10), false],
    ["twice the usual", 20n, hours(10, 10, 10, 10, 10, 10, 10, 10), false],
    ["more than twice the usual of equal hours", 21n, hours(10, 10, 10, 10, 10, 10, 10, 10), true],
    ["a peak within the spread of the past", 100n, hours(5, 60, 20, 90, 10, 40, 80, 30, 70, 50), false],
    ["an hour without spend in the past", 5n, hours(0, 0, 0, 0, 0, 0, 0, 0), true],
    ["an hour with one peak in the past", 50n, hours(1, 1, 1, 1, 1, 1, 1, 500), true],
    ["less than the minimum", 1n, hours(0, 0, 0, 0, 0, 0, 0, 0), false],
    ["no past", 1_000n, [], false],
  ])("%s: %s", (_name, spent, past, isUnusual) => {
    expect(judgeSpend(spent * CREDIT, past, 2n * CREDIT).isUnusual).toBe(isUnusual);
  });

  it("is judged alike in any order of the past, and by less than half of it not at all", () => {
    const amount = fc.bigInt({ min: 0n, max: 10n ** 18n });
    fc.assert(
      fc.property(amount, fc.array(amount, { minLength: 1, maxLength: 24 }), (spent, past) => {
        expect(judgeSpend(spent, past.toReversed(), 0n)).toEqual(judgeSpend(spent, past, 0n));
        const usual = Array.from({ length: 13 }, () => CREDIT);
        expect(judgeSpend(3n * CREDIT, [...usual, ...past.slice(0, 11)], 0n).isUnusual).toBe(true);
      }),
    );
  });
});
