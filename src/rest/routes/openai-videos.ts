/** POST /v1/videos and what follows: generation jobs in OpenAI's format, for its clients. */
import { notFound, wrongField } from "../../errors.js";
import { IMAGE_INPUT_BYTES_MAX } from "../../limits.js";
import type { GenerationJob } from "../../services/generation/jobs/job.js";
import { fromVideoBody, videoBody, videoForm } from "../../services/generation/media/videos-body.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { startedHeaders } from "../headers.js";
import { toVideoJson } from "../presenters/videos.js";
import type { Route } from "../route.js";
import { sendJobContent } from "./generations.js";

/** What a form takes beside its file: texts, and the boundaries between them. */
const FORM_FIELDS_BYTES_MAX = 1024 * 1024;

export function addOpenAiVideoRoutes(route: Route, endpoint: Endpoint, { jobs, videos }: Pick<Services, "jobs" | "videos">): void {
  route("/v1/videos", {
    POST: endpoint({
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
    GET: endpoint({ handler: async (ctx, { exchange }) => toVideoJson(onlyVideo(await jobs.get(ctx, exchange.parameter("generation")))) }),
    DELETE: endpoint({
      handler: async (ctx, { exchange }) => {
        const { id } = onlyVideo(await jobs.get(ctx, exchange.parameter("generation")));
        await jobs.remove(ctx, id);
        return { id, object: "video.deleted", deleted: true };
      },
    }),
  });
  route("/v1/videos/:generation/content", {
    GET: endpoint({
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
