/** Limits of the catalog; none is specified. */

/** Interval at which a process looks for changed prices. A start and an edited model need no wait. */
export const PRICE_HISTORY_LOOK_MS = 10 * 60 * 1000;
/** Prices of a model that are shown. */
export const PRICES_SHOWN_MAX = 50;
