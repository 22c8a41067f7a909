/** Limits of webhooks and low-balance notices. All unspecified. */

export const WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX = 10;

/** Delay after each failed attempt. After the last one the delivery has failed, some seven hours later. */
export const WEBHOOK_RETRY_DELAYS_MS: readonly number[] = [5_000, 30_000, 2 * 60_000, 10 * 60_000, 60 * 60_000, 6 * 60 * 60_000];
/** From connecting to the last byte that is read. */
export const WEBHOOK_TIMEOUT_MS = 10_000;
/** Bytes read of an answer's body so that the connection can be reused; only the status matters. */
export const WEBHOOK_ANSWER_BYTES_MAX = 16 * 1024;
/** An attempt without a result for this long belongs to a dead process, and is retried by another one. Longer than any attempt. */
export const WEBHOOK_LEASE_MS = 60_000;
/** Concurrent attempts of one process, and those to one host. */
export const WEBHOOK_TRIES_AT_ONCE_MAX = 32;
export const WEBHOOK_TRIES_PER_HOST_MAX = 4;
/** Interval of looks for retries and for deliveries of other processes. */
export const WEBHOOK_POLL_MS = 2_000;
/** Delay of the next look when other processes were faster. */
export const WEBHOOK_CONTENDED_MS = 50;
/** How long a stopping gateway waits for attempts under way. Aborted ones are repeated elsewhere. */
export const WEBHOOK_DRAIN_MS = 2_000;

/** An endpoint is disabled when every attempt has failed for this long. */
export const WEBHOOK_FAILING_DAYS_MAX = 3;
/** How long the log keeps finished deliveries. */
export const WEBHOOK_LOG_DAYS = 30;
export const WEBHOOK_SWEEP_MS = 60 * 60_000;
export const WEBHOOK_SWEPT_AT_ONCE_MAX = 5_000;

/** Standard Webhooks: a secret has 24 to 64 bytes. */
export const WEBHOOK_SECRET_BYTES = 32;
/** How long messages are also signed with the previous secret after a rotation. */
export const WEBHOOK_PREVIOUS_SECRET_HOURS = 24;
/** Between two test events to one endpoint. */
export const WEBHOOK_TEST_INTERVAL_MS = 5_000;

/** How long noticed events gather before they are queued together. */
export const WEBHOOK_NOTICE_MS = 20;
/** Noticed events in memory; beyond it the oldest are left to catching up. */
export const WEBHOOK_NOTICED_MAX = 10_000;
export const WEBHOOK_QUEUED_AT_ONCE_MAX = 500;
/** Interval of catching up, and its overlap with the run before: charges are written a moment after their timestamp. */
export const WEBHOOK_CATCH_UP_MS = 30_000;
export const WEBHOOK_CATCH_UP_OVERLAP_MS = 60_000;
/** How far a starting process looks back at least: it may have committed charges spooled during a database outage. */
export const WEBHOOK_CATCH_UP_START_MS = 60 * 60_000;
/** Catching up goes back no further than this. */
export const WEBHOOK_CATCH_UP_DAYS_MAX = 3;
/** Interval at which a process rereads the listeners, in case it missed an event. */
export const WEBHOOK_LISTENERS_REFRESH_MS = 60_000;

/** How long balance changes gather before a look, and the interval of looks without changes. */
export const LOW_BALANCE_LOOK_MS = 200;
export const LOW_BALANCE_SWEEP_MS = 10_000;
export const LOW_BALANCES_AT_ONCE_MAX = 100;
