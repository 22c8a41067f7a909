/** The authorization host: where people sign in and decide what apps may spend (Spec 4.9). */
import type { Services } from "../services/services.js";
import type { Endpoint } from "./endpoint.js";
import type { OAuthEndpoint } from "./oauth-endpoint.js";
import type { PageEndpoint } from "./pages/page-endpoint.js";
import type { Route } from "./route.js";

export interface AuthEndpoints {
  readonly endpoint: Endpoint;
  readonly page: PageEndpoint;
  readonly oauth: OAuthEndpoint;
}

/** Each domain of the host adds its routes here. */
export function addAuthRoutes(_route: Route, _endpoints: AuthEndpoints, _services: Services): void {}
