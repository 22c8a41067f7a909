/** Endpoints for OAuth clients: the device flow, the token endpoint of every grant, and the discovery document. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { MCP_PATH, RESOURCE_METADATA_PATH, type ResourceMetadata } from "../../services/access/protected-resources.js";
import type { UserInfoClaims } from "../../services/accounts/profiles.js";
import { GRANTABLE_PERMISSIONS } from "../../services/api-keys/grant-terms.js";
import { exchangeCodeInput, type IssuedToken } from "../../services/authorizations/authorization-codes.js";
import { registerClientInput } from "../../services/authorizations/client-metadata.js";
import type { RegisteredClient } from "../../services/authorizations/client-registrations.js";
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
import type { OAuthEndpoint } from "../oauth-endpoint.js";
import { openEndpoint } from "../open-endpoint.js";
import { createdJson, json, type ResultOf } from "../openapi/answer.js";
import { amount, nullableText } from "../openapi/schemas.js";
import type { Route } from "../route.js";

/** RFC 6749 5.1. */
const token = json(
  "Token",
  z.object({
    access_token: z.string().describe("The secret key. It is shown only once."),
    token_type: z.literal("bearer"),
    scope: z.string().describe("The granted permissions, separated by spaces."),
    expires_in: amount.describe("Seconds until the key expires."),
  }),
);

/** Exchanges a grant for a key. */
type TokenGrant = (ctx: RequestContext, parameters: unknown) => Promise<ResultOf<typeof token>>;

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
  resource: redeemDeviceCodeInput.shape.resource,
  /** Optional here, as there is only one grant. */
  grant_type: z
    .string()
    .meta({ enum: [DEVICE_CODE_GRANT] })
    .nullish(),
});

/** RFC 8628 3.2. */
const deviceCode = json(
  "DeviceCode",
  z.object({
    device_code: z.string().describe("The secret code of the device."),
    user_code: z.string().describe("The user code to show, in the form XXXX-XXXX."),
    verification_uri: z.string(),
    verification_uri_complete: z.string().describe("The URL with the user code, for a QR code."),
    expires_in: amount.describe("Seconds until the codes expire."),
    interval: amount.describe("The minimum number of seconds between polls."),
  }),
);

/** OpenID Connect Core 5.1. */
const claims = json(
  "UserInfo",
  z.looseObject({
    sub: z.string(),
    preferred_username: z.string(),
    picture: nullableText,
    name: nullableText.optional(),
    email: nullableText.optional(),
    email_verified: z.boolean().optional(),
  }),
);

export function addDeviceRoutes(
  route: Route,
  { endpoint, oauth }: { readonly endpoint: Endpoint; readonly oauth: OAuthEndpoint },
  { deviceAuthorizations, userInfo }: Pick<Services, "deviceAuthorizations" | "userInfo">,
): void {
  route("/api/device/code", {
    POST: oauth({
      id: "createDeviceCode",
      tag: "Authorization",
      summary: "Starts a device authorization (RFC 8628).",
      description:
        "`client_id` is an app key. `scope` lists permissions: profile, balance, usage. Show the user code, and poll for the key.",
      answer: deviceCode,
      example: { body: { scope: "profile balance" } },
      body: codeRequest,
      handler: async (ctx, { client_id, scope }) => toDeviceCode(await deviceAuthorizations.create(ctx, { clientId: client_id, scope })),
    }),
  });
  route("/api/device/token", {
    POST: oauth({
      id: "createDeviceToken",
      tag: "Authorization",
      summary: "Returns the key of a device after a person has approved it.",
      description:
        "Until then, the answer is 400 with the error `authorization_pending`. Wait for the interval between two polls. A device code works once.",
      answer: token,
      example: { body: { device_code: "The device_code of POST /api/device/code" } },
      body: deviceCodeRequest,
      handler: deviceCodeGrant(deviceAuthorizations),
    }),
  });
  route("/api/device/userinfo", {
    GET: endpoint({
      id: "getUserInfo",
      tag: "Authorization",
      summary: "Returns the account of the calling key, in the format of OpenID Connect. Works with any key.",
      description: "`name` and `email` need the permission `profile`.",
      answer: claims,
      handler: async (ctx) => toUserInfo(await userInfo.get(ctx)),
    }),
  });
}

/** For the common token endpoint, and for the devices' own. */
function deviceCodeGrant(deviceAuthorizations: DeviceAuthorizations): TokenGrant {
  return async (ctx, parameters) => {
    const { device_code, client_id, resource, grant_type } = parseInput(deviceCodeRequest, parameters);
    if (grant_type && grant_type !== DEVICE_CODE_GRANT)
      throw new OAuthError("unsupported_grant_type", `grant_type must be ${DEVICE_CODE_GRANT}.`);
    return toTokenAnswer(await deviceAuthorizations.redeem(ctx, { deviceCode: device_code, clientId: client_id, resource }));
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
  resource: text.describe("The address that the key is for: this gateway's `/mcp`, or its base (RFC 8707)."),
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
      id: "createToken",
      tag: "Authorization",
      summary: "Exchanges an authorization code, or a device code, for a key (RFC 6749).",
      description:
        "`grant_type` is `authorization_code`, with `code`, `redirect_uri`, `code_verifier` and, when one was sent before, the same `client_id`; or `urn:ietf:params:oauth:grant-type:device_code`, with `device_code`. A code can be exchanged once within 10 minutes. A second exchange revokes the key that it was exchanged for.",
      answer: token,
      example: { body: { grant_type: DEVICE_CODE_GRANT, device_code: "The device_code of POST /api/device/code" } },
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

const authorizationServer = json(
  "AuthorizationServer",
  z.looseObject({ issuer: z.string(), authorization_endpoint: z.string(), token_endpoint: z.string() }),
);

/** `path` follows the well-known part: the path of the issuer, if any (RFC 8414 3.1). */
export function addMetadataRoutes(
  route: Route,
  { authorizations, clientDocuments }: Pick<Services, "authorizations" | "clientDocuments">,
  path = "",
): void {
  route(`/.well-known/oauth-authorization-server${path}`, {
    GET: openEndpoint({
      id: "getAuthorizationServer",
      tag: "Authorization",
      summary: "Returns the metadata for OAuth clients (RFC 8414).",
      answer: authorizationServer,
      handler: (exchange) => {
        exchange.setHeaders({ "Cache-Control": "public, max-age=300" });
        return toAuthorizationServerMetadata(authorizations.issuer, clientDocuments.isSupported);
      },
    }),
  });
}

// Clients that register themselves (RFC 7591), and what clients learn of the gateway as a protected resource (RFC 9728).

const registeredClient = createdJson(
  "RegisteredClient",
  z.object({
    client_id: z.string().describe("Send it to /authorize and to the token endpoint."),
    client_id_issued_at: amount.describe("Seconds since 1970. A registration is good for 400 days."),
    client_name: z.string().optional(),
    redirect_uris: z.array(z.string()),
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    token_endpoint_auth_method: z.literal("none"),
  }),
);

export function addRegistrationRoutes(
  route: Route,
  oauth: OAuthEndpoint,
  { clientRegistrations }: Pick<Services, "clientRegistrations">,
): void {
  route("/api/oauth/register", {
    POST: oauth({
      id: "registerClient",
      tag: "Authorization",
      summary: "Registers an app that asks people for access (RFC 7591). Needs no key.",
      description:
        "For MCP clients, which register by themselves. The consent page calls the app unverified; an app with an app key does not register. Fields that are not listed are ignored.",
      answer: registeredClient,
      example: { body: { client_name: "My app", redirect_uris: ["http://127.0.0.1/callback"] } },
      body: registerClientInput,
      isJsonOnly: true,
      refusedAs: (param) => (param?.startsWith("redirect_uris") ? "invalid_redirect_uri" : "invalid_client_metadata"),
      handler: async (ctx, body) => toRegistrationAnswer(await clientRegistrations.register(ctx, body)),
    }),
  });
}

const protectedResource = json(
  "ProtectedResource",
  z.object({
    resource: z.string(),
    authorization_servers: z.array(z.string()),
    scopes_supported: z.array(z.string()),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
  }),
);

export function addProtectedResourceRoutes(route: Route, { protectedResources }: Pick<Services, "protectedResources">): void {
  const add = (path: string, id: string, summary: string, metadata: () => ResourceMetadata) =>
    route(path, {
      GET: openEndpoint({
        id,
        tag: "Authorization",
        summary,
        answer: protectedResource,
        handler: (exchange) => {
          exchange.setHeaders({ "Cache-Control": "public, max-age=300" });
          return toProtectedResource(metadata());
        },
      }),
    });
  add(
    RESOURCE_METADATA_PATH + MCP_PATH,
    "getMcpResource",
    "Returns the metadata of /mcp as a protected resource (RFC 9728).",
    () => protectedResources.mcpMetadata,
  );
  add(
    RESOURCE_METADATA_PATH,
    "getGatewayResource",
    "Returns the metadata of the gateway as a protected resource (RFC 9728).",
    () => protectedResources.gatewayMetadata,
  );
}

function toProtectedResource({ resource, authorizationServer, name }: ResourceMetadata): ResultOf<typeof protectedResource> {
  return {
    resource,
    authorization_servers: [authorizationServer],
    scopes_supported: [...GRANTABLE_PERMISSIONS],
    bearer_methods_supported: ["header"],
    resource_name: name,
  };
}

function toRegistrationAnswer({ id, name, redirectUrls, issuedAt }: RegisteredClient): ResultOf<typeof registeredClient> {
  return {
    client_id: id,
    client_id_issued_at: issuedAt,
    ...(name !== null && { client_name: name }),
    redirect_uris: [...redirectUrls],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
}

function toTokenAnswer({ accessToken, scope, expiresIn }: IssuedToken): ResultOf<typeof token> {
  return { access_token: accessToken, token_type: "bearer", scope: scope.join(" "), expires_in: expiresIn };
}

/** RFC 8414 2. `issuer` is the authorization host's address. */
function toAuthorizationServerMetadata(issuer: string, readsClientDocuments: boolean) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/api/oauth/token`,
    registration_endpoint: `${issuer}/api/oauth/register`,
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
    client_id_metadata_document_supported: readsClientDocuments,
  };
}

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

function toUserInfo({ sub, preferredUsername, picture, profile }: UserInfoClaims) {
  return {
    sub,
    preferred_username: preferredUsername,
    picture,
    ...(profile && { name: profile.name, email: profile.email, email_verified: profile.isEmailVerified }),
  };
}
