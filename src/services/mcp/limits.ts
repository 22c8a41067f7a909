/** Limits of MCP: calls of agents to tool servers, and the gateway's own server. */

/** Unspecified: how long an agent waits for a server's initialization, and for its list of tools. */
export const MCP_CONNECT_TIMEOUT_MS = 5_000;
export const MCP_LIST_TIMEOUT_MS = 15_000;
/** Unspecified: one tool call. The 300 s of every generation usually end sooner. */
export const MCP_CALL_TIMEOUT_MS = 120_000;
/** Unspecified: timeout of cancelling a call or ending a session at a server. */
export const MCP_FAREWELL_MS = 2_000;

/** Unspecified: tools of one server; models take 128 in all. */
export const MCP_TOOLS_MAX = 128;
export const MCP_TOOL_PAGES_MAX = 10;
export const MCP_LIST_BYTES_MAX = 2 * 1024 * 1024;
/** Unspecified: bytes of the answers to one call; room for an image. */
export const MCP_RESULT_BYTES_MAX = 16 * 1024 * 1024;
/** Unspecified: length of a server's error message. */
export const MCP_ERROR_CHARS_MAX = 2_000;

/** Unspecified: redirects of a server within its own origin. */
export const MCP_REDIRECTS_MAX = 3;
/** Unspecified: resumptions of a stream, and the pause before one in milliseconds, unless the server sets it. */
export const MCP_RESUMPTIONS_MAX = 100;
export const MCP_RETRY_MS_DEFAULT = 1_000;
export const MCP_RETRY_MS_MIN = 10;
export const MCP_RETRY_MS_MAX = 30_000;
/** Unspecified: requests of the server that are answered within one exchange. */
export const MCP_SERVER_REQUESTS_MAX = 100;
/** Unspecified: length of a tool's name. */
export const MCP_TOOL_NAME_CHARS_MAX = 256;

/** Unspecified: lifetime of a cached list of tools. */
export const MCP_LIST_CACHE_MS = 60_000;
/** Unspecified: how long a session is kept for the run's next call, and how many sessions. */
export const MCP_SESSION_IDLE_MS = 30_000;
export const MCP_SESSIONS_MAX = 256;
/** Unspecified: connections to one server; further calls wait. */
export const MCP_CONNECTIONS_MAX = 64;

/**
 * The largest event that common clients accept, in bytes. Source: `max_sse_event_size` of the official SDK for Python (`mcp` 2.3.0), which
 * ends the call of a larger one.
 */
export const MCP_EVENT_BYTES_MAX = 1_048_576;
/** Images and sounds within a result of the gateway's tools, in bytes of the files; in base64 they leave 43 kB of an event. */
export const MCP_INLINE_BYTES_MAX = 736 * 1024;
/** Of each revised prompt in a result: ten of them fit beside the largest files. */
export const MCP_REVISED_PROMPT_CHARS_MAX = 1_000;
/** A longer text is in a result once, and not also in its structured content. */
export const MCP_REPEATED_TEXT_BYTES_MAX = 256 * 1024;
/** Models in `list_models`: as JSON, and again as JSON in a text. */
export const MCP_MODELS_BYTES_MAX = 960 * 1024;
/** Unspecified: models in one `list_models` result. */
export const MCP_MODELS_MAX = 200;
export const MCP_MODELS_DEFAULT = 50;
