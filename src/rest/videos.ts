/** GET /video/{prompt} (decisions "Generation"): GET /image/{prompt}, whose model is one of video unless it is named. */

import { imageQuery } from "../services/generation/images-input.js";
import { fromVideoQuery } from "../services/generation/videos.js";
import type { Services } from "../services/services.js";
import type { Endpoint } from "./endpoint.js";
import { receiptHeaders } from "./headers.js";
import type { Route } from "./route.js";

export function addVideoRoutes(route: Route, endpoint: Endpoint, { images, videos }: Pick<Services, "images" | "videos">): void {
  route("/video/*prompt", {
    GET: endpoint({
      query: imageQuery,
      handler: async (ctx, { query, exchange }) => {
        const prompt = exchange.parameter("prompt");
        const named = query.model !== undefined;
        const { file, receipt, isHit } = await (named ? images.get(ctx, prompt, query) : videos.get(ctx, fromVideoQuery(prompt, query)));
        exchange.setHeaders({ ...receiptHeaders(receipt), "Cache-Control": "private, no-store", "X-Cache": isHit ? "HIT" : "MISS" });
        exchange.sendBytes(file.bytes, file.contentType);
      },
    }),
    // Unspecified: the key and the parameters are checked as with GET, and nothing is generated.
    HEAD: endpoint({
      query: imageQuery,
      handler: (_ctx, { query, exchange }) => {
        fromVideoQuery(exchange.parameter("prompt"), query);
        exchange.writeHead(200, { "Cache-Control": "private, no-store", "Content-Type": "video/mp4" });
        exchange.res.end();
      },
    }),
  });
}
