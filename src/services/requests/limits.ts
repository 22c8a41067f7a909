/** Limits of the bodies of requests while they are on their way and at work. */

/** Unspecified: each one's part of REQUEST_BODIES_BYTES is one of so many: an account, a client address, the publishable keys of an account, one of them at one address, all who have no key, one of them at one address. */
export const ACCOUNT_BODIES_PART = 4;
export const ADDRESS_BODIES_PART = 2;
export const PUBLISHABLE_BODIES_PART = 8;
export const PUBLISHABLE_ADDRESS_BODIES_PART = 16;
export const ANONYMOUS_BODIES_PART = 8;
export const ANONYMOUS_ADDRESS_BODIES_PART = 64;

/** Unspecified: a body of whoever has only a publishable key, forms with files aside; some pictures as data URLs. */
export const PUBLISHABLE_BODY_BYTES_MAX = 8 * 1024 * 1024;
/** Unspecified: a body of whoever has no key. */
export const ANONYMOUS_BODY_BYTES_MAX = 100 * 1024;

/** Unspecified: a body may be silent for so long at its beginning, and then comes at this rate at least, taken over all of it. */
export const BODY_GRACE_MS = 10_000;
export const BODY_BYTES_PER_SECOND_MIN = 16 * 1024;
/** How often slow bodies are looked for. */
export const BODY_PACE_LOOK_MS = 1_000;

/** Unspecified: a document that clients register under its digest; one as long as 2,000 tokens usually are stays below. */
export const DOCUMENT_BYTES_MAX = 32 * 1024;
/** Unspecified: documents that one caller registers within the time that they are kept; at their longest a quarter of what a process keeps. */
export const DOCUMENTS_PER_CALLER_MAX = 500;
