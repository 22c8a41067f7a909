/** The authorization host: sign-in and consent (docs/spec/authorization.md). */
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { OAuthEndpoint } from "../oauth-endpoint.js";
import { addCheckoutPage } from "../pages/checkout.js";
import { addAuthorizeRoutes } from "../pages/consent.js";
import { addDevicePages } from "../pages/device.js";
import { addIntegrationPages } from "../pages/integrations.js";
import type { PageEndpoint } from "../pages/page-endpoint.js";
import { addSetPasswordPages } from "../pages/set-password.js";
import { addSignInPages } from "../pages/sign-in.js";
import type { Route } from "../route.js";
import { addDeviceRoutes, addMetadataRoutes, addRegistrationRoutes, addTokenRoutes } from "./oauth.js";

export interface AuthEndpoints {
  readonly endpoint: Endpoint;
  readonly page: PageEndpoint;
  readonly oauth: OAuthEndpoint;
}

export function addAuthRoutes(route: Route, endpoints: AuthEndpoints, services: Services): void {
  addSignInPages(route, endpoints.page, services);
  addSetPasswordPages(route, endpoints.page, services);
  addAuthorizeRoutes(route, endpoints.page, services);
  addTokenRoutes(route, endpoints.oauth, services);
  addRegistrationRoutes(route, endpoints.oauth, services);
  addMetadataRoutes(route, services);
  addDeviceRoutes(route, endpoints, services);
  addDevicePages(route, endpoints.page, services);
  addIntegrationPages(route, endpoints.page, services);
  addCheckoutPage(route, endpoints.page, services);
}
