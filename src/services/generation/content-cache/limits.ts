/** Limits of the content cache. */

/** Content cache, unspecified: what it may take of the disk, and one answer of that. */
export const CONTENT_CACHE_BYTES_MAX = 2 * 1024 * 1024 * 1024;
export const CONTENT_CACHE_ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Content cache, unspecified: models change behind their names, so nothing is answered for ever. */
export const CONTENT_CACHE_HOURS = 24 * 7;
/** Content cache, unspecified: how often the last use of answers is written down. A crash forgets that much of their order. */
export const CONTENT_CACHE_NOTE_MS = 5_000;
