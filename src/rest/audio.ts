/** GET /audio/{text}: speech, or music by the model (Spec 4.3). */
import { audioQuery } from "../services/generation/speech-input.js";
import type { Services } from "../services/services.js";
import type { Endpoint } from "./endpoint.js";
import { receiptHeaders } from "./headers.js";
import type { Route } from "./route.js";

export function addAudioRoutes(route: Route, endpoint: Endpoint, { audio }: Pick<Services, "audio">): void {
  route("/audio/*text", {
    GET: endpoint({
      query: audioQuery,
      handler: async (ctx, { query, exchange }) => {
        const { file, receipt, isHit } = await audio.get(ctx, exchange.parameter("text"), query);
        exchange.setHeaders({ ...receiptHeaders(receipt), "Cache-Control": "private, no-store", "X-Cache": isHit ? "HIT" : "MISS" });
        exchange.sendBytes(file.bytes, file.contentType);
      },
    }),
    // Unspecified: the key and the parameters are checked as with GET, and nothing is generated.
    HEAD: endpoint({
      query: audioQuery,
      handler: (ctx, { query, exchange }) => {
        audio.check(ctx, exchange.parameter("text"), query);
        exchange.writeHead(200, { "Content-Type": "audio/mpeg" });
        exchange.res.end();
      },
    }),
  });
}
