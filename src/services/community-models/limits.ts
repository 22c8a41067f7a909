/** Limits of registered models and agents (docs/spec/limits.md). */

/** Unspecified: of an upstream's credential. */
export const BEARER_TOKEN_CHARS_MAX = 4_096;
/** Unspecified: what one answer names of the models that could serve as a fallback. */
export const FALLBACK_CANDIDATES_MAX = 100;
/** Unspecified: of other accounts' models of a modality, those that are looked at for it. */
export const FALLBACK_CANDIDATES_READ_MAX = 2_000;
/** Unspecified. */
export const COMMUNITY_MODELS_PER_ACCOUNT_MAX = 200;

/** How long a model waits to become public, and a public one for other prices (docs/spec/limits.md). */
export const PENDING_CHANGE_MS = 3 * 60 * 60_000;
/** One probe of an upstream for each account (docs/spec/community-models.md#probe). */
export const PROBE_INTERVAL_MS = 30_000;
/** Unspecified: how long a probe waits for the upstream's answer. */
export const PROBE_TIMEOUT_MS = 20_000;

/** When a model's health keeps it out of the lists (docs/spec/models.md#health). */
export const HEALTH_WINDOW_HOURS = 24;
export const HEALTH_REQUESTS_MIN = 10;
export const HEALTH_SUCCESS_PERCENT_MIN = 80;
/** Unspecified: how often what was counted is written down, nobody waiting for it. */
export const HEALTH_FLUSH_MS = 2_000;

/** Unspecified: rows of registered models, and hours of their health, that are read at once. */
export const DIRECTORY_PAGE = 500;
export const HEALTH_PAGE = 5_000;
/** Unspecified: how often a process that shares its database looks whether it has missed a change. */
export const DIRECTORY_LOOK_MS = 60_000;
/** How much of what was read before it reads again then. */
export const DIRECTORY_OVERLAP_MS = 5 * 60_000;
