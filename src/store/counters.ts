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

/** What was taken for something that is under way. */
export interface BucketHold {
  /** What an earlier call has taken under this id is given back first. */
  readonly id: string;
  /** The units are given back by themselves after so long: the process that took them may have died. 0: they are spent. */
  readonly ttlMs: number;
}

export interface Counters {
  /** Counts one. Resolves with 0 when the window holds it, else with the milliseconds until the window is over. */
  count(rule: WindowRule, name: string): Promise<number>;
  /**
   * Takes `units` if the bucket has `needed` or more, although less than zero may be left; `needed` null takes them in any case.
   * Resolves with 0 when they were taken, else with the milliseconds until the bucket has what is needed, or until it may have it where
   * only holds stand in the way. Calls are reckoned in their order, without waiting for the promise.
   */
  take(rule: BucketRule, name: string, units: number, needed: number | null, hold?: BucketHold): Promise<number>;
  close(): void;
}

// The arithmetic of a bucket, in whole numbers: nothing is lost to rounding, however often it is looked at.

export const HOUR_MS = 3_600_000;
/** Both keep every product below 2^53. */
export const BUCKET_PER_HOUR_MAX = 900_000_000_000_000;
export const BUCKET_UNITS_MAX = 9_000_000_000_000_000;
/** As long as a refill is reckoned exactly: 28 days. */
export const REFILL_MS_MAX = 28 * 24 * HOUR_MS;

/** A bucket lacks what its holds hold: who has to wait for one of them tries again after so long. */
export const HELD_RETRY_MS = 1_000;

interface Bucket {
  /** Without what is held. */
  level: number;
  /** What has come back and is not yet a unit, in units of 1/3,600,000. */
  carry: number;
  /** Milliseconds at which the two above were right. */
  at: number;
  /** Made with the first hold. */
  holds?: BucketHolds;
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

/** As `Counters.take`, of a bucket that has been refilled until now. */
export function take(bucket: Bucket, rule: BucketRule, units: number, needed: number | null, hold?: BucketHold): number {
  const { holds, at } = bucket;
  if (holds) giveBack(bucket, rule, holds.endExpired(at) + (hold ? holds.end(hold.id) : 0));
  if (needed !== null && bucket.level < needed) {
    const wait = Math.ceil(((needed - bucket.level) * HOUR_MS) / rule.perHour);
    return holds && bucket.level + holds.units >= needed ? Math.min(wait, HELD_RETRY_MS) : wait;
  }
  const left = Math.max(-BUCKET_UNITS_MAX, bucket.level - units);
  if (hold && hold.ttlMs > 0) {
    bucket.holds ??= new BucketHolds();
    bucket.holds.begin(hold.id, bucket.level - left, at + hold.ttlMs);
  }
  bucket.level = left;
  return 0;
}

function giveBack(bucket: Bucket, rule: BucketRule, units: number): void {
  bucket.level = Math.min(rule.capacity, bucket.level + units);
}

/** What is held of a bucket, by the id of each hold. */
class BucketHolds {
  /** In all. */
  units = 0;
  private readonly byId = new Map<string, { readonly units: number; readonly expiresAt: number }>();
  /** Nothing expires sooner. */
  private nextExpiry = Number.POSITIVE_INFINITY;

  begin(id: string, units: number, expiresAt: number): void {
    this.byId.set(id, { units, expiresAt });
    this.units += units;
    this.nextExpiry = Math.min(this.nextExpiry, expiresAt);
  }

  /** Units to give back: 0 for a hold that is unknown. */
  end(id: string): number {
    const { units = 0 } = this.byId.get(id) ?? {};
    this.byId.delete(id);
    this.units -= units;
    return units;
  }

  /** Units to give back. */
  endExpired(now: number): number {
    if (now < this.nextExpiry) return 0;
    let units = 0;
    this.nextExpiry = Number.POSITIVE_INFINITY;
    for (const [id, { expiresAt }] of this.byId) {
      if (expiresAt <= now) units += this.end(id);
      else this.nextExpiry = Math.min(this.nextExpiry, expiresAt);
    }
    return units;
  }
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

  async take(rule: BucketRule, name: string, units: number, needed: number | null, hold?: BucketHold): Promise<number> {
    const now = this.clock.now().getTime();
    let bucket = this.buckets.get(name);
    if (!bucket) {
      bucket = fullBucket(rule, now);
      this.buckets.set(name, bucket);
    }
    refill(bucket, rule, now);
    return take(bucket, rule, units, needed, hold);
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
