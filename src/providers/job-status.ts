/** Status words of upstreams' jobs: an open vocabulary, with the known ones listed here. */

export type JobProgress = "running" | "completed" | "failed";

/** In the form of `toKey`. Sources: OpenAI, Replicate, Luma, fal, Runway, Kling, MiniMax, Vidu, DashScope, and servers that copy them. */
const WORDS: ReadonlyMap<string, JobProgress> = new Map([
  ...toEntries("running", [
    ...["accepted", "active", "created", "dispatched", "dreaming", "enqueued", "executing", "finalizing", "generating"],
    ...["initializing", "inprogress", "inqueue", "loading", "new", "notstart", "notstarted", "ongoing", "pending", "postprocessing"],
    ...["preparing", "processing", "queued", "queueing", "queuing", "rendering", "running", "scheduled", "started", "starting"],
    ...["submitted", "throttled", "uploading", "waiting", "working"],
  ]),
  ...toEntries("completed", ["complete", "completed", "done", "finished", "ready", "succeed", "succeeded", "success", "successful"]),
  ...toEntries("failed", [
    ...["abort", "aborted", "canceled", "cancelled", "contentmoderated", "error", "errored", "expired", "fail", "failed"],
    ...["failure", "moderated", "rejected", "requestmoderated", "timedout", "timeout"],
  ]),
]);
/** Longer than any known word with separators. */
const WORD_CHARS_MAX = 64;

/** Null for an unknown word: neither completed nor failed, so the job is polled again. */
export function toJobProgress(word: unknown): JobProgress | null {
  if (typeof word !== "string" || word.length > WORD_CHARS_MAX) return null;
  return WORDS.get(toKey(word)) ?? null;
}

/** The log text of an unknown status. */
export function describeStatus(status: unknown): string {
  if (typeof status === "string") return status;
  return typeof status === "number" ? String(status) : `(${status === null ? "null" : typeof status})`;
}

/** `IN_PROGRESS`, `in-progress` and `In Progress` are one word. */
function toKey(word: string): string {
  return word.toLowerCase().replace(/[\s_.-]/g, "");
}

function toEntries(progress: JobProgress, words: readonly string[]): [string, JobProgress][] {
  return words.map((word) => [word, progress]);
}
