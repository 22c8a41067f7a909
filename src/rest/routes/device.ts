/** The device flow as devices, and the apps on them, see it (docs/spec/authorization.md#device-flow; RFC 8628). */
import * as z from "zod";
import {
  createDeviceAuthorizationInput,
  type DeviceAuthorizations,
  redeemDeviceCodeInput,
} from "../../services/authorizations/device-authorizations.js";
import { OAuthError } from "../../services/authorizations/oauth-error.js";
import { parseInput } from "../../services/requests/input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { OAuthEndpoint, TokenGrant } from "../oauth-endpoint.js";
import { toDeviceCode, toUserInfo } from "../presenters/device.js";
import { toTokenAnswer } from "../presenters/oauth.js";
import type { Route } from "../route.js";

/** RFC 8628 3.4. */
export const DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

const codeRequest = z.object({
  client_id: createDeviceAuthorizationInput.shape.clientId,
  scope: createDeviceAuthorizationInput.shape.scope,
});

const tokenRequest = z.object({
  device_code: redeemDeviceCodeInput.shape.deviceCode,
  client_id: redeemDeviceCodeInput.shape.clientId,
  /** What it is for goes without saying here. */
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
  route("/api/device/token", { POST: oauth({ body: tokenRequest, handler: deviceCodeGrant(deviceAuthorizations) }) });
  route("/api/device/userinfo", {
    GET: endpoint({ handler: async (ctx) => toUserInfo(await userInfo.get(ctx)) }),
  });
}

/** At the token endpoint of all grants, and at the one that devices have for themselves. */
export function deviceCodeGrant(deviceAuthorizations: DeviceAuthorizations): TokenGrant {
  return async (ctx, parameters) => {
    const { device_code, client_id, grant_type } = parseInput(tokenRequest, parameters);
    if (grant_type && grant_type !== DEVICE_CODE_GRANT)
      throw new OAuthError("unsupported_grant_type", `grant_type must be ${DEVICE_CODE_GRANT}.`);
    return toTokenAnswer(await deviceAuthorizations.redeem(ctx, { deviceCode: device_code, clientId: client_id }));
  };
}
