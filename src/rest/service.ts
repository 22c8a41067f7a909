/** What the service is and whether it works: the landing answer, liveness and readiness. Open to all, and no key is looked at. */
import { serviceUnavailable } from "../errors.js";
import type { Route } from "./route.js";

export interface ServiceInfo {
  /** True when generations can be served. */
  readonly isReady: () => boolean | Promise<boolean>;
}

export function addServiceRoutes(route: Route, { isReady }: ServiceInfo): void {
  route("/", {
    GET: (exchange) =>
      exchange.sendJson({
        name: "Sluice",
        description: "A GraphQL-first generative-AI gateway: one key, one bill, every kind of generation.",
        links: {
          graphql: "/graphql",
          chatCompletions: "/v1/chat/completions",
          models: "/v1/models",
          catalog: "/models",
          mcp: "/mcp",
          health: "/healthz",
          readiness: "/readyz",
        },
      }),
  });
  route("/healthz", {
    GET: (exchange) => exchange.sendJson({ status: "ok" }),
  });
  route("/readyz", {
    GET: async (exchange) => {
      if (!(await isReady())) throw serviceUnavailable("The gateway cannot serve generations at the moment.");
      exchange.sendJson({ status: "ready" });
    },
  });
}
