/** Counters of rate limits: windows and buckets by name, of one process or shared. They may forget: no money depends on them. */
import { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { entriesMax } from "../lib/bounded.js";
import type { Clock } from "../lib/clock.js";
import { COUNTERS_MAX } from "../limits.js";

/** A limit per window, which starts with the first count. */
export interface WindowRule {
  /** Names are counted separately under each of these. */
  readonly name: string;
  readonly max: number;
  readonly seconds: number;
}

/** A bucket that refills evenly to its capacity, and starts full. Units are whole numbers. */
export interface BucketRule {
  /** At least 0, at most `BUCKET_UNITS_MAX`. */
  readonly capacity: number;
  /** Units refilled per hour, at least 1, at most `BUCKET_PER_HOUR_MAX`. */
  readonly perHour: number;
}

/** Units held for work under way. */
export interface BucketHold {
  /** Units that an earlier call took under this id are given back first. */
  readonly id: string;
  /** Units are given back after this long, as their process may have died. 0: spent. */
  readonly ttlMs: number;
}

export interface Counters {
  /** Counts one. Resolves with 0 within the limit, else with the milliseconds until the window ends. */
  count(rule: WindowRule, name: string): Promise<number>;
  /**
   * Takes `units` if the bucket has at least `needed`, even if that leaves less than zero; with `needed` null takes them in any case.
   * Resolves with 0 when taken, else with the milliseconds until enough is refilled, or may be released where only holds are in the way.
   * Calls take effect in their order, without waiting for the promise.
   */
  take(rule: BucketRule, name: string, units: number, needed: number | null, hold?: BucketHold): Promise<number>;
  close(): void;
}

// Bucket arithmetic in whole numbers, so that frequent reads lose nothing to rounding.

export const HOUR_MS = 3_600_000;
/** Both keep every product below 2^53. */
export const BUCKET_PER_HOUR_MAX = 900_000_000_000_000;
export const BUCKET_UNITS_MAX = 9_000_000_000_000_000;
/** The longest exact refill: 28 days. */
export const REFILL_MS_MAX = 28 * 24 * HOUR_MS;

/** Retry time when only holds are in the way. */
export const HELD_RETRY_MS = 1_000;

interface Bucket {
  /** Without holds. */
  level: number;
  /** The refilled fraction of a unit, in 1/3,600,000. */
  carry: number;
  /** Time in milliseconds of the two above. */
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

/** As `Counters.take`, for a bucket refilled until now. */
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

/** Holds of a bucket, by id. */
class BucketHolds {
  /** In all. */
  units = 0;
  private readonly byId = new Map<string, { readonly units: number; readonly expiresAt: number }>();
  private nextExpiry = Number.POSITIVE_INFINITY;

  begin(id: string, units: number, expiresAt: number): void {
    this.byId.set(id, { units, expiresAt });
    this.units += units;
    this.nextExpiry = Math.min(this.nextExpiry, expiresAt);
  }

  /** Units to give back; 0 for an unknown hold. */
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

// Counters of one process, bounded in number: the least recently used are evicted.

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

  /** Names remembered per window rule. */
  get windowSize(): number {
    return [...this.windows.values()].reduce((sum, { size }) => sum + size, 0);
  }

  close(): void {
    for (const window of this.windows.values()) window.clear();
    this.buckets.clear();
  }
}

/** The library drops a name when its window ends; the list beside it bounds their number until then. */
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

  /** Of the library's own memory, which the list is to bound. */
  get size(): number {
    return Object.keys(this.limiter.dump().storage).length;
  }

  clear(): void {
    this.names.clear();
  }
}

/** The library rejects with its result over the limit, and with an Error when it could not count. */
export async function toWait(counted: Promise<RateLimiterRes>): Promise<number> {
  try {
    await counted;
    return 0;
  } catch (finding) {
    if (finding instanceof RateLimiterRes) return Math.max(1, finding.msBeforeNext);
    throw finding;
  }
}
