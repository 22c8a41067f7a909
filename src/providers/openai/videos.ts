/**
 * Video over OpenAI's `/videos` jobs (docs/spec/video.md#upstreams): created, polled until it is completed or has failed, fetched.
 *
 * The format knows `prompt`, `seconds`, `size` and one `input_reference`; every other option that a caller states is named in
 * `warnings`. Bodies are multipart, as OpenAI's own clients send them: servers that copy the format all read that.
 */
import { closedTypeOf } from "../../lib/content-types.js";
import { isRecord } from "../../lib/json.js";
import {
  UPSTREAM_BODY_BYTES_MAX,
  VIDEO_BYTES_MAX,
  VIDEO_DISCARD_TIMEOUT_MS,
  VIDEO_POLL_FAILURES_MAX,
  VIDEO_POLL_MS_FIRST,
  VIDEO_POLL_MS_MAX,
  VIDEO_POLL_MS_MIN,
} from "../../limits.js";
import { isPassing, pause, repeatFreeStep, retryAfterMsOf } from "../free-steps.js";
import type { UpstreamResponse } from "../http.js";
import { describeStatus, type JobProgress, toJobProgress } from "../job-status.js";
import type { MediaFile, VideoAnswer, VideoCall, VideoProvider } from "../media.js";
import { ProviderError } from "../provider.js";
import { contentTypeOf, type OpenAiClient } from "./client.js";
import { hasErrorContent, redactSecrets, toEmbeddedError } from "./errors.js";
import { parseObject } from "./json.js";

/** Each wait is this much longer than the one before. */
const POLL_BACKOFF = 1.5;
/** OpenAI says here when to look again. */
const POLL_AFTER_HEADER = "openai-poll-after-ms";
const ID_CHARS_MAX = 500;
/** OpenAI's own two orientations of 720p. */
const SIZE_OF_RATIO = { "16:9": "1280x720", "9:16": "720x1280" } as const;
/** Error codes of a failed job that refuse the request itself: no other upstream is tried, and the caller gets the reason. */
const REFUSAL_CODE = /moderation|content_policy|content_filter|safety|invalid_(?:prompt|request)/i;

/** What of a video job matters here. */
interface VideoJob {
  readonly id: string;
  /** Null when the upstream's word for it is not known. */
  readonly status: JobProgress | null;
  /** 0 to 100; null when it is not told. */
  readonly progress: number | null;
  /** The clip's length as the upstream states it. */
  readonly durationMs: number | null;
  readonly error: unknown;
  /** When the upstream wants to be asked again. */
  readonly pollAfterMs: number | null;
}

export class OpenAiVideoProvider implements VideoProvider {
  constructor(private readonly client: OpenAiClient) {}

  async generate(call: VideoCall): Promise<VideoAnswer> {
    let job = await this.create(call);
    const { signal } = call;
    try {
      for await (const next of this.follow(job, call)) job = next;
      if (job.status === "failed") throw this.toFailure(job);
      const file = await repeatFreeStep(signal, () => this.download(job.id, signal));
      return { ...file, durationMs: job.durationMs, usage: null, warnings: warningsOf(call) };
    } catch (error) {
      // One that was not understood, or is completed and could not be fetched, has been paid for: the operator may still fetch it.
      if (signal.aborted || job.status === "running" || job.status === "failed") this.discard(job.id);
      throw error;
    }
  }

  private async create(call: VideoCall): Promise<VideoJob> {
    const { body, contentType } = await toMultipart(toForm(call));
    const { signal } = call;
    return this.readJob(
      await this.client.send({ path: "/videos", contentType, accept: "application/json", body, signal, isStreamed: false }),
    );
  }

  /** Yields the job at each look, until it has ended. A few failed looks in a row do not lose a job that is running all the same. */
  private async *follow(created: VideoJob, { signal, onProgress }: VideoCall): AsyncGenerator<VideoJob> {
    let job = created;
    let reported = 0;
    let waitMs = VIDEO_POLL_MS_FIRST;
    let failures = 0;
    let failure: unknown;
    for (;;) {
      if (job.progress !== null && job.progress > reported) {
        reported = job.progress;
        onProgress(reported);
      }
      if (job.status === "completed" || job.status === "failed") return;
      await pause(Math.max((job.pollAfterMs ?? waitMs) * (failures + 1), retryAfterMsOf(failure)), signal);
      waitMs = Math.min(waitMs * POLL_BACKOFF, VIDEO_POLL_MS_MAX);
      try {
        job = await this.look(created.id, signal);
        failures = 0;
        failure = undefined;
        yield job;
      } catch (error) {
        failures += 1;
        failure = error;
        if (signal.aborted || !isPassingLook(error) || failures > VIDEO_POLL_FAILURES_MAX) throw error;
      }
    }
  }

  private async look(id: string, signal: AbortSignal): Promise<VideoJob> {
    return this.readJob(await this.client.send({ path: pathOf(id), accept: "application/json", signal, isStreamed: true }), id);
  }

  private async download(id: string, signal: AbortSignal): Promise<MediaFile> {
    const response = await this.client.send({ path: `${pathOf(id)}/content`, accept: "video/*, */*;q=0.1", signal, isStreamed: true });
    return { bytes: await response.readAll(VIDEO_BYTES_MAX), contentType: closedTypeOf(contentTypeOf(response)) };
  }

  /** Asks the upstream to delete the job. It may be too late to stop it. */
  private discard(id: string): void {
    const signal = AbortSignal.timeout(VIDEO_DISCARD_TIMEOUT_MS);
    this.client
      .send({ method: "DELETE", path: pathOf(id), accept: "application/json", signal, isStreamed: false })
      .then((response) => response.finish())
      .catch(() => undefined);
  }

  /** `known` is the id of a job that was looked at: its answer need not repeat it. */
  private async readJob(response: UpstreamResponse, known?: string): Promise<VideoJob> {
    const body = parseObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX));
    if (body === null) throw new ProviderError("invalid-response", "The upstream's answer is not a JSON object.");
    const { error, status: word } = body;
    const id = known ?? body.id;
    const status = toJobProgress(word);
    if (hasErrorContent(error) && status !== "failed") throw toEmbeddedError(error, this.client.secrets);
    if (typeof id !== "string" || id === "" || id.length > ID_CHARS_MAX) {
      throw new ProviderError("invalid-response", "The upstream's answer is not a video job.");
    }
    if (status === null) this.client.upstream.noteUnknown?.("job-status", redactSecrets(describeStatus(word), this.client.secrets));
    return {
      id,
      status,
      progress: toNumber(body.progress, 0, 100),
      durationMs: toDurationMs(body.seconds),
      error,
      pollAfterMs: toNumber(response.headers[POLL_AFTER_HEADER], VIDEO_POLL_MS_MIN, VIDEO_POLL_MS_MAX),
    };
  }

  private toFailure({ error }: VideoJob): ProviderError {
    const code = isRecord(error) && typeof error.code === "string" ? error.code : "";
    if (isRecord(error) && REFUSAL_CODE.test(code)) return toEmbeddedError({ ...error, status: 400 }, this.client.secrets);
    return toEmbeddedError(hasErrorContent(error) ? error : { message: "The video job failed." }, this.client.secrets);
  }
}

function toForm(call: VideoCall): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(call.extra)) {
    if (value !== undefined && value !== null) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  form.set("model", call.upstreamModel);
  form.set("prompt", call.prompt);
  if (call.seconds !== null) form.set("seconds", String(call.seconds));
  if (call.size !== null) form.set("size", `${call.size.width}x${call.size.height}`);
  else if (call.aspectRatio !== null) form.set("size", SIZE_OF_RATIO[call.aspectRatio]);
  const [reference] = call.images;
  if (reference) form.set("input_reference", new Blob([new Uint8Array(reference.bytes)], { type: reference.contentType }), reference.name);
  return form;
}

async function toMultipart(form: FormData): Promise<{ body: Uint8Array; contentType: string }> {
  const encoded = new Response(form);
  return { body: new Uint8Array(await encoded.arrayBuffer()), contentType: encoded.headers.get("content-type") ?? "multipart/form-data" };
}

/** A seed of 0 is the default of the GET routes (docs/spec/generation.md#seeds): no caller stated it. */
function warningsOf(call: VideoCall): string[] {
  const warnings: string[] = [];
  if (call.hasAudio) warnings.push("audio: this upstream has no such option; whether the video has sound is up to the model.");
  if (call.seed) warnings.push("seed: this upstream has no such option.");
  if (call.negativePrompt !== null) warnings.push("negative_prompt: this upstream has no such option.");
  if (call.images.length > 1) warnings.push("image: this upstream takes one reference; the others had no effect.");
  return warnings;
}

function pathOf(id: string): string {
  return `/videos/${encodeURIComponent(id)}`;
}

/** Bounded; null when it is not a number at all. */
function toNumber(value: unknown, min: number, max: number): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? Math.min(Math.max(number, min), max) : null;
}

/** `seconds` is text in OpenAI's format. */
function toDurationMs(seconds: unknown): number | null {
  const milliseconds = (toNumber(seconds, 0, Number.MAX_SAFE_INTEGER) ?? 0) * 1000;
  return milliseconds > 0 && milliseconds <= Number.MAX_SAFE_INTEGER ? Math.round(milliseconds) : null;
}

/** An answer that cannot be read, such as a proxy's page, says nothing of the job. */
function isPassingLook(error: unknown): boolean {
  return isPassing(error) || (error instanceof ProviderError && error.kind === "invalid-response");
}
