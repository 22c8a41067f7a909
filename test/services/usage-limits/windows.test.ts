/** Windows of limits at their edges, in the database, which decides them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.js";

let test: TestDatabase;

beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

interface WindowTerms {
  readonly period?: string;
  readonly minutes?: number;
  readonly isRolling?: boolean;
  readonly timeZone?: string;
}

async function windowAt(at: string, { period, minutes, isRolling = false, timeZone = "UTC" }: WindowTerms) {
  const { rows } = await test.database.pool.query(
    `SELECT (since + CASE WHEN $3 THEN interval '0' ELSE interval '1 millisecond' END) AS since, renews
     FROM usage_limit_window($1::"UsageLimitPeriod", $2::integer, $3::boolean, $4::text, $5::timestamptz)`,
    [period ?? null, minutes ?? null, isRolling, timeZone, at],
  );
  const [{ since, renews }] = rows as [{ since: Date; renews: Date | null }];
  return { since: since.toISOString(), renews: renews?.toISOString() ?? null };
}

const BERLIN = "Europe/Berlin";

describe("a calendar window", () => {
  it.each<[string, string, WindowTerms, string, string]>([
    [
      "a day, just before midnight",
      "2026-11-28T22:59:59.999Z",
      { period: "day", timeZone: BERLIN },
      "2026-11-27T23:00",
      "2026-11-28T23:00",
    ],
    ["a day, at midnight", "2026-11-28T23:00:00.000Z", { period: "day", timeZone: BERLIN }, "2026-11-28T23:00", "2026-11-29T23:00"],
    ["a day of 25 hours", "2026-10-25T12:00:00Z", { period: "day", timeZone: BERLIN }, "2026-10-24T22:00", "2026-10-25T23:00"],
    ["a day of 23 hours", "2026-03-29T12:00:00Z", { period: "day", timeZone: BERLIN }, "2026-03-28T23:00", "2026-03-29T22:00"],
    [
      "the first of two hours from 2 to 3",
      "2026-10-25T00:30:00Z",
      { period: "hour", timeZone: BERLIN },
      "2026-10-25T00:00",
      "2026-10-25T01:00",
    ],
    [
      "the second of two hours from 2 to 3",
      "2026-10-25T01:30:00Z",
      { period: "hour", timeZone: BERLIN },
      "2026-10-25T01:00",
      "2026-10-25T02:00",
    ],
    [
      "an hour of a zone at half past",
      "2026-11-28T12:10:00Z",
      { period: "hour", timeZone: "Asia/Kolkata" },
      "2026-11-28T11:30",
      "2026-11-28T12:30",
    ],
    [
      "a week, which begins on Monday",
      "2026-11-29T12:00:00Z",
      { period: "week", timeZone: BERLIN },
      "2026-11-22T23:00",
      "2026-11-29T23:00",
    ],
    ["a month, on the 31st", "2027-01-31T12:00:00Z", { period: "month", timeZone: BERLIN }, "2026-12-31T23:00", "2027-01-31T23:00"],
    [
      "February of a leap year",
      "2028-02-29T12:00:00Z",
      { period: "month", timeZone: "America/New_York" },
      "2028-02-01T05:00",
      "2028-03-01T05:00",
    ],
    [
      "a month over the end of daylight saving",
      "2026-10-30T12:00:00Z",
      { period: "month", timeZone: BERLIN },
      "2026-09-30T22:00",
      "2026-10-31T23:00",
    ],
    [
      "a day that has midnight twice, in the first of the two hours",
      "2026-11-01T04:30:00Z",
      { period: "day", timeZone: "America/Havana" },
      "2026-11-01T04:00",
      "2026-11-02T05:00",
    ],
    [
      "the month of that day",
      "2026-11-01T04:30:00Z",
      { period: "month", timeZone: "America/Havana" },
      "2026-11-01T04:00",
      "2026-12-01T05:00",
    ],
    ["the day before it", "2026-10-31T12:00:00Z", { period: "day", timeZone: "America/Havana" }, "2026-10-31T04:00", "2026-11-01T04:00"],
    [
      "a day without midnight",
      "2026-03-08T05:30:00Z",
      { period: "day", timeZone: "America/Havana" },
      "2026-03-08T05:00",
      "2026-03-09T04:00",
    ],
    ["90 minutes", "2026-11-28T02:00:00Z", { minutes: 90 }, "2026-11-28T01:30", "2026-11-28T03:00"],
    ["one minute", "2026-11-28T02:00:59.999Z", { minutes: 1 }, "2026-11-28T02:00", "2026-11-28T02:01"],
  ])("is %s", async (_name, at, terms, since, renews) => {
    expect(await windowAt(at, terms)).toEqual({ since: `${since}:00.000Z`, renews: `${renews}:00.000Z` });
  });
});

describe("a rolling window", () => {
  it.each<[string, string, WindowTerms, string]>([
    ["24 hours over the end of daylight saving", "2026-10-25T12:00:00Z", { period: "day", timeZone: BERLIN }, "2026-10-24T12:00:00.000Z"],
    ["a week", "2026-11-28T12:00:00.001Z", { period: "week" }, "2026-11-21T12:00:00.001Z"],
    ["a month on the 31st, from the end of February", "2026-03-31T12:00:00Z", { period: "month" }, "2026-03-01T00:00:00.000Z"],
    ["a month from a leap day", "2028-02-29T12:00:00Z", { period: "month" }, "2028-01-29T12:00:00.000Z"],
    ["7 minutes", "2026-11-28T12:00:00Z", { minutes: 7 }, "2026-11-28T11:53:00.000Z"],
  ])("is %s", async (_name, at, terms, since) => {
    expect(await windowAt(at, { ...terms, isRolling: true })).toEqual({ since, renews: null });
  });
});

/** Where clocks change at midnight, by half an hour or two hours, and the first and last zones of all. */
const ZONES = [
  ...["America/Havana", "Atlantic/Azores", "America/Santiago", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "Antarctica/Troll"],
  ...["Europe/Berlin", "America/St_Johns", "Pacific/Chatham", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"],
];

describe("the beginning of any window", () => {
  it("is never later than the time, never goes back, and ends when it renews, around each change of clocks and end of a month", async () => {
    const { rows } = await test.database.pool.query(
      `WITH hours AS MATERIALIZED (
         SELECT z.zone, h.at, h.at AT TIME ZONE z.zone AS local
         FROM unnest($1::text[]) AS z(zone), generate_series(timestamptz '2027-01-01Z', timestamptz '2028-05-01Z', interval '1 hour') AS h(at)
       ), edges AS (
         SELECT zone, at FROM (SELECT h.*, lag(h.local) OVER (PARTITION BY h.zone ORDER BY h.at) AS before FROM hours h) h
         WHERE h.local - h.before <> interval '1 hour' OR (extract(day FROM h.local) IN (1, 29, 30) AND extract(hour FROM h.local) = 0)
       ), looks AS MATERIALIZED (
         SELECT DISTINCT e.zone, e.at + make_interval(mins => 15 * s.step) AS at FROM edges e, generate_series(-14, 14) AS s(step)
       ), windows AS (
         SELECT l.zone, l.at, t.period, t.is_rolling, w.since, w.renews,
           lag(w.since) OVER (PARTITION BY l.zone, t.period, t.is_rolling ORDER BY l.at) AS earlier
         FROM looks l
         CROSS JOIN (VALUES ('hour', false), ('day', false), ('week', false), ('month', false), ('month', true)) AS t(period, is_rolling)
         CROSS JOIN LATERAL usage_limit_window(t.period::"UsageLimitPeriod", NULL, t.is_rolling, l.zone, l.at) w
       )
       SELECT *, count(*) OVER () AS looks FROM windows
       WHERE since >= at OR since < earlier OR renews <= at OR (SELECT count(*) FROM windows) < 10000 LIMIT 5`,
      [ZONES],
    );
    expect(rows).toEqual([]);
  });
});
