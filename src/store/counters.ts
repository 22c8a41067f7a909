/**
 * Counters behind the rate limits: windows and buckets by name, of one process or shared by many. They may forget: no money
 * depends on them.
 */
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
