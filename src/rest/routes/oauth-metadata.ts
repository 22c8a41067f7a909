/** The discovery document of the authorization host (RFC 8414). */
import type { Services } from "../../services/services.js";
import { toAuthorizationServerMetadata } from "../presenters/oauth.js";
import type { Route } from "../route.js";

/** `path` is what follows the well-known part: the path of the issuer, where it has one (RFC 8414 3.1). */
export function addMetadataRoutes(route: Route, { authorizations }: Pick<Services, "authorizations">, path = ""): void {
  route(`/.well-known/oauth-authorization-server${path}`, {
    GET: (exchange) => {
      exchange.setHeaders({ "Cache-Control": "public, max-age=300" });
      exchange.sendJson(toAuthorizationServerMetadata(authorizations.issuer));
    },
  });
}
