/** Limits of calls to the upstreams that the owners of registered models name. */

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
