/**
 * Counters behind the rate limits: windows and buckets by name, of one process or shared by many. They may forget: no money
 * depends on them.
 */
import { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { entriesMax } from "../lib/bounded.js";
import type { Clock } from "../lib/clock.js";
import { COUNTERS_MAX } from "../limits.js";

/** So many in so long, counted from the first. */
export interface WindowRule {
  /** Names are counted apart under each of these. */
  readonly name: string;
  readonly max: number;
  readonly seconds: number;
}

/** A store that refills evenly up to its capacity, and starts full. Units are whole numbers. */
export interface BucketRule {
  /** Of 0 or more, at most `BUCKET_UNITS_MAX`. */
  readonly capacity: number;
  /** Units that come back in an hour, of 1 or more, at most `BUCKET_PER_HOUR_MAX`. */
  readonly perHour: number;
}

export interface Counters {
  /** Counts one. Resolves with 0 when the window holds it, else with the milliseconds until the window is over. */
  count(rule: WindowRule, name: string): Promise<number>;
  /**
   * Takes `units` if the bucket holds `needed` or more, whatever may be left below zero; `needed` null takes them in any case.
   * Resolves with 0 when they were taken, else with the milliseconds until the bucket holds what is needed. What is asked for
   * later is reckoned later, without waiting for the promise.
   */
  take(rule: BucketRule, name: string, units: number, needed: number | null): Promise<number>;
  close(): void;
}

// The arithmetic of a bucket, in whole numbers: nothing is lost to rounding, however often it is looked at.

export const HOUR_MS = 3_600_000;
/** Both keep every product below 2^53. */
export const BUCKET_PER_HOUR_MAX = 900_000_000_000_000;
export const BUCKET_UNITS_MAX = 9_000_000_000_000_000;
/** As long as a refill is reckoned exactly: 28 days. */
export const REFILL_MS_MAX = 28 * 24 * HOUR_MS;

interface Bucket {
  level: number;
  /** What has come back and is not yet a unit, in units of 1/3,600,000. */
  carry: number;
  /** Milliseconds at which the two above were right. */
  at: number;
}

export function fullBucket(rule: BucketRule, now: number): Bucket {
  return { level: rule.capacity, carry: 0, at: now };
}

/** A clock that went back refills nothing until it has caught up. */
export function refill(bucket: Bucket, rule: BucketRule, now: number): void {
  const elapsed = Math.min(Math.max(0, now - bucket.at), REFILL_MS_MAX);
  const whole = Math.floor(rule.perHour / HOUR_MS);
  const parts = elapsed * (rule.perHour - whole * HOUR_MS) + bucket.carry;
  const back = Math.floor(parts / HOUR_MS);
  bucket.level = Math.min(rule.capacity, bucket.level + elapsed * whole + back);
  bucket.carry = bucket.level === rule.capacity ? 0 : parts - back * HOUR_MS;
  bucket.at = Math.max(bucket.at, now);
}

/** As `Counters.take`. */
export function take(bucket: Bucket, rule: BucketRule, units: number, needed: number | null): number {
  if (needed !== null && bucket.level < needed) return Math.ceil(((needed - bucket.level) * HOUR_MS) / rule.perHour);
  bucket.level = Math.max(-BUCKET_UNITS_MAX, bucket.level - units);
  return 0;
}

// Counters of one process, bounded in number: the one that was not asked for longest goes first.

export class MemoryCounters implements Counters {
  private readonly windows = new Map<string, MemoryWindow>();
  private readonly buckets = new LRUCache<string, Bucket>(entriesMax(COUNTERS_MAX));

  constructor(private readonly clock: Clock) {}

  count(rule: WindowRule, name: string): Promise<number> {
    let window = this.windows.get(rule.name);
    if (!window) {
      window = new MemoryWindow(rule);
      this.windows.set(rule.name, window);
    }
    return window.count(name);
  }

  async take(rule: BucketRule, name: string, units: number, needed: number | null): Promise<number> {
    const now = this.clock.now().getTime();
    let bucket = this.buckets.get(name);
    if (!bucket) {
      bucket = fullBucket(rule, now);
      this.buckets.set(name, bucket);
    }
    refill(bucket, rule, now);
    return take(bucket, rule, units, needed);
  }

  /** How many names are remembered of each window, in all. */
  get windowSize(): number {
    return [...this.windows.values()].reduce((sum, { size }) => sum + size, 0);
  }

  close(): void {
    for (const window of this.windows.values()) window.clear();
    this.buckets.clear();
  }
}

/** The library forgets a name when its window is over; the list beside it bounds how many there are until then. */
class MemoryWindow {
  private readonly limiter: RateLimiterMemory;
  private readonly names = new LRUCache<string, true>({
    ...entriesMax(COUNTERS_MAX),
    dispose: (_, name, reason) => {
      if (reason !== "set") void this.limiter.delete(name);
    },
  });

  constructor({ name, max, seconds }: WindowRule) {
    this.limiter = new RateLimiterMemory({ keyPrefix: name, points: max, duration: seconds });
  }

  count(name: string): Promise<number> {
    this.names.set(name, true);
    return toWait(this.limiter.consume(name));
  }

  /** Of the library's own memory: the list beside it is to bound that. */
  get size(): number {
    return Object.keys(this.limiter.dump().storage).length;
  }

  clear(): void {
    this.names.clear();
  }
}

/** The library rejects with its findings when there were too many, and with an Error when it could not count. */
export async function toWait(counted: Promise<RateLimiterRes>): Promise<number> {
  try {
    await counted;
    return 0;
  } catch (finding) {
    if (finding instanceof RateLimiterRes) return Math.max(1, finding.msBeforeNext);
    throw finding;
  }
}
