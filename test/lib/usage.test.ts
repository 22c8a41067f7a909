import { expect, it } from "vitest";
import { amountsOf, NO_USAGE, USAGE_AMOUNT_MAX, USAGE_KINDS, type UsageQuantities } from "../../src/lib/usage.js";

/** A different amount for each kind, so that no two can be mistaken for each other. */
const DISTINCT = Object.fromEntries(USAGE_KINDS.map((kind, index) => [kind, index + 1])) as unknown as UsageQuantities;

it("copies the amount of every kind", () => {
  expect(amountsOf(DISTINCT)).toEqual(DISTINCT);
  expect(Object.keys(amountsOf(DISTINCT))).toEqual(USAGE_KINDS);
});

it("copies only the kinds of a usage row from a report", () => {
  expect(amountsOf({ ...DISTINCT, inputCacheWriteHourTokens: 7 } as UsageQuantities)).toEqual(DISTINCT);
});

it("copies into an object that can be counted up without changing the original", () => {
  const amounts = amountsOf(NO_USAGE);
  for (const kind of USAGE_KINDS) amounts[kind] += 1;

  expect(Object.values(amounts)).toEqual(USAGE_KINDS.map(() => 1));
  expect(Object.values(NO_USAGE)).toEqual(USAGE_KINDS.map(() => 0));
});

it("refuses changes of the shared empty usage", () => {
  expect(() => {
    (NO_USAGE as { inputTextTokens: number }).inputTextTokens = 1;
  }).toThrow(TypeError);
});

it("bounds an amount by PostgreSQL's integer", () => {
  expect(USAGE_AMOUNT_MAX).toBe(2 ** 31 - 1);
});
