/** Endpoints for OAuth clients: the device flow, the token endpoint of every grant, and the discovery document. */
import * as z from "zod";
import type { UserInfoClaims } from "../../services/accounts/profiles.js";
import { GRANTABLE_PERMISSIONS } from "../../services/api-keys/grant-terms.js";
import { exchangeCodeInput, type IssuedToken } from "../../services/authorizations/authorization-codes.js";
import {
  createDeviceAuthorizationInput,
  type DeviceAuthorizations,
  type NewDevice,
  redeemDeviceCodeInput,
} from "../../services/authorizations/device-authorizations.js";
import { OAuthError } from "../../services/authorizations/oauth-error.js";
import { parseInput } from "../../services/requests/input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { OAuthEndpoint, TokenGrant } from "../oauth-endpoint.js";
import type { Route } from "../route.js";

// The device flow for devices and their apps (docs/spec/authorization.md#device-flow; RFC 8628).

/** RFC 8628 3.4. */
const DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

const codeRequest = z.object({
  client_id: createDeviceAuthorizationInput.shape.clientId,
  scope: createDeviceAuthorizationInput.shape.scope,
});

const deviceCodeRequest = z.object({
  device_code: redeemDeviceCodeInput.shape.deviceCode,
  client_id: redeemDeviceCodeInput.shape.clientId,
  /** Optional here, as there is only one grant. */
  grant_type: z
    .string()
    .meta({ enum: [DEVICE_CODE_GRANT] })
    .nullish(),
});

export function addDeviceRoutes(
  route: Route,
  { endpoint, oauth }: { readonly endpoint: Endpoint; readonly oauth: OAuthEndpoint },
  { deviceAuthorizations, userInfo }: Pick<Services, "deviceAuthorizations" | "userInfo">,
): void {
  route("/api/device/code", {
    POST: oauth({
      body: codeRequest,
      handler: async (ctx, { client_id, scope }) => toDeviceCode(await deviceAuthorizations.create(ctx, { clientId: client_id, scope })),
    }),
  });
  route("/api/device/token", { POST: oauth({ body: deviceCodeRequest, handler: deviceCodeGrant(deviceAuthorizations) }) });
  route("/api/device/userinfo", {
    GET: endpoint({ handler: async (ctx) => toUserInfo(await userInfo.get(ctx)) }),
  });
}

/** For the common token endpoint, and for the devices' own. */
function deviceCodeGrant(deviceAuthorizations: DeviceAuthorizations): TokenGrant {
  return async (ctx, parameters) => {
    const { device_code, client_id, grant_type } = parseInput(deviceCodeRequest, parameters);
    if (grant_type && grant_type !== DEVICE_CODE_GRANT)
      throw new OAuthError("unsupported_grant_type", `grant_type must be ${DEVICE_CODE_GRANT}.`);
    return toTokenAnswer(await deviceAuthorizations.redeem(ctx, { deviceCode: device_code, clientId: client_id }));
  };
}

// The token endpoint (RFC 6749 3.2): grants by `grant_type`.

/** Each grant checks its own fields. */
const text = z.string().optional();
const tokenRequest = z.looseObject({
  grant_type: z.string().meta({ enum: ["authorization_code", DEVICE_CODE_GRANT] }),
  code: text,
  redirect_uri: text,
  code_verifier: text,
  client_id: text,
  device_code: text,
});

type Needed = Pick<Services, "authorizationCodes" | "deviceAuthorizations">;

export function addTokenRoutes(route: Route, oauth: OAuthEndpoint, { authorizationCodes, deviceAuthorizations }: Needed): void {
  const grants: ReadonlyMap<string, TokenGrant> = new Map<string, TokenGrant>([
    [
      "authorization_code",
      async (ctx, parameters) => toTokenAnswer(await authorizationCodes.exchange(ctx, parseInput(exchangeCodeInput, parameters))),
    ],
    [DEVICE_CODE_GRANT, deviceCodeGrant(deviceAuthorizations)],
  ]);
  route("/api/oauth/token", {
    POST: oauth({
      body: tokenRequest,
      handler: (ctx, body) => {
        const grant = grants.get(body.grant_type);
        if (!grant) throw new OAuthError("unsupported_grant_type", `grant_type must be one of ${[...grants.keys()].join(", ")}.`);
        return grant(ctx, body);
      },
    }),
  });
}

// The discovery document of the authorization host (RFC 8414).

/** `path` follows the well-known part: the path of the issuer, if any (RFC 8414 3.1). */
export function addMetadataRoutes(route: Route, { authorizations }: Pick<Services, "authorizations">, path = ""): void {
  route(`/.well-known/oauth-authorization-server${path}`, {
    GET: (exchange) => {
      exchange.setHeaders({ "Cache-Control": "public, max-age=300" });
      exchange.sendJson(toAuthorizationServerMetadata(authorizations.issuer));
    },
  });
}

/** RFC 6749 5.1. */
function toTokenAnswer({ accessToken, scope, expiresIn }: IssuedToken) {
  return { access_token: accessToken, token_type: "bearer", scope: scope.join(" "), expires_in: expiresIn };
}

/** RFC 8414 2. `issuer` is the authorization host's address. */
function toAuthorizationServerMetadata(issuer: string) {
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
    // Clients are public: verifier and redirect address authenticate them.
    token_endpoint_auth_methods_supported: ["none"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
  };
}

/** RFC 8628 3.2. */
function toDeviceCode({ deviceCode, userCode, verificationUri, verificationUriComplete, expiresIn, interval }: NewDevice) {
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: verificationUri,
    verification_uri_complete: verificationUriComplete,
    expires_in: expiresIn,
    interval,
  };
}

/** OpenID Connect Core 5.1. */
function toUserInfo({ sub, preferredUsername, picture, profile }: UserInfoClaims) {
  return {
    sub,
    preferred_username: preferredUsername,
    picture,
    ...(profile && { name: profile.name, email: profile.email, email_verified: profile.isEmailVerified }),
  };
}
