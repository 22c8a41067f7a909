/** The arithmetic of a bucket, in whole numbers: nothing is lost to rounding, however often it is looked at. */
import type { BucketRule } from "../counters.js";

export const HOUR_MS = 3_600_000;
/** Both keep every product below 2^53. */
export const BUCKET_PER_HOUR_MAX = 900_000_000_000_000;
export const BUCKET_UNITS_MAX = 9_000_000_000_000_000;
/** As long as a refill is reckoned exactly: 28 days. */
export const REFILL_MS_MAX = 28 * 24 * HOUR_MS;

export interface Bucket {
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
