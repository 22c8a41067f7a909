/** What OAuth clients are answered. */

import { GRANTABLE_PERMISSIONS } from "../../services/api-keys/grant-terms.js";
import type { IssuedToken } from "../../services/authorizations/authorization-codes.js";

/** RFC 6749 5.1. */
export function toTokenAnswer({ accessToken, scope, expiresIn }: IssuedToken) {
  return { access_token: accessToken, token_type: "bearer", scope: scope.join(" "), expires_in: expiresIn };
}

/** RFC 8414 2. `issuer` is where the authorization host is reached. */
export function toAuthorizationServerMetadata(issuer: string) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/api/oauth/token`,
    device_authorization_endpoint: `${issuer}/api/device/code`,
    userinfo_endpoint: `${issuer}/api/device/userinfo`,
    scopes_supported: GRANTABLE_PERMISSIONS,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
    // Clients are public: what proves them is the verifier, and where the answer goes.
    token_endpoint_auth_methods_supported: ["none"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
  };
}
