/** Limits of the blob store. */

/** S3: connections at once; more requests than that wait. Downloads hold theirs as long as their readers take. */
export const S3_CONNECTIONS_MAX = 256;
export const S3_CONNECT_TIMEOUT_MS = 3_000;
/** S3: no byte in either direction for that long. A reader who takes nothing for a minute has gone by then. */
export const S3_IDLE_TIMEOUT_MS = 65_000;
/** S3: how often a request is tried in all. */
export const S3_ATTEMPTS_MAX = 3;
/** S3: before the first repetition of an upload; doubled for each further one. */
export const S3_RETRY_DELAY_MS = 200;
/** S3: how soon a caller should try again when the store does not answer. */
export const S3_RETRY_AFTER_SECONDS = 5;
