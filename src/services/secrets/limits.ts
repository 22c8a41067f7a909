/** Processes read the key ring this often. */
export const KEY_RING_POLL_MS = 20_000;
/** A new secret signs and seals from then on: every process has read the key ring by then, also one that failed to do so three times. */
export const SECRET_LEARNED_MS = 4 * KEY_RING_POLL_MS;
/** The longest life of a signature: a realtime client secret's two hours. */
export const SIGNATURE_MAX_MS = 2 * 60 * 60 * 1000;
/** Sealed values that one statement of a reseal reads. */
export const RESEAL_BATCH = 200;
