/** Limits of accounts, their profiles, and what operators do with them. */

/** Accounts, unspecified: the text that an operator looks for. */
export const ACCOUNT_SEARCH_CHARS_MAX = 253;
export const ACCOUNT_FILTER_TIERS_MAX = 50;
/** Accounts, unspecified: what an operator writes beside a grant. */
export const GRANT_NOTE_CHARS_MAX = 500;
/** Tiers, unspecified: a tier's name as an operator states it. */
export const TIER_NAME_CHARS_MAX = 100;
/** Unspecified: refused settlements that are shown at once. */
export const REFUSED_SETTLEMENTS_SHOWN_MAX = 100;

/** Unspecified. */
export const PROFILE_NAME_CHARS_MAX = 120;
/** Unspecified. */
export const PROFILE_IMAGE_CHARS_MAX = 2_048;
/** Unspecified: GitHub's own bound. */
export const HANDLE_CHARS_MAX = 39;
