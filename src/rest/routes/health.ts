/** The landing answer, liveness and readiness. Public, without reading a key. */
import { notFound, serviceUnavailable } from "../../errors.js";
import { sendError } from "../../http/errors.js";
import { prefersHtml } from "../pages/error-page.js";
import { sendPageAnswer } from "../pages/page.js";
import type { Route, RouteHandler } from "../route.js";

export interface ServiceInfo {
  /** True when generations can be served. */
  readonly isReady: () => boolean | Promise<boolean>;
  /** The answer at / for browsers. */
  readonly startPage: RouteHandler;
}

export function addHealthRoutes(route: Route, { isReady, startPage }: ServiceInfo): void {
  route("/", {
    GET: (exchange) => {
      exchange.res.setHeader("Vary", "Accept");
      if (prefersHtml(exchange)) return startPage(exchange);
      return exchange.sendJson({
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
          metrics: "/metrics",
        },
      });
    },
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

/** For a host with pages only: redirects browsers to its pages, and answers others with 404. */
export function addStartRedirect(route: Route, target: string): void {
  route("/", {
    GET: (exchange) => {
      exchange.res.setHeader("Vary", "Accept");
      if (!prefersHtml(exchange)) return sendError(exchange, notFound("path"));
      return sendPageAnswer(exchange, { redirectTo: target });
    },
  });
}
