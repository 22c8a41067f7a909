/** The redirect flow, by method and path template. */
import type { Operation } from "./operation.js";

export const AUTHORIZATION_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /authorize": {
    id: "authorize",
    tag: "Authorization",
    summary: "The page on which a person lets an app spend their credits. Send a browser there.",
    description:
      "The browser comes back with `#api_key=...&state=...`, or with `?code=...&state=...&iss=...` where a challenge was sent; denied, with `error=access_denied`. What is wrong with the request is told on a page of the gateway's.",
    contentTypes: ["text/html"],
    redirect: { status: "303", why: "To the page to sign in on: nobody is signed in." },
  },
  "POST /authorize": { id: "submitAuthorization", tag: "Authorization", summary: "Allows or denies.", isHidden: true },
  "POST /api/oauth/token": {
    id: "createToken",
    tag: "Authorization",
    summary: "Exchanges an authorization code, or a device code, for a key (RFC 6749).",
    description:
      "`grant_type` is `authorization_code`, with `code`, `redirect_uri`, `code_verifier` and, where one was sent, the app key as `client_id`; or `urn:ietf:params:oauth:grant-type:device_code`, with `device_code`. A code is good for 10 minutes, once: a second time ends the key that it was exchanged for.",
    answer: "Token",
  },
  "GET /.well-known/oauth-authorization-server": {
    id: "getAuthorizationServer",
    tag: "Authorization",
    summary: "What OAuth clients can do here (RFC 8414).",
    answer: "AuthorizationServer",
  },
};
