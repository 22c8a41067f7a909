/** Limits of export and deletion of accounts. All unspecified. */

/** Unspecified: age of a session that proves the identity of a person without a password. */
export const FRESH_SESSION_SECONDS = 10 * 60;

/** Unspecified: rows per page of the export; about a megabyte of JSON for usage. */
export const EXPORT_PAGE_MAX = 1_000;
/** Unspecified: stored responses and conversations per page, of up to some megabytes each. */
export const EXPORT_CONTENT_PAGE_MAX = 5;

/** Interval of looks for unfinished deletions. */
export const ERASURE_SWEEP_MS = 30_000;
/** Deleted accounts handled at a time. */
export const ERASED_AT_ONCE_MAX = 20;
/** Usage rows that lose their keys' names in one statement. */
export const ERASED_NAMES_AT_ONCE_MAX = 1_000;
