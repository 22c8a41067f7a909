/** Unspecified: presets of an account. */
export const PRESETS_PER_ACCOUNT_MAX = 100;
/** Unspecified. */
export const PRESET_NAME_CHARS_MAX = 64;
/** Unspecified: characters of a system prompt. */
export const PRESET_SYSTEM_PROMPT_CHARS_MAX = 32_000;
/** Unspecified: bytes of the parameters as JSON; tools may have long schemas. */
export const PRESET_PARAMETERS_BYTES_MAX = 32 * 1024;
/** Unspecified: earlier versions of a preset that are kept, and their bytes as JSON. */
export const PRESET_EARLIER_MAX = 10;
export const PRESET_EARLIER_BYTES_MAX = 256 * 1024;
