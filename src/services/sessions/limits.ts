/** Limits of sessions and sign-in. All unspecified. */

/** Unspecified: counted anew from each day on which the session is used. */
export const SESSION_SECONDS = 30 * 24 * 60 * 60;
/** Unspecified: a session that is used is written down as such once a day. */
export const SESSION_RENEWAL_SECONDS = 24 * 60 * 60;
/** How long browsers keep a cookie at most (RFC 6265bis 5.5): whether the session still stands is decided here, not by them. */
export const SESSION_COOKIE_SECONDS = 400 * 24 * 60 * 60;
/** Unspecified: the one that was not used for longest makes room for another. */
export const SESSIONS_PER_ACCOUNT_MAX = 100;

/** As long as a key is taken to be good without asking again. */
export const SESSION_CACHE_MS = 5_000;
export const SESSION_CACHE_ENTRIES_MAX = 10_000;

/** Unspecified: as NIST SP 800-63B asks for at least. */
export const PASSWORD_CHARS_MIN = 8;
/** Unspecified. */
export const PASSWORD_CHARS_MAX = 128;
/** Each takes 32 MiB and a thread for tens of milliseconds; the process has four threads, which files and names need too. */
export const PASSWORD_HASHES_AT_ONCE = 2;
/** Unspecified: more than these wait a few seconds, and are told to come back instead. */
export const PASSWORD_HASHES_WAITING_MAX = 64;

/** Unspecified: attempts to sign in that wait for their turn in one process; each holds a connection. */
export const SIGN_IN_WAITING_MAX = 1_000;
/** Unspecified: an attempt that others of its client address have overtaken so often is refused. */
export const SIGN_IN_WAITS_MAX = 3;

/** RFC 5321 4.5.3.1.3, less the angle brackets. */
export const EMAIL_CHARS_MAX = 254;
/** Unspecified: what is kept of a browser's name. */
export const USER_AGENT_CHARS_MAX = 400;

/** How long GitHub may take to answer one request. */
export const GITHUB_TIMEOUT_MS = 10_000;
