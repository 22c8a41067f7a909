/** Limits of the device flow (RFC 8628; decisions "Authorization"). */

/** How long a device code and its user code are good. */
export const DEVICE_CODE_SECONDS = 30 * 60;
/** How long a device waits between two polls, to begin with. */
export const DEVICE_POLL_SECONDS = 5;
/** How much longer it has to wait from each poll on that comes too soon (RFC 8628 3.5). */
export const DEVICE_SLOW_DOWN_SECONDS = 5;
/** Unspecified: timers and networks are not exact, so a poll may come this much too soon. */
export const DEVICE_POLL_TOLERANCE_MS = 500;

/** Reliability 7: codes that nobody has decided on, or whose key has not been fetched. */
export const LIVE_DEVICE_CODES_PER_ADDRESS_MAX = 20;
export const LIVE_DEVICE_CODES_MAX = 10_000;
/** Unspecified: for so long after its end a device code is told to have expired; then it is unknown. */
export const EXPIRED_DEVICE_CODE_KEPT_SECONDS = 60 * 60;
export const DEVICE_CODES_SWEPT_AT_ONCE_MAX = 1_000;

/** Decisions "Authorization": wrong user codes of one account. */
export const USER_CODE_GUESSES_PER_MINUTE = 10;
/** Unspecified: of one client address, behind which there may be several people. */
export const USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE = 50;

/** A device code has 43 characters, an app key 25; more than these is read by nobody. */
export const DEVICE_FIELD_CHARS_MAX = 512;
