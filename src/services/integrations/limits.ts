/** Limits of connected apps (docs/spec/connected-apps.md#operations). */

/** The slug of a toolkit (docs/spec/limits.md). */
export const TOOLKIT_CHARS_MAX = 100;
/** See docs/spec/limits.md. */
export const TOOLKIT_SEARCH_CHARS_MAX = 100;
/** Unspecified: of any status. */
export const CONNECTED_APPS_PER_ACCOUNT_MAX = 100;
/** Unspecified: how long the callback page shows the outcome. */
export const CONNECTION_RETURN_SECONDS = 60 * 60;

/** Unspecified: how long a connection of the development broker can be approved. */
export const DEVELOPMENT_CONNECTION_SECONDS = 10 * 60;
/** Unspecified: an unapproved connection is listed for this long after that; then it is deleted. */
export const ENDED_CONNECTION_KEPT_SECONDS = 24 * 60 * 60;
export const DEVELOPMENT_CONNECTIONS_SWEPT_AT_ONCE_MAX = 1_000;
/** Unspecified. */
export const CONNECTION_ALIAS_CHARS_MAX = 60;
/** Unspecified: length of signed links; ours have some 600. */
export const SIGNED_LINK_CHARS_MAX = 4_096;

/** Unspecified: from the request to the last byte of the broker's answer. */
export const BROKER_TIMEOUT_MS = 10_000;
export const BROKER_CONNECT_TIMEOUT_MS = 3_000;
/** Unspecified: a thousand toolkits with a kilobyte each. */
export const BROKER_ANSWER_BYTES_MAX = 1024 * 1024;
export const BROKER_CONNECTIONS_MAX = 16;
/** Unspecified: per process. More are refused, not queued. */
export const BROKER_REQUESTS_AT_ONCE_MAX = 64;
/** Unspecified: length of a broker's id. */
export const BROKER_ID_CHARS_MAX = 200;
