/** A process whose clock differs from its database's. */
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { CLOCK_DIFFERENCE_MS_MAX } from "../../../src/limits.js";
import { ClockDifference } from "../../../src/services/credits/clock-difference.js";

const NOW = Date.parse("2026-11-27T12:00:00Z");

function watch() {
  const lines: unknown[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) });
  const clock = { time: NOW, now: () => new Date(clock.time) };
  const difference = new ClockDifference(clock, log);
  const check = (databaseMs: number, takesMs = 0) =>
    difference.check(async () => {
      clock.time += takesMs;
      return new Date(databaseMs);
    });
  return { check, lines, clock };
}

describe("ClockDifference", () => {
  it("is silent at the bound and warns one millisecond past it, ahead and behind", async () => {
    const { check, lines } = watch();
    await check(NOW - CLOCK_DIFFERENCE_MS_MAX);
    await check(NOW + CLOCK_DIFFERENCE_MS_MAX);
    expect(lines).toEqual([]);

    await check(NOW - CLOCK_DIFFERENCE_MS_MAX - 1);
    expect(lines).toEqual([
      expect.objectContaining({ aheadMs: CLOCK_DIFFERENCE_MS_MAX + 1, msg: expect.stringContaining("5 s ahead of") }),
    ]);
    await check(NOW);
    await check(NOW + 1_800_000);
    expect(lines[1]).toMatchObject({ aheadMs: -1_800_000, msg: expect.stringContaining("1800 s behind") });
  });

  it("warns once as long as the difference lasts", async () => {
    const { check, lines } = watch();
    await check(NOW - 60_000);
    await check(NOW - 60_000);
    expect(lines).toHaveLength(1);
  });

  it("does not take a slow answer for a difference", async () => {
    const { check, lines } = watch();
    await check(NOW + 10_000, 20_000);
    expect(lines).toEqual([]);
  });
});
