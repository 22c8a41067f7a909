/** Unspecified: an operator's search text. */
export const ACCOUNT_SEARCH_CHARS_MAX = 253;
export const ACCOUNT_FILTER_TIERS_MAX = 50;
/** Unspecified: an operator's note on a grant. */
export const GRANT_NOTE_CHARS_MAX = 500;
/** Unspecified: the largest number in the order of grants that expire. */
export const GRANT_PRIORITY_MAX = 100;
/** Unspecified: the name of a tier. */
export const TIER_NAME_CHARS_MAX = 100;
/** Unspecified: refused settlements in one answer. */
export const REFUSED_SETTLEMENTS_SHOWN_MAX = 100;

/** Unspecified. */
export const PROFILE_NAME_CHARS_MAX = 120;
/** Unspecified. */
export const PROFILE_IMAGE_CHARS_MAX = 2_048;
/** Unspecified: GitHub's own bound. */
export const HANDLE_CHARS_MAX = 39;
/** Unspecified: an operator's reason. */
export const SUSPENSION_REASON_CHARS_MAX = 500;
