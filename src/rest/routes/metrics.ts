/** GET /metrics: how the gateway does, for Prometheus to scrape. It looks at no API key: operators have a token for it. */
import { clientAddressOf } from "../../lib/client-address.js";
import type { Services } from "../../services/services.js";
import type { Route } from "../route.js";

export function addMetricsRoutes(route: Route, { metricsReport }: Services, trustProxyHops: number): void {
  route("/metrics", {
    GET: async (exchange) => {
      const { req } = exchange;
      // A page of somebody else's, open in a browser on the same machine, may ask too, and is not to read the answer.
      exchange.hideFromScripts();
      const text = await metricsReport.read(req.headers.authorization, clientAddressOf(req, trustProxyHops));
      exchange.setHeaders({ "Cache-Control": "private, no-store" });
      exchange.sendBytes(Buffer.from(text), "text/plain; version=0.0.4; charset=utf-8");
    },
  });
}
