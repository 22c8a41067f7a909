/** Numbers that bound registered models and agents (Spec 8), and calls to the upstreams that their owners name. */

/** Spec 8: names and titles of agents and models, in characters. */
export const MODEL_NAME_CHARS_MAX = 120;
export const MODEL_TITLE_CHARS_MAX = 42;
export const MODEL_DESCRIPTION_CHARS_MAX = 1_000;
/** Spec 8: baseModel, upstreamModel. */
export const MODEL_REFERENCE_CHARS_MAX = 253;
export const REQUIRED_SAFETY_FEATURES_MAX = 5;
export const FALLBACKS_MAX = 3;
/** Spec 8: advertised.contextLength, in tokens. */
export const ADVERTISED_CONTEXT_LENGTH_MAX = 10_000_000;
/** Unspecified: of an upstream's credential. */
export const BEARER_TOKEN_CHARS_MAX = 4_096;
/** Unspecified. */
export const COMMUNITY_MODELS_PER_ACCOUNT_MAX = 200;

/** Spec 8: how long a model waits to become public, and a public one for other prices. */
export const PENDING_CHANGE_MS = 3 * 60 * 60_000;
/** Decisions: one probe of an upstream per account. */
export const PROBE_INTERVAL_MS = 30_000;

/** Decisions "Catalog": when a model's health keeps it out of the lists. */
export const HEALTH_WINDOW_HOURS = 24;
export const HEALTH_REQUESTS_MIN = 10;
export const HEALTH_SUCCESS_PERCENT_MIN = 80;
/** Unspecified: how often what was counted is written down, nobody waiting for it. */
export const HEALTH_FLUSH_MS = 2_000;

/** Unspecified: gateways that a request may come through; one that comes back more often goes in circles. */
export const HOPS_MAX = 3;
