import { describe, expect, it } from "vitest";
import { toJobProgress } from "../../src/providers/job-status.js";

const WORDS = {
  running: [
    ...["queued", "in_progress", "submitted", "starting", "in_queue", "IN_QUEUE", "preparing", "created", "waiting", "processing"],
    ...["running", "NOT_START", "not_started", "Pending", "in-progress", "In Progress", "dreaming", "THROTTLED", "RUNNING"],
  ],
  completed: ["completed", "success", "succeeded", "Succeed", "done", "finished", "COMPLETED", "Ready", "SUCCEEDED"],
  failed: [
    ...["failed", "failure", "error", "canceled", "cancelled", "expired", "rejected", "Fail", "CANCELLED", "Content Moderated"],
    ...["request_moderated", "timed_out", "aborted"],
  ],
} as const;

describe.each(Object.entries(WORDS))("words of %s jobs", (progress, words) => {
  it.each(words.map((word) => [word]))("%s", (word) => {
    expect(toJobProgress(word)).toBe(progress);
  });
});

it.each([["unknown"], [""], ["completedish"], ["constructor"], ["__proto__"], [2], [null], [undefined], [{}], ["-".repeat(1_000)]])(
  "does not know %j",
  (word) => {
    expect(toJobProgress(word)).toBeNull();
  },
);
