/**
 * Answered generations of the last hour in this process, by the minute: counts, credits and histograms of times, in bounded memory. A
 * generation costs a few additions.
 */
import { least } from "../../lib/collections.js";

const MINUTE_MS = 60_000;
/** Unspecified: minutes reported, the current one included. */
export const TRAFFIC_MINUTES = 60;
/** Bounds of buckets grow by a tenth, as in the roll-ups of usage: the last one begins at 2.5 hours. */
const BUCKETS = 170;
const LOG_GROWTH = Math.log(1.1);

/** Answered generations by minute. */
export interface RecentTrafficCounts {
  /** The current minute, in minutes since 1970. */
  readonly until: number;
  /** Up to that minute, oldest first. */
  readonly requests: readonly number[];
  /** For display: sums of floating point. */
  readonly nanocredits: readonly number[];
  /** Counts by bucket (usage_time_digit). */
  readonly responseTimes: readonly number[];
  readonly firstTokenTimes: readonly number[];
}

export class RecentTraffic {
  private readonly requests = new Uint32Array(TRAFFIC_MINUTES);
  private readonly nanocredits = new Float64Array(TRAFFIC_MINUTES);
  private readonly responseTimes = new Uint32Array(TRAFFIC_MINUTES * BUCKETS);
  private readonly firstTokenTimes = new Uint32Array(TRAFFIC_MINUTES * BUCKETS);
  private minute: number;

  /** `time`: milliseconds since 1970. */
  constructor(private readonly time: () => number = Date.now) {
    this.minute = this.currentMinute();
  }

  add(costNanocredits: bigint, responseMs: number, firstTokenMs: number | null): void {
    const place = this.moveToNow() % TRAFFIC_MINUTES;
    this.requests[place] = (this.requests[place] ?? 0) + 1;
    this.nanocredits[place] = (this.nanocredits[place] ?? 0) + Number(costNanocredits);
    count(this.responseTimes, place, responseMs);
    if (firstTokenMs !== null) count(this.firstTokenTimes, place, firstTokenMs);
  }

  read(): RecentTrafficCounts {
    const now = this.moveToNow();
    const places = Array.from({ length: TRAFFIC_MINUTES }, (_, index) => (now + 1 + index) % TRAFFIC_MINUTES);
    return {
      until: now,
      requests: places.map((place) => this.requests[place] ?? 0),
      nanocredits: places.map((place) => this.nanocredits[place] ?? 0),
      responseTimes: sumOfMinutes(this.responseTimes),
      firstTokenTimes: sumOfMinutes(this.firstTokenTimes),
    };
  }

  /** Empties the minutes since the last call. A clock that was set back starts over. */
  private moveToNow(): number {
    const now = this.currentMinute();
    if (now === this.minute) return now;
    const passed = now < this.minute ? TRAFFIC_MINUTES : Math.min(TRAFFIC_MINUTES, now - this.minute);
    for (let minute = now - passed + 1; minute <= now; minute += 1) this.clear(minute % TRAFFIC_MINUTES);
    this.minute = now;
    return now;
  }

  private clear(place: number): void {
    this.requests[place] = 0;
    this.nanocredits[place] = 0;
    for (const times of [this.responseTimes, this.firstTokenTimes]) times.fill(0, place * BUCKETS, (place + 1) * BUCKETS);
  }

  private currentMinute(): number {
    return Math.floor(this.time() / MINUTE_MS);
  }
}

function count(times: Uint32Array, place: number, milliseconds: number): void {
  const bucket = milliseconds <= 1 ? Math.ceil(milliseconds) : 1 + Math.ceil(Math.log(milliseconds) / LOG_GROWTH);
  const index = place * BUCKETS + Math.min(BUCKETS - 1, Math.max(0, bucket));
  times[index] = (times[index] ?? 0) + 1;
}

function sumOfMinutes(times: Uint32Array): number[] {
  const sums = new Array<number>(BUCKETS).fill(0);
  for (let index = 0; index < times.length; index += 1) {
    const bucket = index % BUCKETS;
    sums[bucket] = (sums[bucket] ?? 0) + (times[index] ?? 0);
  }
  return sums;
}

/** Adds up all processes, to the last minute that all of them report. */
export function addUpTraffic(each: readonly RecentTrafficCounts[]): RecentTrafficCounts {
  const until = least(each.map((one) => one.until));
  const byMinute = (read: (one: RecentTrafficCounts) => readonly number[]) =>
    Array.from({ length: TRAFFIC_MINUTES }, (_, index) => sum(each.map((one) => read(one)[index - (one.until - until)] ?? 0)));
  const byBucket = (read: (one: RecentTrafficCounts) => readonly number[]) =>
    Array.from({ length: BUCKETS }, (_, bucket) => sum(each.map((one) => read(one)[bucket] ?? 0)));
  return {
    until,
    requests: byMinute((one) => one.requests),
    nanocredits: byMinute((one) => one.nanocredits),
    responseTimes: byBucket((one) => one.responseTimes),
    firstTokenTimes: byBucket((one) => one.firstTokenTimes),
  };
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
