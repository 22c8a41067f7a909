/** GET /video/{prompt} (docs/spec/video.md): GET /image/{prompt}, whose model is one of video unless it is named. */
import { imageQuery } from "../../services/generation/media/images-input.js";
import { fromVideoQuery } from "../../services/generation/media/videos.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { sendGenerated } from "../generated-file.js";
import type { Route } from "../route.js";

export function addVideoRoutes(route: Route, endpoint: Endpoint, { images, videos }: Pick<Services, "images" | "videos">): void {
  route("/video/*prompt", {
    GET: endpoint({
      query: imageQuery,
      handler: (ctx, { query, exchange }) => {
        const prompt = exchange.parameter("prompt");
        const isNamed = query.model !== undefined;
        return sendGenerated(exchange, isNamed ? images.ask(ctx, prompt, query) : videos.ask(ctx, fromVideoQuery(prompt, query)));
      },
    }),
  });
}
