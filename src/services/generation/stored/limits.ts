/** Limits of stored responses and conversations (docs/spec/chat.md#stored-responses). All unspecified. */

/** Input and answer of one response, as JSON. */
export const STORED_RESPONSE_BYTES_MAX = 8 * 1024 * 1024;
/** Responses of one thread. */
export const THREAD_RESPONSES_MAX = 1_000;
/** Responses whose items one request refers to. */
export const REFERENCED_RESPONSES_MAX = 200;
/** Quota counted for a row beside its content. */
export const STORED_ROW_BYTES = 512;
/** Rows deleted in one statement. */
export const STORED_SWEPT_AT_ONCE_MAX = 100;

/** Items of a page. */
export const ITEMS_PAGE_DEFAULT = 20;
export const ITEMS_PAGE_MAX = 100;
/** Items that a conversation begins with, or that are added to it, at once. */
export const CONVERSATION_ITEMS_AT_ONCE_MAX = 20;

/** Interval of writing the events of a background response, and their bytes that are written at once. */
export const EVENTS_WRITTEN_MS = 200;
export const EVENTS_WRITTEN_BYTES = 64 * 1024;
/** Events of one response, as JSON. Later ones are left out, but for the last. */
export const EVENTS_BYTES_MAX = 4 * 1024 * 1024;
/** How long they are kept after the end. */
export const EVENTS_KEPT_MS = 60 * 60 * 1000;
/** A follower looks at least this often, as an event of another process may be lost. */
export const FOLLOWER_LOOK_MS = 1_000;
/** How long a cancellation waits for the delivered part and its charge. */
export const CANCEL_WAIT_MS = 5_000;
