/** Limits of what a key is granted with, and of where a grant may return to. */

/** How long the key lives that a person grants, in days (docs/spec/authorization.md#grants). */
export const GRANT_DAYS_DEFAULT = 30;
/** As any other key's (docs/spec/limits.md). */
export const GRANT_DAYS_MAX = 365;
/** Unspecified: 5 credits, in nanocredits. An app that names no budget asks for this much; none is granted without a cap. */
export const GRANT_BUDGET_DEFAULT = 5_000_000_000n;

/** See docs/spec/authorization.md#redirect-urls. */
export const REDIRECT_URL_CHARS_MAX = 2_048;
/** Registered with one app key (docs/spec/authorization.md#redirect-urls). */
export const REDIRECT_URLS_MAX = 10;
