/** The token endpoint (RFC 6749 3.2): every way in which a grant becomes a key, by its `grant_type`. */
import * as z from "zod";
import { exchangeCodeInput } from "../../services/authorizations/authorization-codes.js";
import { OAuthError } from "../../services/authorizations/oauth-error.js";
import { parseInput } from "../../services/requests/input.js";
import type { Services } from "../../services/services.js";
import type { OAuthEndpoint, TokenGrant } from "../oauth-endpoint.js";
import { toTokenAnswer } from "../presenters/oauth.js";
import type { Route } from "../route.js";
import { DEVICE_CODE_GRANT, deviceCodeGrant } from "./device.js";

/** What each grant needs of the rest is its own to say. */
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
