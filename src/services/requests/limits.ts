/** Limits of request bodies while they arrive and are processed. */

/**
 * Unspecified: each share is this fraction of REQUEST_BODIES_BYTES: an account, a client address, an account's publishable keys, one of
 * them at one address, all anonymous callers, one of them at one address.
 */
export const ACCOUNT_BODIES_PART = 4;
export const ADDRESS_BODIES_PART = 2;
export const PUBLISHABLE_BODIES_PART = 8;
export const PUBLISHABLE_ADDRESS_BODIES_PART = 16;
export const ANONYMOUS_BODIES_PART = 8;
export const ANONYMOUS_ADDRESS_BODIES_PART = 64;

/** Unspecified: a body with a publishable key, forms with files aside; room for some images as data URLs. */
export const PUBLISHABLE_BODY_BYTES_MAX = 8 * 1024 * 1024;
/** Unspecified: a body of an anonymous caller. */
export const ANONYMOUS_BODY_BYTES_MAX = 100 * 1024;

/** Unspecified: a body may send nothing this long at its beginning, and then needs this average rate. */
export const BODY_GRACE_MS = 10_000;
export const BODY_BYTES_PER_SECOND_MIN = 16 * 1024;
/** Interval of looks for slow bodies. */
export const BODY_PACE_LOOK_MS = 1_000;

/** Unspecified: a registered document; one of the usual 2,000 tokens is shorter. */
export const DOCUMENT_BYTES_MAX = 32 * 1024;
/** Unspecified: documents that a caller registers within their lifetime; at full length a quarter of a process's room. */
export const DOCUMENTS_PER_CALLER_MAX = 500;

/** Idempotency-Key (docs/spec/generation.md#idempotency). */
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;
export const IDEMPOTENCY_HOURS = 24;
