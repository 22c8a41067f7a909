import { describe, expect, it } from "vitest";
import { RequestNote } from "../../../src/lib/request-note.js";
import {
  addUpModelCalls,
  addUpSettlements,
  RECENT_ERRORS_MAX,
  RecentErrors,
  RecentModelCalls,
  SETTLEMENT_SECONDS,
  SettlementSeries,
} from "../../../src/services/metrics/recent-activity.js";

const MINUTE_MS = 60_000;
const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

function movableTime(start = 1_700_000_000_000) {
  let now = start;
  const pass = (milliseconds: number) => {
    now += milliseconds;
  };
  return { time: () => now, pass };
}

describe("settlements", () => {
  it("are reported by the second, without the current second", () => {
    const { time, pass } = movableTime();
    const series = new SettlementSeries(time);
    series.add();
    series.add();
    expect(total(series.read().counts)).toBe(0);

    pass(1_000);
    series.add();
    expect(series.read().counts.slice(-2)).toEqual([0, 2]);
    pass(2_000);

    expect(series.read()).toEqual({ until: time() / 1_000 - 1, counts: expect.arrayContaining([2, 1]) });
    expect(series.read().counts.slice(-3)).toEqual([2, 1, 0]);
  });

  it("are forgotten when they are too old, however long nothing happened, and when the clock is set back", () => {
    const { time, pass } = movableTime();
    const series = new SettlementSeries(time);
    series.add();
    pass(SETTLEMENT_SECONDS * 1_000);
    expect(series.read().counts[0]).toBe(1);
    pass(1_000);
    expect(total(series.read().counts)).toBe(0);

    series.add();
    pass(1_000_000_000);
    expect(total(series.read().counts)).toBe(0);
    series.add();
    pass(-5_000);
    expect(total(series.read().counts)).toBe(0);
  });

  it("of several processes are added up to the second that all have told", () => {
    const { time, pass } = movableTime();
    const [one, other] = [new SettlementSeries(time), new SettlementSeries(time)];
    one.add();
    other.add();
    pass(1_000);
    const early = one.read();
    other.add();
    pass(1_000);

    const both = addUpSettlements([early, other.read()]);

    expect([both.until, both.counts.length, both.counts.at(-1), total(both.counts)]).toEqual([early.until, SETTLEMENT_SECONDS, 2, 2]);
  });
});

describe("errors", () => {
  const end = { method: "POST", status: 500, isLeft: false };
  const noteOf = (code: string | null, more: Partial<RequestNote> = {}) => Object.assign(new RequestNote(), { code, ...more });

  it("are those of the gateway and those of its upstreams", () => {
    const errors = new RecentErrors();
    for (const code of [
      null,
      "BAD_REQUEST",
      "RATE_LIMITED",
      "INTERNAL_ERROR",
      "UPSTREAM_ERROR",
      "UPSTREAM_TIMEOUT",
      "SERVICE_UNAVAILABLE",
    ]) {
      errors.note(noteOf(code), end);
    }

    expect(errors.read().map(({ code }) => code)).toEqual(["INTERNAL_ERROR", "UPSTREAM_ERROR", "UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE"]);
  });

  it("are kept in bounded room, the gateway's own apart from an upstream's outage", () => {
    const errors = new RecentErrors();
    errors.note(noteOf("INTERNAL_ERROR", { requestId: "own", operation: "x".repeat(10_000), model: "m".repeat(10_000) }), end);
    for (let index = 0; index < 1_000; index += 1) errors.note(noteOf("UPSTREAM_ERROR", { requestId: `${index}` }), end);

    const told = errors.read();

    expect(told).toHaveLength(1 + RECENT_ERRORS_MAX);
    expect(told[0]).toMatchObject({ requestId: "own", operation: "x".repeat(200), model: "m".repeat(200) });
    expect(told.at(-1)?.requestId).toBe("999");
  });
});

describe("calls of models", () => {
  it("are counted for an hour", () => {
    const { time, pass } = movableTime();
    const calls = new RecentModelCalls(time);
    calls.answered("a");
    pass(30 * MINUTE_MS);
    calls.answered("a");
    calls.failed("a", "5xx");
    const failedAt = new Date(time());
    pass(25 * MINUTE_MS);
    expect(calls.read()).toEqual([{ modelId: "a", answered: 2, failed: 1, lastFailure: { at: failedAt, reason: "5xx" } }]);

    pass(10 * MINUTE_MS);
    expect(calls.read()).toMatchObject([{ answered: 1, failed: 1 }]);
    pass(60 * MINUTE_MS);
    expect(calls.read()).toEqual([]);
  });

  it("are counted of a bounded number of models", () => {
    const calls = new RecentModelCalls();
    for (let index = 0; index < 2_000; index += 1) calls.answered(`community/a/${index}`);

    expect(calls.read()).toHaveLength(1_000);
  });

  it("of several processes are added up, with the last failure of all", () => {
    const early = { at: new Date(1), reason: "429" };
    const late = { at: new Date(2), reason: "5xx" };

    expect(
      addUpModelCalls([
        [{ modelId: "a", answered: 1, failed: 1, lastFailure: early }],
        [{ modelId: "b", answered: 1, failed: 0, lastFailure: null }],
        [{ modelId: "a", answered: 2, failed: 3, lastFailure: late }],
        [{ modelId: "a", answered: 1, failed: 0, lastFailure: null }],
      ]),
    ).toEqual([
      { modelId: "a", answered: 4, failed: 4, lastFailure: late },
      { modelId: "b", answered: 1, failed: 0, lastFailure: null },
    ]);
  });
});
