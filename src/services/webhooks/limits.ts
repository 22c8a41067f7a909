/** Numbers that bound webhooks and the telling of low balances. All unspecified. */

export const WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX = 10;

/** After each try that failed: how long until the next. After the last of them the delivery has failed, some seven hours later. */
export const WEBHOOK_RETRY_DELAYS_MS: readonly number[] = [5_000, 30_000, 2 * 60_000, 10 * 60_000, 60 * 60_000, 6 * 60 * 60_000];
/** From the first connection to the last byte of the answer that is read. */
export const WEBHOOK_TIMEOUT_MS = 10_000;
/** Of an answer only the status matters; so much of its body is read, so that the connection can be used again. */
export const WEBHOOK_ANSWER_BYTES_MAX = 16 * 1024;
/** A process that has not told within this time how a try went counts as dead, and another one tries. Longer than any try. */
export const WEBHOOK_LEASE_MS = 60_000;
/** Tries at the same time in one process, and to one host of that. */
export const WEBHOOK_TRIES_AT_ONCE_MAX = 32;
export const WEBHOOK_TRIES_PER_HOST_MAX = 4;
/** How often the queue is looked at for what is due again, and for what other processes have left. */
export const WEBHOOK_POLL_MS = 2_000;
/** How soon it is looked again when other processes were faster. */
export const WEBHOOK_CONTENDED_MS = 50;
/** How long a gateway that stops waits for tries that are under way. Those that are cut off are begun anew elsewhere. */
export const WEBHOOK_DRAIN_MS = 2_000;

/** An endpoint at which every try has failed for so long is disabled. */
export const WEBHOOK_FAILING_DAYS_MAX = 3;
/** How long the delivery log keeps what has been delivered or has failed. */
export const WEBHOOK_LOG_DAYS = 30;
export const WEBHOOK_SWEEP_MS = 60 * 60_000;
export const WEBHOOK_SWEPT_AT_ONCE_MAX = 5_000;

/** Standard Webhooks: a secret has 24 to 64 bytes. */
export const WEBHOOK_SECRET_BYTES = 32;
/** After a rotation messages are signed with the secret before it too. */
export const WEBHOOK_PREVIOUS_SECRET_HOURS = 24;
/** Between two test events to one endpoint. */
export const WEBHOOK_TEST_INTERVAL_MS = 5_000;

/** How long what was noticed gathers before it is queued together. */
export const WEBHOOK_NOTICE_MS = 20;
/** Noticed and not queued yet; of more the oldest are left to the catching up. */
export const WEBHOOK_NOTICED_MAX = 10_000;
export const WEBHOOK_QUEUED_AT_ONCE_MAX = 500;
/** How often what nobody has queued is looked for, and how much further back than the last time: charges are written a moment after the time that they bear. */
export const WEBHOOK_CATCH_UP_MS = 30_000;
export const WEBHOOK_CATCH_UP_OVERLAP_MS = 60_000;
/** A process that starts looks back so far at least: it may have committed charges that were spooled while the database was away. */
export const WEBHOOK_CATCH_UP_START_MS = 60 * 60_000;
/** What is older than that is not caught up with, however long no process ran. */
export const WEBHOOK_CATCH_UP_DAYS_MAX = 3;
/** How often a process reads anew who listens, in case it missed that somebody has begun or ended to. */
export const WEBHOOK_LISTENERS_REFRESH_MS = 60_000;

/** How long changes of balances gather before it is looked which of them fell too low, and how often that is looked at without any. */
export const LOW_BALANCE_LOOK_MS = 200;
export const LOW_BALANCE_SWEEP_MS = 10_000;
export const LOW_BALANCES_AT_ONCE_MAX = 100;
