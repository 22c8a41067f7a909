/** Limits of the blob store. */

/**
 * S3: concurrent connections, for downloads and for everything else; further requests wait. Downloads hold theirs as long as their readers
 * take.
 */
export const S3_CONNECTIONS_MAX = 256;
/** S3: longest time without a byte in either direction. A reader that takes nothing for a minute was disconnected by then. */
export const S3_IDLE_TIMEOUT_MS = 65_000;
/** S3: attempts of a request after refusals or broken connections. */
export const S3_ATTEMPTS_MAX = 3;
/** S3: delay before the first retry of an upload; doubled for each further one. */
export const S3_RETRY_DELAY_MS = 200;
/** S3: retry time for callers when the store does not answer. */
export const S3_RETRY_AFTER_SECONDS = 5;
/**
 * S3: longest silence of the store in all attempts together, while connecting, for the first byte of an answer, for the next byte of a
 * download, or for taking more of an upload. With the content cache's waits it stays below the 6 s that a caller may be held.
 */
export const S3_SILENCE_MS = 4_000;
/** S3: attempts within that time, because a connection may have been dropped on the way. An upload has one. */
export const S3_SILENT_ATTEMPTS = 2;
/** S3: the same at the start, when credentials may have to be fetched first. */
export const S3_START_SILENCE_MS = 15_000;
/** S3: interval of probing a silent store; until it answers, callers are refused at once. */
export const S3_PROBE_MS = 500;
