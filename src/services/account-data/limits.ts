/** Limits of the export and the deletion of accounts. All unspecified. */

/** Unspecified: whoever signs in with GitHub alone proves who they are by having just done so. */
export const FRESH_SESSION_SECONDS = 10 * 60;

/** Unspecified: rows of a page of the export. Such a page of usage is about a megabyte of JSON. */
export const EXPORT_PAGE_MAX = 1_000;

/** How often it is looked for deleted accounts of which something is left to do. */
export const ERASURE_SWEEP_MS = 30_000;
/** Deleted accounts that are seen to at a time. */
export const ERASED_AT_ONCE_MAX = 20;
/** Usage rows whose keys' names are taken away in one statement. */
export const ERASED_NAMES_AT_ONCE_MAX = 1_000;
