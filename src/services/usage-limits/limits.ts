export const USAGE_LIMITS_PER_ACCOUNT_MAX = 200;
/** Limits of models, over all accounts. */
export const MODEL_LIMITS_MAX = 200;
/** They are read again that often, should an event be lost. */
export const MODEL_LIMITS_LOOK_MS = 30_000;
/** Accounts whose limits are kept in memory. */
export const LIMIT_ACCOUNTS_MAX = 10_000;
/** The longest window: 366 days. */
export const WINDOW_MINUTES_MAX = 527_040;
export const ALERTS_MAX = 10;
export const RAISE_DAYS_MAX = 366;
/** Room of a first claim, in amounts like the one requested. */
export const CLAIM_ROOM = 16n;
/** A claim that is used up faster than this is doubled. */
export const CLAIM_DOUBLED_MS = 1_000;
/** Free amounts are given back after this long without use. */
export const CLAIM_IDLE_MS = 5_000;
export const CLAIM_SWEEP_MS = 1_000;
/** How long a process claims no more than it needs after another one has asked. */
export const CLAIM_PAUSE_MS = 1_000;
/** How long a request waits for amounts that other processes hold unused. */
export const CLAIM_RECALL_MS = 500;
/** Between two looks at a limit while a request waits: for other processes to give back, and for generations to end. */
export const CLAIM_RECALL_LOOK_MS = 10;
export const CLAIM_HELD_LOOK_MS = 100;
/** Charges are gathered that long before percentages are looked at. */
export const LIMIT_ALERT_LOOK_MS = 100;
/** A refusal stands that long without another look at the database, so that floods of refused requests do not reach it. */
export const CLAIM_REFUSED_MS = 50;
