/** Rate limits by caller (docs/spec/rate-limits.md). */

/** Window of requests of one address without a good key. */
export const ANONYMOUS_WINDOW_SECONDS = 10;
/** Window of requests of a publishable key at one address. */
export const PUBLISHABLE_WINDOW_SECONDS = 60;
/** Capacity of a publishable key's bucket, in hours' worth of credits. */
export const PUBLISHABLE_BURST_HOURS = 10;
/** Unspecified: a hold of hourly credits outlasts its generation's limit by this much, for the charge to commit. */
export const HOURLY_HOLD_MORE_MS = 60_000;
/** Unspecified: WebSockets and SSE subscriptions; room for a fleet of servers that share a key or an address. */
export const LIVE_CONNECTIONS_PER_KEY_MAX = 100;
export const LIVE_CONNECTIONS_PER_ADDRESS_MAX = 100;
/** Unspecified: accounts that a process remembers as suspended, for callers that it authenticated just before. */
export const SUSPENDED_ACCOUNTS_MAX = 10_000;
