/** A generation job as OpenAI's `video` object. */
import type { GenerationJob } from "../../services/generation/jobs/job.js";

const STATUSES = { running: "in_progress", succeeded: "completed", failed: "failed", cancelled: "failed" } as const;

export function toVideoJson({ id, model, status, progress, input, error, createdAt, finishedAt, expiresAt }: GenerationJob) {
  const { prompt = null, duration, width, height } = input as Readonly<Record<string, unknown>>;
  return {
    id,
    object: "video",
    model,
    status: STATUSES[status],
    progress,
    prompt,
    seconds: duration == null ? null : String(duration),
    size: width == null || height == null ? null : `${width}x${height}`,
    created_at: toSeconds(createdAt),
    completed_at: status === "succeeded" && finishedAt ? toSeconds(finishedAt) : null,
    expires_at: toSeconds(expiresAt),
    remixed_from_video_id: null,
    error: status === "cancelled" ? { code: "CANCELLED", message: "It was cancelled." } : error,
  };
}

function toSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
