/** Unspecified: the least and the most credits of a top-up. Processors refuse very small payments. */
export const TOP_UP_CREDITS_MIN = 1;
export const TOP_UP_CREDITS_MAX = 10_000;
/** Unspecified: seconds until an unpaid checkout ends. Stripe's own bound is 24 hours. */
export const CHECKOUT_SECONDS = 3_600;
/** Unspecified: unpaid checkouts of an account at once. */
export const OPEN_CHECKOUTS_MAX = 20;
/** Unspecified: an operator's reason for a refund. */
export const REFUND_REASON_CHARS_MAX = 500;
