/** Milliseconds between two writes. */
export const FAILURES_WRITTEN_EVERY_MS = 1_000;
/** Unspecified: failures that wait in one process for the next write. */
export const FAILURES_WAITING_MAX = 1_000;
/** Unspecified: accounts whose failures one process counts at once. */
export const FAILURE_ACCOUNTS_MAX = 10_000;
/** Unspecified: failures of one account with one code that are kept in a burst. One more is kept for each write in between. */
export const FAILURE_BURST_MAX = 60;
/** Unspecified: writes after which failures that the database refuses are dropped. */
export const FAILURE_WRITES_MAX = 5;
/** Ids in one event, which must fit into a notification of PostgreSQL (8000 bytes). */
export const FAILURES_ANNOUNCED_MAX = 100;
/** Unspecified: characters of a kept message, and of a model's name that a client made up. */
export const FAILURE_MESSAGE_CHARS_MAX = 500;
export const FAILURE_MODEL_CHARS_MAX = 200;

/** Unspecified: the newest rows that an account keeps. Rows beyond it are deleted after each FAILURES_PER_SWEEP of one process. */
export const FAILURES_PER_ACCOUNT_MAX = 100_000;
export const FAILURES_PER_SWEEP = 1_000;
/** Rows deleted in one statement, during which the embedded database does nothing else. */
export const FAILURES_DELETED_AT_ONCE = 2_000;

/** Unspecified: values of one field of a filter. */
export const REQUEST_FILTER_VALUES_MAX = 100;
/** Unspecified: characters that must be given to find requests by the beginning of their id. */
export const REQUEST_ID_PREFIX_MIN = 8;
export const REQUEST_ID_CHARS_MAX = 128;
/** Days that a list covers unless its filter says otherwise. */
export const REQUEST_LIST_DAYS_DEFAULT = 30;
