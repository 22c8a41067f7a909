/** Limits of who may ask how often (docs/spec/rate-limits.md). */

/** An address without a good key is counted in windows of this length. */
export const ANONYMOUS_WINDOW_SECONDS = 10;
/** A publishable key at one address is counted in windows of this length. */
export const PUBLISHABLE_WINDOW_SECONDS = 60;
/** Hours' worth of credits that a publishable key's bucket holds. */
export const PUBLISHABLE_BURST_HOURS = 10;
/** Unspecified: how much longer than its generation may take a hold of hourly credits stands, for the charge to be committed. */
export const HOURLY_HOLD_MORE_MS = 60_000;
