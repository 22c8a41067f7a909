/** Generation jobs over REST: where a result is fetched. Jobs are started, watched and cancelled over GraphQL, or as /v1/videos. */
import type { RequestContext } from "../context.js";
import type { Services } from "../services/services.js";
import type { Endpoint } from "./endpoint.js";
import type { Exchange } from "./exchange.js";
import type { Route } from "./route.js";
import { sendStoredFile } from "./stored-file.js";

export function addGenerationRoutes(route: Route, endpoint: Endpoint, { jobs }: Pick<Services, "jobs">): void {
  route("/generations/:generation/content", {
    GET: endpoint({ handler: (ctx, { exchange }) => sendJobContent(jobs, ctx, exchange) }),
  });
}

/** What a model made is shown by a browser as nothing that it would run. */
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
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    },
  );
}
