/** Limits of the pages and of the requests that are forms. */

/** Unspecified: the consent form with a thousand models ticked stays below. */
export const URLENCODED_BODY_BYTES_MAX = 256 * 1024;
/** Unspecified. */
export const URLENCODED_FIELDS_MAX = 2_000;
/** Unspecified: a form that was left open overnight is asked for anew. */
export const FORM_TOKEN_SECONDS = 12 * 60 * 60;
/** Unspecified: between the form that makes a key and the page that shows it. */
export const KEY_REVEAL_SECONDS = 2 * 60;
/** Unspecified: so soon after it the same form is a second click. */
export const KEY_FORM_REPEAT_SECONDS = 10;
