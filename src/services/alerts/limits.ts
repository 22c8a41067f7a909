/** Unspecified: the time between two evaluations, which one process of all makes. */
export const ALERTS_WATCH_MS = 30_000;
/** Unspecified: rows of one query of an evaluation. */
export const ALERTS_PAGE_ROWS = 500;
/** Unspecified: queries of one rule in an evaluation. The next evaluation goes on behind them. */
export const ALERTS_PAGES_MAX = 10;
/** Unspecified: days that alerts are kept. */
export const ALERTS_KEPT_DAYS = 400;
export const ALERTS_SWEPT_AT_ONCE_MAX = 1_000;
/** Unspecified: days of usage that make an account a user of a deprecated model. */
export const MODEL_USE_DAYS = 30;
/** Unspecified: weeks that are compared, and those without which nothing is unusual. */
export const SPEND_WEEKS = 8;
export const SPEND_WEEKS_MIN = 4;
/** Unspecified: median absolute deviations above the median, about six standard deviations of a normal distribution. */
export const SPEND_DEVIATIONS = 9n;
/** Unspecified. */
export const SILENCED_SUBJECTS_MAX = 1_000;
/** Unspecified: a text that a payment processor gave as the reason of a failure. */
export const ALERT_REASON_CHARS_MAX = 300;
