/** Limits of answers that are kept for an Idempotency-Key. */

/** Idempotency-Key (docs/spec/generation.md#idempotency). */
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;
export const IDEMPOTENCY_HOURS = 24;
/** Idempotency-Key, unspecified: of a larger answer, or a stream with more events, only the receipt is kept. Every process can replay what is kept, for it is in the database. */
export const IDEMPOTENT_ANSWER_BYTES_MAX = 1024 * 1024;
/** Idempotency-Key, unspecified: what a kept answer counts for in its account's quota beside its body: its row and headers. */
export const IDEMPOTENT_ANSWER_OVERHEAD_BYTES = 1024;
/** Idempotency-Key, unspecified: how old what is known of an account's storage may be when its answers are kept. */
export const ANSWER_ROOM_READ_MS = 30_000;
