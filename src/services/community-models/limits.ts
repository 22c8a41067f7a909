/** Limits of registered models and agents (docs/spec/limits.md). */

/** Unspecified: length of an upstream's credential. */
export const BEARER_TOKEN_CHARS_MAX = 4_096;
/** Unspecified: fallback candidates in one answer. */
export const FALLBACK_CANDIDATES_MAX = 100;
/** Unspecified: models of other accounts read to find them. */
export const FALLBACK_CANDIDATES_READ_MAX = 2_000;
/** Unspecified. */
export const COMMUNITY_MODELS_PER_ACCOUNT_MAX = 200;

/** Delay before a model becomes public, and before a public one changes its prices (docs/spec/limits.md). */
export const PENDING_CHANGE_MS = 3 * 60 * 60_000;
/** One probe per account (docs/spec/community-models.md#probe). */
export const PROBE_INTERVAL_MS = 30_000;
/** Unspecified: timeout of a probe. */
export const PROBE_TIMEOUT_MS = 20_000;

/** Health below these values keeps a model out of lists (docs/spec/models.md#health). */
export const HEALTH_WINDOW_HOURS = 24;
export const HEALTH_REQUESTS_MIN = 10;
export const HEALTH_SUCCESS_PERCENT_MIN = 80;
/** Unspecified: interval of writing health counts. */
export const HEALTH_FLUSH_MS = 2_000;

/** Unspecified: rows of registered models, and hours of their health, in one read. */
export const DIRECTORY_PAGE = 500;
export const HEALTH_PAGE = 5_000;
/** Unspecified: interval at which a process that shares its database looks for missed changes. */
export const DIRECTORY_LOOK_MS = 60_000;
/** How far such a look reaches back before the last read. */
export const DIRECTORY_OVERLAP_MS = 5 * 60_000;
