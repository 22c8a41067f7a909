/**
 * Video over OpenAI's `/videos` jobs (docs/spec/video.md#upstreams): created, polled until completed or failed, fetched.
 *
 * The format has `prompt`, `seconds`, `size` and one `input_reference`; `warnings` names every other stated option. Bodies are multipart,
 * as OpenAI's clients send them, which all copies of the format read.
 */

import { hasErrorContent, redactSecrets, toEmbeddedError } from "../../formats/openai-chat/errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { parseObject } from "../../formats/upstream-json.js";
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
import { describeStatus, type JobProgress, toJobProgress } from "../job-status.js";
import type { MediaFile, VideoAnswer, VideoCall, VideoProvider } from "../media.js";
import type { UpstreamResponse } from "../upstream-response.js";
import { contentTypeOf, type OpenAiClient } from "./client.js";

/** Factor between two waits. */
const POLL_BACKOFF = 1.5;
const POLL_AFTER_HEADER = "openai-poll-after-ms";
const ID_CHARS_MAX = 500;
/** OpenAI's two orientations of 720p. */
const SIZE_OF_RATIO = { "16:9": "1280x720", "9:16": "720x1280" } as const;
/** Error codes of a failed job that refuse the request: no fallback is tried, and the caller gets the reason. */
const REFUSAL_CODE = /moderation|content_policy|content_filter|safety|invalid_(?:prompt|request)/i;

/** The relevant fields of a video job. */
interface VideoJob {
  readonly id: string;
  /** Null for an unknown status. */
  readonly status: JobProgress | null;
  /** 0 to 100; null when not reported. */
  readonly progress: number | null;
  /** The video's length as stated by the upstream. */
  readonly durationMs: number | null;
  readonly error: unknown;
  /** When the upstream asks to be polled again. */
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
      // A job with an unknown status, or completed and not fetched, is paid for and kept, so that the operator can fetch it.
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

  /** Yields the job at each poll until it has ended. A few consecutive failed polls do not fail the job. */
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

  /** Asks the upstream to delete the job, which may be too late to stop it. */
  private discard(id: string): void {
    const signal = AbortSignal.timeout(VIDEO_DISCARD_TIMEOUT_MS);
    this.client
      .send({ method: "DELETE", path: pathOf(id), accept: "application/json", signal, isStreamed: false })
      .then((response) => response.finish())
      .catch(() => undefined);
  }

  /** `known` is the id of a polled job: its answer may omit it. */
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
    if (status === null) this.client.upstream.onUnknownWord?.("job-status", redactSecrets(describeStatus(word), this.client.secrets));
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

/** A seed of 0 is the default of GET routes (docs/spec/generation.md#seeds), not a stated one. */
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

/** Bounded; null when it is not a number. */
function toNumber(value: unknown, min: number, max: number): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? Math.min(Math.max(number, min), max) : null;
}

/** `seconds` is text in OpenAI's format. */
function toDurationMs(seconds: unknown): number | null {
  const milliseconds = (toNumber(seconds, 0, Number.MAX_SAFE_INTEGER) ?? 0) * 1000;
  return milliseconds > 0 && milliseconds <= Number.MAX_SAFE_INTEGER ? Math.round(milliseconds) : null;
}

/** An unreadable answer, such as a proxy's page, says nothing about the job. */
function isPassingLook(error: unknown): boolean {
  return isPassing(error) || (error instanceof ProviderError && error.kind === "invalid-response");
}
