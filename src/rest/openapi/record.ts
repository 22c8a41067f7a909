/** What a router was given, remembered for the OpenAPI document: the schemas there are the ones that parse the requests. */
import type { Endpoint, EndpointOptions } from "../endpoint.js";
import type { OAuthEndpoint } from "../oauth-endpoint.js";
import type { PageEndpoint } from "../pages/page-endpoint.js";
import type { Route, RouteHandler, RouteMethods } from "../route.js";

/** As much of an endpoint as its callers must know. */
export interface RecordedEndpoint
  extends Pick<
    EndpointOptions<unknown, unknown>,
    "isPublic" | "isGeneration" | "isForAgents" | "isBounded" | "body" | "form" | "reads" | "query"
  > {
  /** Answers a person with pages, errors as well; a form that it takes is its own. */
  readonly isPage?: true;
  /** Takes its body as a form too, looks at no key, and has the errors of OAuth. */
  readonly isOAuth?: true;
}

export interface RecordedRoute {
  /** As it is written for Express: `/keys/:id`, `/text/*prompt`. */
  readonly path: string;
  readonly methods: Readonly<Record<string, RecordedEndpoint>>;
}

const endpoints = new WeakMap<RouteHandler, RecordedEndpoint>();

/** An `endpoint` whose handlers can be told apart afterwards. */
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

/** The same for the endpoints of OAuth clients. */
export function recordingOAuthEndpoint(endpoint: OAuthEndpoint): OAuthEndpoint {
  return (options) => {
    const handler = endpoint(options);
    endpoints.set(handler, { isPublic: true, isOAuth: true, body: options.body });
    return handler;
  };
}

/** A `route` that remembers what it is given. */
export function recordingRoute(route: Route, recorded: RecordedRoute[], prefix = ""): Route {
  return (path, methods) => {
    recorded.push({ path: prefix + path, methods: toRecordedMethods(methods) });
    route(path, methods);
  };
}

/** Handlers that are no endpoints, such as the liveness check, ask for nothing. */
function toRecordedMethods(methods: RouteMethods): Record<string, RecordedEndpoint> {
  return Object.fromEntries(Object.entries(methods).map(([method, handler]) => [method, endpoints.get(handler) ?? { isPublic: true }]));
}
