/** Videos (docs/spec/video.md): GET /video/{prompt} as bytes, and /v1/videos, generation jobs in OpenAI's format. */
import * as z from "zod";
import { notFound, wrongField } from "../../errors.js";
import { IMAGE_INPUT_BYTES_MAX } from "../../limits.js";
import type { GenerationJob } from "../../services/generation/jobs/job.js";
import { imageQuery } from "../../services/generation/media/images-input.js";
import { fromVideoQuery } from "../../services/generation/media/videos.js";
import { fromVideoBody, videoBody, videoForm } from "../../services/generation/media/videos-body.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { startedHeaders } from "../headers.js";
import { json, type ResultOf, sent } from "../openapi/answer.js";
import { MILL, nullableText, pathId, pathText, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendGenerated } from "../stored-file.js";
import { sendJobContent } from "./generations.js";

/** GET /image/{prompt} with a video model as its default. */
export function addVideoRoutes(route: Route, endpoint: Endpoint, { images, videos }: Pick<Services, "images" | "videos">): void {
  route("/video/*prompt", {
    GET: endpoint({
      id: "getVideo",
      tag: "Video",
      summary: "Generates a video from a prompt, or an image with an image model.",
      answer: sent("video/mp4", "image/jpeg", "image/png"),
      example: { parameters: { prompt: MILL, model: "sandbox/video", duration: 1 } },
      isForAgents: true,
      isBounded: true,
      params: z.object({ prompt: pathText("A description of the content to generate. May contain slashes.") }),
      query: imageQuery,
      handler: (ctx, { params: { prompt }, query, exchange }) => {
        const isNamed = query.model !== undefined;
        return sendGenerated(exchange, isNamed ? images.ask(ctx, prompt, query) : videos.ask(ctx, fromVideoQuery(prompt, query)));
      },
    }),
  });
}

/** Bytes of a form beside its file: texts and boundaries. */
const FORM_FIELDS_BYTES_MAX = 1024 * 1024;

const video = json(
  "Video",
  z.object({
    id: z.string().describe("The ID of the generation."),
    object: z.literal("video"),
    model: z.string(),
    status: z.enum(["in_progress", "completed", "failed"]),
    progress: z.int().min(0).max(100),
    prompt: nullableText,
    seconds: nullableText.describe("The requested length."),
    size: nullableText.describe("The requested size."),
    created_at: seconds,
    completed_at: seconds.nullable(),
    expires_at: seconds.describe("When the job and its video are deleted."),
    remixed_from_video_id: z.null(),
    error: z
      .object({ code: z.string(), message: z.string(), details: z.looseObject({}).optional().describe("The same as in error answers.") })
      .nullable(),
  }),
);

const byGeneration = z.object({ generation: pathId("The ID of a generation job.") });

const EXAMPLE = { model: "sandbox/video", prompt: MILL, seconds: "1", size: "256x256" };

export function addOpenAiVideoRoutes(route: Route, endpoint: Endpoint, { jobs, videos }: Pick<Services, "jobs" | "videos">): void {
  route("/v1/videos", {
    POST: endpoint({
      id: "createVideo",
      tag: "Video",
      summary: "Starts a video generation job, in OpenAI's format.",
      description:
        "Accepts JSON, or a form with the file `input_reference`. `seconds` is 1 to 10. All other fields of GET /video are also accepted.",
      answer: video,
      example: { body: EXAMPLE, form: EXAMPLE },
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
      id: "retrieveVideo",
      tag: "Video",
      summary: "Returns the status of a video.",
      answer: video,
      isForAgents: true,
      params: byGeneration,
      handler: async (ctx, { params }) => toVideoJson(onlyVideo(await jobs.get(ctx, params.generation))),
    }),
    DELETE: endpoint({
      id: "deleteVideo",
      tag: "Video",
      summary: "Cancels a video that is running, and deletes it.",
      answer: json("DeletedVideo", z.object({ id: z.string(), object: z.literal("video.deleted"), deleted: z.literal(true) })),
      isForAgents: true,
      params: byGeneration,
      handler: async (ctx, { params }) => {
        const { id } = onlyVideo(await jobs.get(ctx, params.generation));
        await jobs.remove(ctx, id);
        return { id, object: "video.deleted" as const, deleted: true as const };
      },
    }),
  });
  route("/v1/videos/:generation/content", {
    GET: endpoint({
      id: "downloadVideoContent",
      tag: "Video",
      summary: "Returns the video file. 409 while the job is running.",
      answer: sent("video/mp4"),
      isForAgents: true,
      params: byGeneration,
      handler: async (ctx, { params, exchange }) => {
        const { variant = "video" } = exchange.query.parameters;
        if (variant !== "video") throw wrongField("variant", "must be video: nothing else is kept");
        onlyVideo(await jobs.get(ctx, params.generation));
        await sendJobContent(jobs, ctx, exchange, params.generation);
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
function toVideoJson({
  id,
  model,
  status,
  progress,
  input,
  error,
  createdAt,
  finishedAt,
  expiresAt,
}: GenerationJob): ResultOf<typeof video> {
  const { prompt = null, duration, width, height } = input as { readonly prompt?: string } & Readonly<Record<string, unknown>>;
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
