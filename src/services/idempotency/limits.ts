/**
 * Unspecified: of a larger answer, or a stream with more events, only the receipt is kept. Answers are in the database, so every process
 * can replay them.
 */
export const IDEMPOTENT_ANSWER_BYTES_MAX = 1024 * 1024;
/** Unspecified: quota counted for an answer's row and headers, beside its body. */
export const IDEMPOTENT_ANSWER_OVERHEAD_BYTES = 1024;
/** Unspecified: the greatest age of an account's storage usage when an answer is stored. */
export const ANSWER_ROOM_READ_MS = 30_000;
