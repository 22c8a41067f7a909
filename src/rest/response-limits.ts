/** Bounds of Responses over a WebSocket (docs/spec/chat.md#websocket). */
/** The lifetime of a connection, as at OpenAI, and, unspecified, how long it may be idle. */
export const SOCKET_MS_MAX = 60 * 60_000;
export const SOCKET_IDLE_MS_MAX = 10 * 60_000;
/** Unspecified: the bytes of one event; and those that are buffered before they are counted as a request's body. */
export const EVENT_BYTES_MAX = 21 * 1024 * 1024;
export const UNCOUNTED_BYTES_MAX = 64 * 1024;
/** Unspecified: bytes of events that wait to be read; beyond it reading is paused. */
export const WAITING_BYTES_MAX = 1024 * 1024;
/** Unspecified: concurrent connections of one key, and of one address. */
export const SOCKETS_PER_KEY_MAX = 50;
export const SOCKETS_PER_ADDRESS_MAX = 50;
