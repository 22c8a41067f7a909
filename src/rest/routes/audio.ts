/** GET /audio/{text}: speech, or music by the model (docs/spec/audio.md#get-audio). */
import { audioQuery } from "../../services/generation/media/speech.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { sendGenerated } from "../generated-file.js";
import type { Route } from "../route.js";

export function addAudioRoutes(route: Route, endpoint: Endpoint, { audio }: Pick<Services, "audio">): void {
  route("/audio/*text", {
    GET: endpoint({
      query: audioQuery,
      handler: (ctx, { query, exchange }) => sendGenerated(exchange, audio.ask(ctx, exchange.parameter("text"), query)),
    }),
  });
}
