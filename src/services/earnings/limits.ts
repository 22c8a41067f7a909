/** Decided: days from a charge until its shares can be used, within which a payment is usually disputed or refunded. */
export const MATURITY_DAYS = 7;
/** Unspecified: accounts of one person. */
export const LINKED_ACCOUNTS_MAX = 20;
/** Unspecified: an operator's reason or note. */
export const EARNINGS_NOTE_CHARS_MAX = 500;
/** Unspecified: days of one answer. */
export const EARNING_DAYS_MAX = 400;
export const EARNING_DAYS_DEFAULT = 30;
/** Unspecified: rows of one answer. */
export const EARNING_FLAGS_MAX = 100;
/** Unspecified: an owner whose earnings of a day are below this is not flagged, in nanocredits. */
export const FLAGGED_NANOCREDITS_MIN = 1_000_000_000n;
/** Unspecified: the percentage of an owner's earnings of a day from one payer that is flagged. */
export const FLAGGED_PAYER_PERCENT = 80;
/** Unspecified: earnings of a day that exceed the mean of the week before by this factor are flagged. */
export const FLAGGED_RISE_FACTOR = 10;
/** Unspecified: requests of one payer to one model, or through one app, within a minute that are flagged. */
export const FLAGGED_REQUESTS_PER_MINUTE = 120;
