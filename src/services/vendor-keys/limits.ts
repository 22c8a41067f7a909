/** Limits of vendor keys. All unspecified. */

export const VENDOR_KEYS_PER_ACCOUNT_MAX = 20;
export const VENDOR_KEY_NAME_CHARS_MAX = 64;
/** Vendors' keys have some 50 to 200. */
export const VENDOR_KEY_SECRET_CHARS_MAX = 512;
export const VENDOR_KEY_MODELS_MAX = 100;
export const VENDOR_KEY_API_KEYS_MAX = 100;
/** A shorter secret shows no characters. */
export const VENDOR_KEY_SHOWN_CHARS_MIN = 16;
export const VENDOR_KEY_SHOWN_CHARS = 4;

/** Checks at vendors that an account can make at once, and in an hour. */
export const VENDOR_KEY_CHECKS = { capacity: 10, perHour: 60 };
export const VENDOR_KEY_CHECK_MS = 15_000;

/** Accounts whose vendor keys a process keeps; the least recently used is read again. */
export const VENDOR_KEY_ACCOUNTS_MAX = 10_000;
/** Shortest time between two notes of one key's refusal or acceptance in a process. */
export const VENDOR_KEY_NOTE_MS = 10_000;
/** Keys with such a time. */
export const VENDOR_KEY_NOTES_MAX = 10_000;
