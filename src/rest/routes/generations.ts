/** Results of generation jobs over REST. Jobs are started, watched and cancelled over GraphQL, or as /v1/videos. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { Exchange } from "../../http/exchange.js";
import { INERT_FILE_POLICY } from "../../lib/inert-answer.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { sent } from "../openapi/answer.js";
import { pathId } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendStoredFile } from "../stored-file.js";

export function addGenerationRoutes(route: Route, endpoint: Endpoint, { jobs }: Pick<Services, "jobs">): void {
  route("/generations/:generation/content", {
    GET: endpoint({
      id: "getGenerationContent",
      tag: "Video",
      summary: "Returns the result of a generation job.",
      description: "409 while the job is running. 404 when it did not succeed, or a day after it did.",
      answer: sent("video/mp4", "audio/mpeg"),
      isForAgents: true,
      params: z.object({ generation: pathId("The ID of a generation job.") }),
      handler: (ctx, { params, exchange }) => sendJobContent(jobs, ctx, exchange, params.generation),
    }),
  });
}

export async function sendJobContent(jobs: Services["jobs"], ctx: RequestContext, exchange: Exchange, id: string): Promise<void> {
  const { contentType, sizeBytes, open } = await jobs.content(ctx, id);
  await sendStoredFile(
    exchange,
    { etag: `"${id}"`, sizeBytes, open },
    {
      "Content-Type": contentType,
      "Cache-Control": "private, no-store",
      "X-Generation-Id": id,
      "Content-Security-Policy": INERT_FILE_POLICY,
    },
  );
}
