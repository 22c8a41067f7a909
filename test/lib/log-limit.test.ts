import { describe, expect, it } from "vitest";
import { LogLimit } from "../../src/lib/log-limit.js";
import { createMovableClock } from "../support/clock.js";

const INTERVAL_MS = 2_000;

describe("LogLimit", () => {
  it("admits the first line of each subject, then one per interval with the count of those left out", () => {
    const clock = createMovableClock();
    const limit = new LogLimit(clock, INTERVAL_MS);

    expect([limit.admit("one"), limit.admit("two")]).toEqual([0, 0]);
    clock.advance(1);
    expect([limit.admit("one"), limit.admit("one")]).toEqual([null, null]);
    clock.advance(1);
    expect([limit.admit("one"), limit.admit("two"), limit.admit("one")]).toEqual([2, 0, null]);
  });

  it("remembers a bounded number of subjects", () => {
    const limit = new LogLimit(createMovableClock(), INTERVAL_MS);
    for (let subject = 0; subject < 1_000; subject += 1) limit.admit(String(subject));

    expect(limit.admit("999")).toBeNull();
    expect(limit.admit("one more")).toBe(0);
    expect(limit.admit("999")).toBe(0);
  });
});
