/**
 * OpenAI's `/videos` jobs, for the fake upstream: created, looked at, fetched, deleted. Each look at a job is its next step:
 *
 *     const videos = createFakeVideos({ clip: await readClip(3), progress: [10, 60] });
 *     upstream.replyAlways(videos.reply);
 */
import { readFile } from "node:fs/promises";
import type { RecordedRequest } from "./fake-upstream.js";
import { errorBody } from "./openai-bodies.js";
import { handler, type Reply } from "./upstream-replies.js";

const JOB_PATH = /\/videos\/([^/?]+)(\/content)?(?:\?|$)/;

export interface FakeVideosOptions {
  clip: Uint8Array;
  contentType: string;
  /** What each look at a running job tells, in order; then it is completed, or has failed. */
  progress: readonly number[];
  /** The job fails with this instead of being completed. */
  error: { code: string; message: string } | null;
  /** What the job says of the clip's length; null leaves it out. */
  seconds: string | null;
  /** Statuses of the next polls, before the job's state is answered. */
  troubles: number[];
  /** How soon the next look is wanted; null says nothing. */
  pollAfterMs: number | null;
  /** A running job makes no step before this has settled. */
  gate: Promise<unknown> | null;
}

export interface FakeVideos {
  readonly reply: Reply;
  /** Set at will. */
  readonly options: FakeVideosOptions;
  /** The form of each job that was created, in order. */
  readonly forms: readonly FormData[];
  /** Ids of the jobs that were deleted. */
  readonly deleted: readonly string[];
}

/** A clip of 1, 3 or 10 seconds, or the beginning of one that is sent in fragments and tells no length. Made by ffmpeg. */
export function readClip(length: 1 | 3 | 10 | "without-length"): Promise<Buffer> {
  const name = typeof length === "number" ? `${length}s` : length;
  return readFile(new URL(`../fixtures/video/clip-${name}.mp4`, import.meta.url));
}

export function createFakeVideos(stated: Partial<FakeVideosOptions> & Pick<FakeVideosOptions, "clip">): FakeVideos {
  const options: FakeVideosOptions = {
    contentType: "video/mp4",
    progress: [],
    error: null,
    seconds: null,
    troubles: [],
    pollAfterMs: 20,
    gate: null,
    ...stated,
  };
  const forms: FormData[] = [];
  const deleted: string[] = [];
  const looks = new Map<string, number>();

  const jobOf = (id: string, step: number) => {
    const isOver = step >= options.progress.length;
    const status = isOver ? (options.error ? "failed" : "completed") : step === 0 ? "queued" : "in_progress";
    return {
      id,
      object: "video",
      status,
      progress: isOver ? 100 : options.progress[step],
      error: isOver ? options.error : null,
      ...(options.seconds !== null && { seconds: options.seconds }),
    };
  };

  const answer = async (request: RecordedRequest): Promise<{ status: number; type?: string; body: unknown }> => {
    if (request.method === "POST" && request.path.split("?")[0]?.endsWith("/videos")) {
      forms.push(await formOf(request));
      const id = `video_${forms.length}`;
      looks.set(id, 0);
      return { status: 200, body: { ...jobOf(id, 0), status: "queued", progress: 0, error: null } };
    }
    const [, id = "", content] = JOB_PATH.exec(request.path) ?? [];
    const step = looks.get(id);
    if (step === undefined) return { status: 404, body: errorBody("No such video.") };
    if (request.method === "DELETE") {
      deleted.push(id);
      return { status: 200, body: { id, object: "video.deleted", deleted: true } };
    }
    if (content !== undefined) return { status: 200, type: options.contentType, body: options.clip };
    const trouble = options.troubles.shift();
    if (trouble !== undefined) return { status: trouble, body: errorBody(`Upstream says ${trouble}.`) };
    await options.gate;
    looks.set(id, step + 1);
    return { status: 200, body: jobOf(id, step) };
  };

  const reply = handler(async (request, response) => {
    const { status, type = "application/json", body } = await answer(request);
    const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
    response.writeHead(status, {
      "content-type": type,
      "content-length": bytes.byteLength,
      ...(options.pollAfterMs !== null && { "openai-poll-after-ms": String(options.pollAfterMs) }),
    });
    response.end(bytes);
  });
  return { reply, options, forms, deleted };
}

export function formOf(request: RecordedRequest): Promise<FormData> {
  const headers = { "content-type": request.headers["content-type"] ?? "" };
  return new Response(new Uint8Array(request.body), { headers }).formData();
}
