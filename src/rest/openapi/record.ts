/** Records the schemas of the routes for the OpenAPI document. The same schemas parse the requests. */
import type { Endpoint, EndpointOptions } from "../endpoint.js";
import type { OAuthEndpoint } from "../oauth-endpoint.js";
import type { PageEndpoint } from "../pages/page-endpoint.js";
import type { Route, RouteHandler, RouteMethods } from "../route.js";

/** The part of an endpoint that the document describes. */
export interface RecordedEndpoint
  extends Pick<
    EndpointOptions<unknown, unknown>,
    "isPublic" | "isGeneration" | "isForAgents" | "isBounded" | "body" | "form" | "reads" | "query"
  > {
  /** Answers with HTML pages, also for errors, and parses its own forms. */
  readonly isPage?: true;
  /** Also accepts its body as a form, reads no key, and answers errors in the OAuth format. */
  readonly isOAuth?: true;
}

export interface RecordedRoute {
  /** The path in Express syntax: `/keys/:id`, `/text/*prompt`. */
  readonly path: string;
  readonly methods: Readonly<Record<string, RecordedEndpoint>>;
}

const endpoints = new WeakMap<RouteHandler, RecordedEndpoint>();

/** Records the options of the handlers that an `endpoint` makes. */
export function recordingEndpoint(endpoint: Endpoint): Endpoint {
  return (options) => {
    const handler = endpoint(options);
    endpoints.set(handler, options as RecordedEndpoint);
    return handler;
  };
}

/** The same for pages. */
export function recordingPageEndpoint(page: PageEndpoint): PageEndpoint {
  return (options) => {
    const handler = page(options);
    endpoints.set(handler, { isPublic: true, isPage: true, ...(options.query && { query: options.query }) });
    return handler;
  };
}

/** The same for OAuth endpoints. */
export function recordingOAuthEndpoint(endpoint: OAuthEndpoint): OAuthEndpoint {
  return (options) => {
    const handler = endpoint(options);
    endpoints.set(handler, { isPublic: true, isOAuth: true, body: options.body });
    return handler;
  };
}

/** A `route` that records its schemas. */
export function recordingRoute(route: Route, recorded: RecordedRoute[], prefix = ""): Route {
  return (path, methods) => {
    recorded.push({ path: prefix + path, methods: toRecordedMethods(methods) });
    route(path, methods);
  };
}

/** Handlers without an endpoint, such as the liveness check, have no input. */
function toRecordedMethods(methods: RouteMethods): Record<string, RecordedEndpoint> {
  return Object.fromEntries(Object.entries(methods).map(([method, handler]) => [method, endpoints.get(handler) ?? { isPublic: true }]));
}
