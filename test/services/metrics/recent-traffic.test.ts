import { describe, expect, it } from "vitest";
import { addUpTraffic, RecentTraffic, TRAFFIC_MINUTES } from "../../../src/services/metrics/recent-traffic.js";
import { quantilesOf } from "../../../src/services/usage/usage-roll-ups.js";

const MINUTE_MS = 60_000;
const START = 1_700_000_000_000;

function movable() {
  let now = START;
  const traffic = new RecentTraffic(() => now);
  return {
    traffic,
    pass: (minutes: number) => {
      now += minutes * MINUTE_MS;
    },
  };
}
const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

describe("recent traffic", () => {
  it("is counted by the minute, with its credits, for an hour", () => {
    const { traffic, pass } = movable();
    traffic.add(5n, 100, null);
    traffic.add(7n, 100, 10);
    pass(2);
    traffic.add(1n, 100, null);

    expect(traffic.read().requests.slice(-3)).toEqual([2, 0, 1]);
    expect(traffic.read().nanocredits.slice(-3)).toEqual([12, 0, 1]);
    expect(traffic.read().until).toBe(Math.floor(START / MINUTE_MS) + 2);
    pass(TRAFFIC_MINUTES - 3);
    expect(total(traffic.read().requests)).toBe(3);
    expect(total(traffic.read().firstTokenTimes)).toBe(1);
    pass(1);
    expect(total(traffic.read().requests)).toBe(1);
    expect(total(traffic.read().responseTimes)).toBe(1);
    expect(total(traffic.read().firstTokenTimes)).toBe(0);
    pass(1_000_000);
    expect(total(traffic.read().responseTimes)).toBe(0);
  });

  it("forgets everything when the clock is set back", () => {
    const { traffic, pass } = movable();
    traffic.add(1n, 1, 1);
    pass(-5);

    expect(total(traffic.read().requests)).toBe(0);
  });

  it("has percentiles to 5%, and bounds times of any length", () => {
    const { traffic } = movable();
    const times = Array.from({ length: 1_000 }, (_, index) => index * 7);
    for (const time of times) traffic.add(0n, time, null);

    for (const share of [0.5, 0.95, 0.99]) {
      const [found = 0] = quantilesOf(traffic.read().responseTimes, [share]) ?? [];
      const exact = times[Math.ceil(times.length * share) - 1] ?? 0;
      expect(Math.abs(found - exact) / exact).toBeLessThan(0.05);
    }
    for (const time of [0, 0.4, -1, 1e12, Number.POSITIVE_INFINITY]) traffic.add(0n, time, null);
    expect(total(traffic.read().responseTimes)).toBe(1_005);
  });

  it("is added up over processes whose minutes differ", () => {
    const [one, other] = [movable(), movable()];
    one.traffic.add(1n, 10, null);
    other.traffic.add(2n, 10, null);
    other.pass(1);
    other.traffic.add(4n, 10, null);

    const sums = addUpTraffic([one.traffic.read(), other.traffic.read()]);

    // Up to the last minute that both report; times of the newer minute are known by bucket alone.
    expect(sums.until).toBe(Math.floor(START / MINUTE_MS));
    expect(sums.requests.slice(-2)).toEqual([0, 2]);
    expect(sums.nanocredits.at(-1)).toBe(3);
    expect(total(sums.responseTimes)).toBe(3);
  });
});
