import { describe, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import { nextBoundary, Tiers } from "../../../src/services/credits/tiers.js";

const tiers = new Tiers([
  { name: "free", nanocredits: 1n, period: "day" },
  { name: "idle", nanocredits: 7n, period: null },
  { name: "zero", nanocredits: 0n, period: "hour" },
]);

describe("the next boundary", () => {
  it.each([
    ["hour", "2026-11-21T12:00:00.000Z", "2026-11-21T13:00:00.000Z"],
    ["hour", "2026-11-21T12:59:59.999Z", "2026-11-21T13:00:00.000Z"],
    ["hour", "2026-12-31T23:30:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["day", "2026-11-21T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
    ["day", "2026-11-21T23:59:59.999Z", "2026-11-22T00:00:00.000Z"],
    ["day", "2028-02-28T12:00:00.000Z", "2028-02-29T00:00:00.000Z"],
    // 2026-11-23 is a Monday.
    ["week", "2026-11-22T23:59:59.999Z", "2026-11-23T00:00:00.000Z"],
    ["week", "2026-11-23T00:00:00.000Z", "2026-11-30T00:00:00.000Z"],
    ["week", "2026-11-24T05:00:00.000Z", "2026-11-30T00:00:00.000Z"],
    ["week", "2026-11-28T05:00:00.000Z", "2026-11-30T00:00:00.000Z"],
    ["week", "2026-12-30T05:00:00.000Z", "2027-01-04T00:00:00.000Z"],
    ["month", "2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z"],
    ["month", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["month", "2027-01-31T12:00:00.000Z", "2027-02-01T00:00:00.000Z"],
  ] as const)("of a %s after %s is %s", (period, now, expected) => {
    expect(nextBoundary(period, new Date(now)).toISOString()).toBe(expected);
  });
});

describe("a tier", () => {
  const now = new Date("2026-11-21T12:00:00.000Z");

  it("gives its credits until its next boundary", () => {
    expect(tiers.giftOf("free", now)).toEqual({ amount: 1n, nextReset: new Date("2026-11-22T00:00:00.000Z") });
    expect(tiers.giftOf("zero", now)).toEqual({ amount: 0n, nextReset: new Date("2026-11-21T13:00:00.000Z") });
  });

  it.each([["idle"], ["of last year"], [null]])("gives nothing when it is %s", (name) => {
    expect(tiers.giftOf(name, now)).toEqual({ amount: 0n, nextReset: null });
    expect(tiers.isRefilled(name)).toBe(false);
  });

  it("that is not configured is refused by name, with those that are", () => {
    expect(() => tiers.assertKnown("idle")).not.toThrow();
    expect(() => tiers.assertKnown('go"ld')).toThrow(
      expect.objectContaining({ code: "BAD_REQUEST", param: "tier", message: expect.stringMatching(/"go\\"ld".*free, idle, zero/) }),
    );
    expect(() => tiers.assertKnown("")).toThrow(AppError);
  });
});
