/** Results of generation jobs over REST. Jobs are started, watched and cancelled over GraphQL, or as /v1/videos. */
import type { RequestContext } from "../../context.js";
import type { Exchange } from "../../http/exchange.js";
import { INERT_FILE_POLICY } from "../../lib/inert-answer.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";
import { sendStoredFile } from "../stored-file.js";

export function addGenerationRoutes(route: Route, endpoint: Endpoint, { jobs }: Pick<Services, "jobs">): void {
  route("/generations/:generation/content", {
    GET: endpoint({ isForAgents: true, handler: (ctx, { exchange }) => sendJobContent(jobs, ctx, exchange) }),
  });
}

export async function sendJobContent(jobs: Services["jobs"], ctx: RequestContext, exchange: Exchange): Promise<void> {
  const id = exchange.parameter("generation");
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
