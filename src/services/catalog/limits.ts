/** Limits of the catalog; none is specified. */

/** Interval at which a process looks for changed prices. A start and an edited model need no wait. */
export const PRICE_HISTORY_LOOK_MS = 10 * 60 * 1000;
/** Prices of a model that are shown. */
export const PRICES_SHOWN_MAX = 50;
/** Interval at which the lists of upstreams are read for the retirement of models, and the time after a start until the first. */
export const RETIREMENTS_READ_MS = 12 * 60 * 60 * 1000;
export const RETIREMENTS_FIRST_READ_MS = 60_000;
