/** Limits of figures of models; none is specified. */

/** Hours of a model's activity. */
export const ACTIVITY_HOURS = 24;
/** Rows of the roll-up by hour that one model's activity is read from, newest first: 400 accounts that call it in each hour. */
export const ACTIVITY_ROWS_MAX = 10_000;
/** Milliseconds for which figures are kept, so that a page that many people open reads them once. */
export const ACTIVITY_KEPT_MS = 60_000;
export const ACTIVITY_KEPT_MAX = 2_000;
