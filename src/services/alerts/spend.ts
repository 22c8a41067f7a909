/** Spend that is unusual for the hour and weekday: the median and the median absolute deviation of the past weeks. */
import { SPEND_DEVIATIONS } from "./limits.js";

/** Nanocredits. */
export interface Judgement {
  readonly isUnusual: boolean;
  /** The median. */
  readonly usual: bigint;
}

/**
 * Judges the spend of an hour by that of comparable hours, in nanocredits. Unusual is more than twice the median and more than its
 * deviations above it: one past hour of any size changes neither. Below `minimum` nothing is unusual.
 */
export function judgeSpend(spent: bigint, comparable: readonly bigint[], minimum: bigint): Judgement {
  const usual = median(comparable);
  const deviation = median(comparable.map((value) => (value > usual ? value - usual : usual - value)));
  const spread = SPEND_DEVIATIONS * deviation;
  const threshold = usual + (spread > usual ? spread : usual);
  return { isUnusual: comparable.length > 0 && spent >= minimum && spent > threshold, usual };
}

/** The lower one of two in the middle; 0 of none. */
function median(values: readonly bigint[]): bigint {
  const sorted = [...values].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0n;
}
