/** Numbers that bound what is kept on the disk and for how long; the other half of `limits.ts`. */

/** Media, spec 8, variant A: 10 MB, binary (decisions "Media"). */
export const MEDIA_UPLOAD_BYTES_MAX = 10 * 1024 * 1024;
/** Media, spec 8: from the last upload. */
export const MEDIA_FILE_DAYS = 14;
/** Media, unspecified: a file's display name. */
export const MEDIA_NAME_CHARS_MAX = 255;

/** Content cache, unspecified: what it may take of the disk, and one answer of that. */
export const CONTENT_CACHE_BYTES_MAX = 2 * 1024 * 1024 * 1024;
export const CONTENT_CACHE_ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Content cache, unspecified: models change behind their names, so nothing is answered for ever. */
export const CONTENT_CACHE_HOURS = 24 * 7;
/** Content cache, unspecified: how often the last use of answers is written down. A crash forgets that much of their order. */
export const CONTENT_CACHE_NOTE_MS = 5_000;

/** Idempotency-Key, decisions "What is billed". */
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;
export const IDEMPOTENCY_HOURS = 24;
/** Idempotency-Key, unspecified: of a larger answer, or a stream with more events, only the receipt is kept. Every process can replay what is kept, for it is in the database. */
export const IDEMPOTENT_ANSWER_BYTES_MAX = 1024 * 1024;
/** Idempotency-Key, unspecified: what a kept answer counts for in its account's quota beside its body: its row and headers. */
export const IDEMPOTENT_ANSWER_OVERHEAD_BYTES = 1024;
/** Idempotency-Key, unspecified: how old what is known of an account's storage may be when its answers are kept. */
export const ANSWER_ROOM_READ_MS = 30_000;

/** Disk: how often what has expired is removed, and how often blobs that nobody knows of are looked for. */
export const EXPIRY_SWEEP_MS = 5 * 60 * 1000;
export const ORPHAN_SWEEP_MS = 60 * 60 * 1000;
/** Disk: a blob is written before the row that names it; one that is older than that and unnamed is an orphan. */
export const ORPHAN_AGE_MS = 60 * 60 * 1000;
