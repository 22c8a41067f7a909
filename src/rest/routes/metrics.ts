/** GET /metrics for Prometheus. Reads no API key: operators have a token for it. */
import { clientAddressOf } from "../../lib/client-address.js";
import type { Services } from "../../services/services.js";
import type { Route } from "../route.js";

export function addMetricsRoutes(route: Route, { metricsReport }: Services, trustProxyHops: number): void {
  route("/metrics", {
    GET: async (exchange) => {
      const { req } = exchange;
      // Pages of other sites in a browser on this machine must not read the answer.
      exchange.hideFromScripts();
      const text = await metricsReport.read(req.headers.authorization, clientAddressOf(req, trustProxyHops));
      exchange.setHeaders({ "Cache-Control": "private, no-store" });
      exchange.sendBytes(Buffer.from(text), "text/plain; version=0.0.4; charset=utf-8");
    },
  });
}
