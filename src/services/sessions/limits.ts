/** Limits of sessions and sign-in. All unspecified. */

/** Unspecified: renewed on each day of use. */
export const SESSION_SECONDS = 30 * 24 * 60 * 60;
/** Unspecified: the last use of a session is stored once a day. */
export const SESSION_RENEWAL_SECONDS = 24 * 60 * 60;
/** The longest that browsers keep a cookie (RFC 6265bis 5.5); the server decides whether the session is good. */
export const SESSION_COOKIE_SECONDS = 400 * 24 * 60 * 60;
/** Unspecified: the least recently used session is ended for a new one. */
export const SESSIONS_PER_ACCOUNT_MAX = 100;

/** As for keys: how long a session is good without a new look-up. */
export const SESSION_CACHE_MS = 5_000;
export const SESSION_CACHE_ENTRIES_MAX = 10_000;

/** Unspecified: the minimum of NIST SP 800-63B. */
export const PASSWORD_CHARS_MIN = 8;
/** Unspecified. */
export const PASSWORD_CHARS_MAX = 128;
/** Each takes 32 MiB and a thread for tens of milliseconds; the process has four threads, which files and DNS need too. */
export const PASSWORD_HASHES_AT_ONCE = 2;
/** Unspecified: beyond it the wait would be seconds, so the request is refused. */
export const PASSWORD_HASHES_WAITING_MAX = 64;

/** Unspecified: sign-in attempts that wait for their turn in one process; each holds a connection. */
export const SIGN_IN_WAITING_MAX = 1_000;
/** Unspecified: an attempt that was overtaken this often by others of its client address is refused. */
export const SIGN_IN_WAITS_MAX = 3;

/** RFC 5321 4.5.3.1.3, less the angle brackets. */
export const EMAIL_CHARS_MAX = 254;
/** Unspecified: longer User-Agent headers are cut. */
export const USER_AGENT_CHARS_MAX = 400;

export const GITHUB_TIMEOUT_MS = 10_000;
/** A password link is good for 24 hours. */
export const PASSWORD_LINK_SECONDS = 24 * 60 * 60;
/** Longer than the 43 characters of a token. */
export const PASSWORD_LINK_CHARS_MAX = 200;
/** Unspecified: an operator's reason. */
export const OPERATOR_REASON_CHARS_MAX = 500;
