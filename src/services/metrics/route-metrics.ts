/** Metrics of routes. Upstreams are those of the catalog, and results a closed list. */
import { Counter } from "./instruments.js";

export class RouteMetrics {
  readonly attempts = new Counter({
    name: "sluice_upstream_attempts_total",
    help: "Attempts of routes, by the upstream (community: of a registered model) and the result: ok, or why the route was left.",
    labels: ["upstream", "result"],
  });

  attempted(upstream: string, result: string): void {
    this.attempts.at(upstream, result).value += 1;
  }
}
