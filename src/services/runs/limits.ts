/** Runs (docs/spec/runs.md). */

/** Unspecified: the longest and the usual time to live. */
export const RUN_TTL_SECONDS_MAX = 30 * 24 * 60 * 60;
export const RUN_TTL_SECONDS_DEFAULT = 60 * 60;
/** Unspecified: runs of one account that are neither ended nor expired. */
export const RUNS_OPEN_MAX = 10_000;
/** Unspecified: how long a call at the limit of its run waits for the payer; most clients wait ten minutes for an answer. */
export const RUN_APPROVAL_WAIT_MS = 5 * 60_000;
/** A call that waits repeats its question at most this often. */
export const RUN_ASKED_AGAIN_MS = 60_000;
/** No call waits any more with a question as old as this: the process that asked it ended. */
export const RUN_ASKED_MS_MAX = RUN_APPROVAL_WAIT_MS + 2 * RUN_ASKED_AGAIN_MS;
/** Unspecified: calls that wait in one process, in all and of one run. */
export const WAITING_CALLS_MAX = 1_000;
export const WAITING_CALLS_OF_RUN_MAX = 100;
/** A waiting call looks for credits that other calls have left unused at most this often. */
export const RUN_CREDITS_LOOK_MS = 500;
/** Ended runs that a process remembers, for callers that it authenticated just before. */
export const ENDED_RUNS_MAX = 10_000;
/** Changes of a run are combined for this long. */
export const RUN_CHANGES_MS = 100;
/** Runs below a run that are shown with it, newest first. */
export const RUNS_BELOW_MAX = 100;
