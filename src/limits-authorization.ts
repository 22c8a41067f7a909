/** Numbers of the flows in which a person lets an app spend: the redirect flow, and what it shares with the device flow. */

/** Spec 4.9 and 8: how long the key lives that a person grants, in days. */
export const GRANT_DAYS_DEFAULT = 30;
/** Spec 8: as any other key's. */
export const GRANT_DAYS_MAX = 365;
/** Unspecified: 5 credits, in nanocredits. An app that names no budget asks for this much; none is granted without a cap. */
export const GRANT_BUDGET_DEFAULT = 5_000_000_000n;

/** Reliability 7. */
export const REDIRECT_URL_CHARS_MAX = 2_048;
/** Reliability 7: registered with one app key. */
export const REDIRECT_URLS_MAX = 10;
/** An app key has 25; more than these is read by nobody. */
export const APP_KEY_CHARS_MAX = 256;
/** Reliability 7: echoed as it came. */
export const STATE_CHARS_MAX = 512;

/** Unspecified: how long a consent page may be looked at before it has to be asked for anew. */
export const AUTHORIZATION_REQUEST_MINUTES = 60;
/** Unspecified: of one session; when there are more, the oldest are forgotten. */
export const AUTHORIZATION_REQUESTS_OPEN_MAX = 50;
/** Decisions "Authorization". */
export const AUTHORIZATION_CODE_SECONDS = 10 * 60;
/** Unspecified: wrong verifiers, redirects or clients that a code bears. */
export const AUTHORIZATION_CODE_ATTEMPTS_MAX = 5;
/** Unspecified: how long a used code is remembered, so that a copy of it that turns up still ends its key. */
export const AUTHORIZATION_CODE_KEPT_HOURS = 24;
