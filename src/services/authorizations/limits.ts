/** Limits of the flows in which a person lets an app spend: the redirect flow, the device flow (RFC 8628), and what both share. */

/** An app key has 25; more than these is read by nobody. */
export const APP_KEY_CHARS_MAX = 256;
/** Echoed as it came (docs/spec/authorization.md#redirect-flow). */
export const STATE_CHARS_MAX = 512;

/** Unspecified: how long a consent page may be looked at before it has to be asked for anew. */
export const AUTHORIZATION_REQUEST_MINUTES = 60;
/** Unspecified: of one session; when there are more, the oldest are forgotten. */
export const AUTHORIZATION_REQUESTS_OPEN_MAX = 50;
/** See docs/spec/authorization.md#redirect-flow. */
export const AUTHORIZATION_CODE_SECONDS = 10 * 60;
/** Unspecified: wrong verifiers, redirects or clients that a code bears. */
export const AUTHORIZATION_CODE_ATTEMPTS_MAX = 5;
/** Unspecified: how long a used code is remembered, so that a copy of it that turns up still ends its key. */
export const AUTHORIZATION_CODE_KEPT_HOURS = 24;

/** How long a device code and its user code are good. */
export const DEVICE_CODE_SECONDS = 30 * 60;
/** How long a device waits between two polls, to begin with. */
export const DEVICE_POLL_SECONDS = 5;
/** How much longer it has to wait from each poll on that comes too soon (RFC 8628 3.5). */
export const DEVICE_SLOW_DOWN_SECONDS = 5;
/** Unspecified: timers and networks are not exact, so a poll may come this much too soon. */
export const DEVICE_POLL_TOLERANCE_MS = 500;

/** Codes that nobody has decided on, or whose key has not been fetched (docs/spec/authorization.md#redirect-urls). */
export const LIVE_DEVICE_CODES_PER_ADDRESS_MAX = 20;
export const LIVE_DEVICE_CODES_MAX = 10_000;
/** Unspecified: for so long after its end a device code is told to have expired; then it is unknown. */
export const EXPIRED_DEVICE_CODE_KEPT_SECONDS = 60 * 60;
export const DEVICE_CODES_SWEPT_AT_ONCE_MAX = 1_000;

/** Wrong user codes of one account (docs/spec/authorization.md#device-flow). */
export const USER_CODE_GUESSES_PER_MINUTE = 10;
/** Unspecified: of one client address, behind which there may be several people. */
export const USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE = 50;

/** A device code has 43 characters, an app key 25; more than these is read by nobody. */
export const DEVICE_FIELD_CHARS_MAX = 512;
