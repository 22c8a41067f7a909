/** Limits of the blob store. */

/** S3: connections at once, for downloads and for all else; more requests than that wait. Downloads hold theirs as long as their readers take. */
export const S3_CONNECTIONS_MAX = 256;
/** S3: no byte in either direction for that long. A reader who takes nothing for a minute has gone by then. */
export const S3_IDLE_TIMEOUT_MS = 65_000;
/** S3: how often a request is tried in all that the store refuses, or whose connection breaks. */
export const S3_ATTEMPTS_MAX = 3;
/** S3: before the first repetition of an upload; doubled for each further one. */
export const S3_RETRY_DELAY_MS = 200;
/** S3: how soon a caller should try again when the store does not answer. */
export const S3_RETRY_AFTER_SECONDS = 5;
/**
 * S3: how long the store may be silent, in all attempts together, while it is waited for: to connect, for the first byte of an answer, for the
 * next byte of a download, or to take more of an upload. With what the content cache waits it stays below the 6 s that a caller may be held.
 */
export const S3_SILENCE_MS = 4_000;
/** S3: attempts that share that time, because a connection may have been dropped on the way. An upload has one. */
export const S3_SILENT_ATTEMPTS = 2;
/** S3: the same at the start, when credentials may have to be fetched first. */
export const S3_START_SILENCE_MS = 15_000;
/** S3: how often a store that has fallen silent is asked whether it is back; until then its callers are refused at once. */
export const S3_PROBE_MS = 500;
