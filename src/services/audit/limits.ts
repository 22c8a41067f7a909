/** Unspecified: accounts in one filter. */
export const AUDIT_FILTER_MAX = 100;
/** As REQUEST_ID_PATTERN allows. */
export const AUDIT_REQUEST_ID_CHARS_MAX = 128;
