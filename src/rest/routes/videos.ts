/** Videos (docs/spec/video.md): GET /video/{prompt} as bytes, and /v1/videos, generation jobs in OpenAI's format. */

import { notFound, wrongField } from "../../errors.js";
import { IMAGE_INPUT_BYTES_MAX } from "../../limits.js";
import type { GenerationJob } from "../../services/generation/jobs/job.js";
import { imageQuery } from "../../services/generation/media/images-input.js";
import { fromVideoQuery } from "../../services/generation/media/videos.js";
import { fromVideoBody, videoBody, videoForm } from "../../services/generation/media/videos-body.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { startedHeaders } from "../headers.js";
import type { Route } from "../route.js";
import { sendGenerated } from "../stored-file.js";
import { sendJobContent } from "./generations.js";

/** GET /image/{prompt} with a video model as its default. */
export function addVideoRoutes(route: Route, endpoint: Endpoint, { images, videos }: Pick<Services, "images" | "videos">): void {
  route("/video/*prompt", {
    GET: endpoint({
      isForAgents: true,
      isBounded: true,
      query: imageQuery,
      handler: (ctx, { query, exchange }) => {
        const prompt = exchange.parameter("prompt");
        const isNamed = query.model !== undefined;
        return sendGenerated(exchange, isNamed ? images.ask(ctx, prompt, query) : videos.ask(ctx, fromVideoQuery(prompt, query)));
      },
    }),
  });
}

/** Bytes of a form beside its file: texts and boundaries. */
const FORM_FIELDS_BYTES_MAX = 1024 * 1024;

export function addOpenAiVideoRoutes(route: Route, endpoint: Endpoint, { jobs, videos }: Pick<Services, "jobs" | "videos">): void {
  route("/v1/videos", {
    POST: endpoint({
      isForAgents: true,
      isGeneration: true,
      body: videoBody,
      form: {
        fields: videoForm,
        files: { input_reference: { countMax: 1 } },
        fileBytesMax: IMAGE_INPUT_BYTES_MAX,
        bytesMax: IMAGE_INPUT_BYTES_MAX + FORM_FIELDS_BYTES_MAX,
      },
      handler: async (ctx, { body, files, exchange }) => {
        const { input, extra } = fromVideoBody(body);
        const job = await videos.start(ctx, input, { extra, files: files.input_reference ?? [] });
        exchange.setHeaders(startedHeaders(job.id));
        return toVideoJson(job);
      },
    }),
  });
  route("/v1/videos/:generation", {
    GET: endpoint({
      isForAgents: true,
      handler: async (ctx, { exchange }) => toVideoJson(onlyVideo(await jobs.get(ctx, exchange.parameter("generation")))),
    }),
    DELETE: endpoint({
      isForAgents: true,
      handler: async (ctx, { exchange }) => {
        const { id } = onlyVideo(await jobs.get(ctx, exchange.parameter("generation")));
        await jobs.remove(ctx, id);
        return { id, object: "video.deleted", deleted: true };
      },
    }),
  });
  route("/v1/videos/:generation/content", {
    GET: endpoint({
      isForAgents: true,
      handler: async (ctx, { exchange }) => {
        const { variant = "video" } = exchange.query.parameters;
        if (variant !== "video") throw wrongField("variant", "must be video: nothing else is kept");
        onlyVideo(await jobs.get(ctx, exchange.parameter("generation")));
        await sendJobContent(jobs, ctx, exchange);
      },
    }),
  });
}

function onlyVideo(job: GenerationJob): GenerationJob {
  if (job.modality !== "video") throw notFound("video");
  return job;
}

const STATUSES = { running: "in_progress", succeeded: "completed", failed: "failed", cancelled: "failed" } as const;

/** OpenAI's `video` object. */
function toVideoJson({ id, model, status, progress, input, error, createdAt, finishedAt, expiresAt }: GenerationJob) {
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
