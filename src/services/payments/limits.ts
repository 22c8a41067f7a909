/** Unspecified: seconds until an unpaid checkout ends. Stripe's own bounds are 30 minutes and 24 hours. */
export const CHECKOUT_SECONDS = 3_600;
/** Unspecified: unpaid checkouts of an account at once. */
export const OPEN_CHECKOUTS_MAX = 20;
/** Unspecified: an operator's reason for a refund. */
export const REFUND_REASON_CHARS_MAX = 500;
/** Names of processors, as stored with each top-up. */
export const DEVELOPMENT_PROCESSOR = "development";
export const STRIPE_PROCESSOR = "stripe";
export const CREDITS_WEBHOOK = "webhook";
/** Unspecified: refunds of one payment. */
export const REFUNDS_MAX = 1_000;
/** Unspecified: ids of processors are shorter. */
export const CLAIM_ID_CHARS_MAX = 255;
/** The id of a signed request that adds credits. */
export const CREDITS_WEBHOOK_ID = /^[\x21-\x7e]{1,255}$/;
/** Unspecified: bytes of one event. Stripe's events are of a few KiB. */
export const PAYMENT_EVENT_BYTES_MAX = 512 * 1024;
/** As Stripe's libraries have it. */
export const SIGNATURE_AGE_SECONDS_MAX = 300;
/** Unspecified: days that events of processors are kept. Stripe sends an event again for at most 30 days. */
export const PAYMENT_EVENT_DAYS = 90;
/** Unspecified: milliseconds of one attempt of a call of the processor, and its repetitions. */
export const PROCESSOR_TIMEOUT_MS = 15_000;
export const PROCESSOR_RETRIES = 2;
/** Unspecified: bytes of one answer. A page of 100 invoices has some hundred KiB. */
export const PROCESSOR_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Unspecified: invoices of one answer. Older ones are in the processor's portal. */
export const INVOICES_MAX = 100;
export const INVOICES_DEFAULT = 20;
/** Unspecified: delay between a change of a balance and the look for one that is too low, and between looks without a change. */
export const AUTO_TOP_UP_LOOK_MS = 200;
export const AUTO_TOP_UP_SWEEP_MS = 10_000;
export const AUTO_TOP_UPS_AT_ONCE_MAX = 50;
/** Unspecified: seconds until the processor is called again for a payment of which it said nothing, and for one that a bank decides on. */
export const UNANSWERED_CHARGE_SECONDS = 60;
export const PENDING_CHARGE_SECONDS = 3_600;
/** Unspecified: seconds after which an unanswered payment counts as failed. Stripe keeps idempotency keys for at least 24 hours. */
export const UNANSWERED_CHARGE_SECONDS_MAX = 23 * 3_600;
/** Unspecified: seconds between a failed payment and the next attempt. After the last one it is given up. */
export const FAILED_CHARGE_SECONDS = [3_600, 6 * 3_600, 24 * 3_600] as const;
/** Unspecified: seconds until a fee is asked for. The time doubles up to the greatest, which makes about a week of attempts. */
export const FIRST_FEE_SECONDS = 15;
export const FEE_SECONDS_MAX = 12 * 3_600;
export const FEE_ATTEMPTS_MAX = 26;
export const FEE_SWEEP_MS = 15_000;
export const FEES_AT_ONCE_MAX = 50;
/** Unspecified: credits, thresholds and monthly limits of automatic top-ups. */
export const AUTO_TOP_UP_CREDITS_MAX = 1_000_000;
