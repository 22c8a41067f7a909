/** Records the contracts of the routes, for the OpenAPI document. */
import type { Route } from "../route.js";
import type { Contract } from "./contract.js";

export interface RecordedRoute {
  /** The path in Express syntax: `/keys/:id`, `/text/*prompt`. */
  readonly path: string;
  readonly methods: Readonly<Record<string, Contract>>;
}

/** A `route` that records the contracts of its handlers. */
export function recordingRoute(route: Route, recorded: RecordedRoute[], prefix = ""): Route {
  return (path, methods) => {
    const contracts = Object.entries(methods).map(([method, { contract }]) => [method, contract] as const);
    recorded.push({ path: prefix + path, methods: Object.fromEntries(contracts) });
    route(path, methods);
  };
}
