/** Limits of who may ask how often (docs/spec/rate-limits.md). */

/** An address without a good key is counted in windows of this length. */
export const ANONYMOUS_WINDOW_SECONDS = 10;
/** A publishable key at one address is counted in windows of this length. */
export const PUBLISHABLE_WINDOW_SECONDS = 60;
/** Hours' worth of credits that a publishable key's bucket holds. */
export const PUBLISHABLE_BURST_HOURS = 10;
/** Unspecified: how much longer than its generation may take a hold of hourly credits stands, for the charge to be committed. */
export const HOURLY_HOLD_MORE_MS = 60_000;
/** Unspecified: WebSockets and subscriptions over server-sent events; room for a fleet of servers that share a key or an address. */
export const LIVE_CONNECTIONS_PER_KEY_MAX = 100;
export const LIVE_CONNECTIONS_PER_ADDRESS_MAX = 100;
