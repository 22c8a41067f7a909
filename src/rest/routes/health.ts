/** The landing answer, liveness and readiness. Public, without reading a key. */
import * as z from "zod";
import { notFound, serviceUnavailable } from "../../errors.js";
import { sendError } from "../../http/errors.js";
import { openEndpoint } from "../open-endpoint.js";
import { json, jsonOr } from "../openapi/answer.js";
import { prefersHtml } from "../pages/error-page.js";
import { sendPageAnswer } from "../pages/page.js";
import type { Route, RouteHandler } from "../route.js";

export interface ServiceInfo {
  /** True when generations can be served. */
  readonly isReady: () => boolean | Promise<boolean>;
  /** The answer at / for browsers. */
  readonly startPage: RouteHandler;
}

const service = json("Service", z.looseObject({ name: z.string(), description: z.string(), links: z.record(z.string(), z.string()) }));
const status = json("Status", z.object({ status: z.string() }));

export function addHealthRoutes(route: Route, { isReady, startPage }: ServiceInfo): void {
  route("/", {
    GET: openEndpoint({
      id: "getService",
      tag: "Service",
      summary: "Lists the entry points of the gateway.",
      answer: jsonOr(service),
      handler: (exchange) => {
        exchange.res.setHeader("Vary", "Accept");
        if (prefersHtml(exchange)) return startPage(exchange);
        return {
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
        };
      },
    }),
  });
  route("/healthz", {
    GET: openEndpoint({
      id: "getHealth",
      tag: "Service",
      summary: "Answers while the process is alive.",
      answer: status,
      handler: () => ({ status: "ok" }),
    }),
  });
  route("/readyz", {
    GET: openEndpoint({
      id: "getReadiness",
      tag: "Service",
      summary: "Answers when generations can be served.",
      answer: status,
      handler: async () => {
        if (!(await isReady())) throw serviceUnavailable("The gateway cannot serve generations at the moment.");
        return { status: "ready" };
      },
    }),
  });
}

/** For a host with pages only: redirects browsers to its pages, and answers others with 404. */
export function addStartRedirect(route: Route, target: string): void {
  route("/", {
    GET: openEndpoint({
      id: null,
      handler: (exchange) => {
        exchange.res.setHeader("Vary", "Accept");
        if (!prefersHtml(exchange)) return sendError(exchange, notFound("path"));
        return sendPageAnswer(exchange, { redirectTo: target });
      },
    }),
  });
}
