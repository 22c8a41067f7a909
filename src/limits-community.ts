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
/** Unspecified: no token, second or picture costs this much; a price per million tokens, put in by mistake, soon does. */
export const PRICE_CREDITS_MAX = 1_000;
/** Unspecified: what one answer names of the models that could serve as a fallback. */
export const FALLBACK_CANDIDATES_MAX = 100;
/** Unspecified: of other accounts' models of a modality, those that are looked at for it. */
export const FALLBACK_CANDIDATES_READ_MAX = 2_000;
/** Unspecified. */
export const COMMUNITY_MODELS_PER_ACCOUNT_MAX = 200;

/** Spec 8: how long a model waits to become public, and a public one for other prices. */
export const PENDING_CHANGE_MS = 3 * 60 * 60_000;
/** Decisions: one probe of an upstream per account. */
export const PROBE_INTERVAL_MS = 30_000;
/** Unspecified: how long a probe waits for the upstream's answer. */
export const PROBE_TIMEOUT_MS = 20_000;

/** Decisions "Catalog": when a model's health keeps it out of the lists. */
export const HEALTH_WINDOW_HOURS = 24;
export const HEALTH_REQUESTS_MIN = 10;
export const HEALTH_SUCCESS_PERCENT_MIN = 80;
/** Unspecified: how often what was counted is written down, nobody waiting for it. */
export const HEALTH_FLUSH_MS = 2_000;

/** Unspecified: gateways that a request may come through; one that comes back more often goes in circles. */
export const HOPS_MAX = 3;

/** Unspecified: upstreams of registered models that are connected at once; whichever was called longest ago is let go. */
export const COMMUNITY_UPSTREAMS_MAX = 200;
/** Unspecified: connections to each, and requests that wait for one. */
export const COMMUNITY_CONNECTIONS_MAX = 64;
export const COMMUNITY_WAITING_MAX = 256;
/** Unspecified: how long an idle connection to one is kept at most. */
export const COMMUNITY_KEEP_ALIVE_MS = 15_000;
/** Unspecified: a chat of one, answered whole and streamed. Both are in memory until they are charged. */
export const COMMUNITY_ANSWER_BYTES_MAX = 16 * 1024 * 1024;
export const COMMUNITY_STREAM_BYTES_MAX = 64 * 1024 * 1024;

/** Unspecified: rows of registered models, and hours of their health, that are read at once. */
export const DIRECTORY_PAGE = 500;
export const HEALTH_PAGE = 5_000;
/** Unspecified: how often a process that shares its database looks whether it has missed a change. */
export const DIRECTORY_LOOK_MS = 60_000;
/** How much of what was read before it reads again then. */
export const DIRECTORY_OVERLAP_MS = 5 * 60_000;
