/** Numbers that bound MCP: what agents ask of tool servers, and what the gateway's own server gives. */

/** Unspecified: what an agent waits for the first words of a server, and for the list of its tools. */
export const MCP_CONNECT_TIMEOUT_MS = 5_000;
export const MCP_LIST_TIMEOUT_MS = 15_000;
/** Unspecified: one tool call. An agent's own time, the 300 s of every generation, is mostly over sooner. */
export const MCP_CALL_TIMEOUT_MS = 120_000;
/** Unspecified: how long the cancellation of a call, or the end of a session, may take to reach a server. */
export const MCP_FAREWELL_MS = 2_000;

/** Unspecified: tools of one server; models take 128 at once. */
export const MCP_TOOLS_MAX = 128;
export const MCP_TOOL_PAGES_MAX = 10;
export const MCP_LIST_BYTES_MAX = 2 * 1024 * 1024;
/** Unspecified: all that one call may answer, in bytes of the protocol; a picture fits. */
export const MCP_RESULT_BYTES_MAX = 16 * 1024 * 1024;
/** Unspecified: of an error that a server explains. */
export const MCP_ERROR_CHARS_MAX = 2_000;

/** Unspecified: redirects of a server within its own origin. */
export const MCP_REDIRECTS_MAX = 3;
/** Unspecified: how often the rest of a stream is asked for, and after how long unless the server says when, in milliseconds. */
export const MCP_RESUMPTIONS_MAX = 100;
export const MCP_RETRY_MS_DEFAULT = 1_000;
export const MCP_RETRY_MS_MIN = 10;
export const MCP_RETRY_MS_MAX = 30_000;
/** Unspecified: requests of a server's own that are answered within one exchange. */
export const MCP_SERVER_REQUESTS_MAX = 100;
/** Unspecified: of a tool's name. */
export const MCP_TOOL_NAME_CHARS_MAX = 256;

/** Unspecified: how long a list of tools is believed. */
export const MCP_LIST_CACHE_MS = 60_000;
/** Unspecified: how long a server's session is kept for the next call of the same run, and how many there are at once. */
export const MCP_SESSION_IDLE_MS = 30_000;
export const MCP_SESSIONS_MAX = 256;
/** Unspecified: connections to one server; more calls wait. */
export const MCP_CONNECTIONS_MAX = 64;

/**
 * The largest event of a stream that common clients take, in bytes. Source: `max_sse_event_size` of the official SDK for Python
 * (`mcp` 2.3.0), which ends the call of a larger one.
 */
export const MCP_EVENT_BYTES_MAX = 1_048_576;
/** Pictures and sounds within a result of the gateway's own tools, in bytes of the files; in base64 they leave 43 kB of an event. */
export const MCP_INLINE_BYTES_MAX = 736 * 1024;
/** Of each prompt that a model was given instead of the caller's, in a result: ten of them fit beside the largest files. */
export const MCP_REVISED_PROMPT_CHARS_MAX = 1_000;
/** A text of more bytes is in a result once, and not in its structured content too. */
export const MCP_REPEATED_TEXT_BYTES_MAX = 256 * 1024;
/** Of the models that `list_models` tells: as JSON, and once more as JSON in a text. */
export const MCP_MODELS_BYTES_MAX = 960 * 1024;
/** Unspecified: models that `list_models` tells at once. */
export const MCP_MODELS_MAX = 200;
export const MCP_MODELS_DEFAULT = 50;
