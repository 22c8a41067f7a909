/** Descriptions of query parameters that several generating routes share. */
export const MODEL_TEXT = "A model ID or alias. Defaults to the operation's default model.";
export const SEED_TEXT = "The random seed. Defaults to 0. -1 draws a random one.";
export const SAFE_TEXT = "`true`, or a comma-separated list of safety checks: privacy, secrets, sexual, violence, shield.";
export const NO_CACHE_TEXT = "Generates a new answer instead of a cached one.";
