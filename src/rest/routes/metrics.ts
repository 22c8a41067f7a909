/** GET /metrics for Prometheus. Reads no API key: operators have a token for it. */
import { clientAddressOf } from "../../lib/client-address.js";
import type { Services } from "../../services/services.js";
import { openEndpoint } from "../open-endpoint.js";
import { sent } from "../openapi/answer.js";
import type { Route } from "../route.js";

export function addMetricsRoutes(route: Route, { metricsReport }: Services, trustProxyHops: number): void {
  route("/metrics", {
    GET: openEndpoint({
      id: "getMetrics",
      tag: "Service",
      summary: "Returns metrics in Prometheus's text format.",
      description:
        "Needs the operator's METRICS_TOKEN as the bearer token, not an API key. Without a configured token, the metrics are open on a gateway that only its own machine can reach, and answer 404 on all others.",
      answer: sent("text/plain"),
      errors: ["404"],
      handler: async (exchange) => {
        const { req } = exchange;
        // Pages of other sites in a browser on this machine must not read the answer.
        exchange.hideFromScripts();
        const text = await metricsReport.read(req.headers.authorization, clientAddressOf(req, trustProxyHops));
        exchange.setHeaders({ "Cache-Control": "private, no-store" });
        exchange.sendBytes(Buffer.from(text), "text/plain; version=0.0.4; charset=utf-8");
      },
    }),
  });
}
