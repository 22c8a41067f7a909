/** Lifetime of a granted key, in days (docs/spec/authorization.md#grants). */
export const GRANT_DAYS_DEFAULT = 30;
/** As for other keys (docs/spec/limits.md). */
export const GRANT_DAYS_MAX = 365;
/** Unspecified: 5 credits, in nanocredits. The budget when an app names none; a granted key always has one. */
export const GRANT_BUDGET_DEFAULT = 5_000_000_000n;

/** See docs/spec/authorization.md#redirect-urls. */
export const REDIRECT_URL_CHARS_MAX = 2_048;
/** Per app key (docs/spec/authorization.md#redirect-urls). */
export const REDIRECT_URLS_MAX = 10;
/** Unspecified: an operator's reason. */
export const REVOCATION_REASON_CHARS_MAX = 500;
