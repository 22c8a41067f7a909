/** Limits of the pages and of the requests that are forms. */

/** Unspecified: the consent form with a thousand models ticked stays below. */
export const URLENCODED_BODY_BYTES_MAX = 256 * 1024;
/** Unspecified. */
export const URLENCODED_FIELDS_MAX = 2_000;
/** Unspecified: a form that was left open overnight is asked for anew. */
export const FORM_TOKEN_SECONDS = 12 * 60 * 60;
