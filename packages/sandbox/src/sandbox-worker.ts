/**
 * The sandbox's thread for images, video, speech and music: work of seconds that must not block streams. Several jobs are open at once, one
 * step of each in turn. Code and libraries are loaded on first use.
 */
import { parentPort } from "node:worker_threads";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { append } from "../../../src/lib/collections.js";
import type { Job, JobKind, JobResults, JobRun, Reply, Request } from "../../../src/providers/sandbox/media/jobs.js";

const runs = new Map<number, JobRun<JobResults[JobKind]>>();

parentPort?.on("message", (request: Request) => {
  if (request.do === "open") runs.set(request.id, run(request.job));
  else if (request.do === "next") void step(request.id);
  else close(request.id);
});

async function* run(job: Job): JobRun<JobResults[JobKind]> {
  switch (job.kind) {
    case "image":
      return yield* (await import("./draw.js")).draw(job);
    case "video":
      return yield* (await import("./film.js")).film(job);
    case "speech":
      return yield* (await import("./audio.js")).speak(job);
    case "music":
      return yield* (await import("./audio.js")).play(job);
    case "transcription":
      return (await import("./audio.js")).listen(job);
  }
}

async function step(id: number): Promise<void> {
  const reply = await nextReply(id);
  if (!("step" in reply)) runs.delete(id);
  parentPort?.postMessage(reply, transferable(reply));
}

async function nextReply(id: number): Promise<Reply> {
  try {
    const next = await runs.get(id)?.next();
    if (!next) return { id, failure: "The job is not open." };
    return next.done ? { id, result: next.value } : { id, step: next.value };
  } catch (error) {
    if (error instanceof ProviderError && error.upstreamMessage !== undefined) {
      return { id, refusal: { message: error.upstreamMessage, param: error.upstreamParam } };
    }
    return { id, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** Its `finally` blocks release the encoders. */
function close(id: number): void {
  const abandoned = runs.get(id);
  runs.delete(id);
  abandoned?.return(null).catch(() => undefined);
}

/** Buffers that can be transferred instead of copied. */
function transferable(reply: Reply): ArrayBuffer[] {
  const all: unknown[] = [];
  if ("step" in reply && "chunk" in reply.step) all.push(reply.step.chunk);
  if ("result" in reply && reply.result !== null) {
    if ("images" in reply.result)
      append(
        all,
        reply.result.images.map((image) => image.bytes),
      );
    if ("bytes" in reply.result) all.push(reply.result.bytes);
  }
  return all.flatMap((bytes) =>
    bytes instanceof Uint8Array && bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength
      ? [bytes.buffer]
      : [],
  );
}
