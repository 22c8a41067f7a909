/** Numbers of accounts, tiers and apps; others are in `limits.ts`. */

/** Tiers, unspecified: how long a process relies on what it knows of an account's next refill, and of how many accounts. As long as a key is cached. */
export const TIER_STANDING_CACHE_MS = 5_000;
export const TIER_STANDINGS_MAX = 100_000;

/** Accounts, unspecified: the text that an operator looks for. */
export const ACCOUNT_SEARCH_CHARS_MAX = 253;
/** Accounts, unspecified: what an operator writes beside a grant. */
export const GRANT_NOTE_CHARS_MAX = 500;
/** Tiers, unspecified: a tier's name as an operator states it. */
export const TIER_NAME_CHARS_MAX = 100;
/** Unspecified: refused settlements that are shown at once. */
export const REFUSED_SETTLEMENTS_SHOWN_MAX = 100;
