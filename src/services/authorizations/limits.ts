/** Limits of the redirect flow and of the device flow (RFC 8628). */

/** Unspecified: a client id. The longest is a registration's, which holds its name and redirect addresses. */
export const CLIENT_ID_CHARS_MAX = 4_096;
/** Echoed unchanged (docs/spec/authorization.md#redirect-flow). */
export const STATE_CHARS_MAX = 512;

/** RFC 8707: the address that a key is for. */
export const RESOURCE_CHARS_MAX = 2_048;

// Clients that describe themselves (docs/decisions/clients-that-register.md).

/** Unspecified: of a client's name; pages show the first 60 characters. */
export const CLIENT_NAME_CHARS_MAX = 100;
/** Unspecified: per client. */
export const CLIENT_REDIRECT_URLS_MAX = 10;
/** Unspecified: of all of a registration's addresses together, because its client id holds them and travels in addresses. */
export const CLIENT_REDIRECT_URLS_CHARS_MAX = 1_500;
/** Unspecified: lifetime of a registration. A key lives for 365 days at most, and the client then signs in again with the same id. */
export const CLIENT_REGISTRATION_DAYS = 400;
/** Unspecified: registrations of one client address, at once and per hour. Several people may share an address. */
export const CLIENT_REGISTRATIONS_BURST = 30;
export const CLIENT_REGISTRATIONS_PER_HOUR = 60;

/** The draft recommends 5 KB at most; published documents list many redirect addresses. */
export const CLIENT_DOCUMENT_BYTES_MAX = 16 * 1024;
export const CLIENT_DOCUMENT_TIMEOUT_MS = 5_000;
/** Unspecified: a changed document counts after this time. */
export const CLIENT_DOCUMENT_CACHE_MS = 10 * 60_000;
/** Unspecified: a document that could not be read is not asked for again for this long. */
export const CLIENT_DOCUMENT_FAILURE_CACHE_MS = 10_000;
export const CLIENT_DOCUMENTS_CACHED_MAX = 500;
/** Unspecified: documents that are not cached, for one client address. */
export const CLIENT_DOCUMENTS_BURST = 20;
export const CLIENT_DOCUMENTS_PER_HOUR = 120;
/** Unspecified: documents that are being read at the same time, of all clients. */
export const CLIENT_DOCUMENTS_AT_ONCE_MAX = 16;

/** Unspecified: lifetime of a request that a consent page shows. */
export const AUTHORIZATION_REQUEST_MINUTES = 60;
/** Unspecified: per session; the oldest beyond it are deleted. */
export const AUTHORIZATION_REQUESTS_OPEN_MAX = 50;
/** See docs/spec/authorization.md#redirect-flow. */
export const AUTHORIZATION_CODE_SECONDS = 10 * 60;
/** Unspecified: wrong verifiers, redirects or clients before a code ends. */
export const AUTHORIZATION_CODE_ATTEMPTS_MAX = 5;
/** Unspecified: a used code is kept this long, so that a second use still revokes its key. */
export const AUTHORIZATION_CODE_KEPT_HOURS = 24;

export const DEVICE_CODE_SECONDS = 30 * 60;
/** First interval between two polls. */
export const DEVICE_POLL_SECONDS = 5;
/** Added to the interval by each poll that comes too soon (RFC 8628 3.5). */
export const DEVICE_SLOW_DOWN_SECONDS = 5;
/** Unspecified: a poll may come this much too soon, because timers and networks are inexact. */
export const DEVICE_POLL_TOLERANCE_MS = 500;

/** Codes that are undecided, or whose key was not fetched (docs/spec/authorization.md#redirect-urls). */
export const LIVE_DEVICE_CODES_PER_ADDRESS_MAX = 20;
export const LIVE_DEVICE_CODES_MAX = 10_000;
/** Unspecified: for this long a device code is reported as expired; then it is unknown. */
export const EXPIRED_DEVICE_CODE_KEPT_SECONDS = 60 * 60;
export const DEVICE_CODES_SWEPT_AT_ONCE_MAX = 1_000;

/** Wrong user codes per account (docs/spec/authorization.md#device-flow). */
export const USER_CODE_GUESSES_PER_MINUTE = 10;
/** Unspecified: per client address, which several people may share. */
export const USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE = 50;

/** A device code has 43 characters, an app key 25; longer text is not read. */
export const DEVICE_FIELD_CHARS_MAX = 512;
