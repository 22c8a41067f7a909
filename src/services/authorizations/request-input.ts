/**
 * An app's request in the redirect flow, as query parameters under the gateway's names or OAuth's
 * (docs/spec/authorization.md#redirect-flow).
 */
import * as z from "zod";
import { budget, days, modelNames, permission, type TermsQuery, termsQuery } from "../api-keys/grant-terms.js";
import { CLIENT_ID_CHARS_MAX, RESOURCE_CHARS_MAX, STATE_CHARS_MAX } from "./limits.js";

/** RFC 7636 4.1 and 4.2: unreserved characters. */
const PKCE_TEXT = /^[A-Za-z0-9._~-]{43,128}$/;
const clientIdText = z.string().max(CLIENT_ID_CHARS_MAX);
/** RFC 8707. */
export const resourceText = z.string().max(RESOURCE_CHARS_MAX);
/** Control characters would not survive the round trip. */
const stateText = z
  .string()
  .max(STATE_CHARS_MAX)
  .regex(/^\P{Cc}*$/u, "must not hold control characters")
  // Described without a property of Unicode, which many languages' patterns lack.
  .meta({ pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$" });

export const pkceText = z.string().regex(PKCE_TEXT, "must have 43 to 128 letters, digits and -._~");

export interface AuthorizationInput {
  readonly redirectUrl: string;
  /** An app key, the client id of a registration, or the address of a document. Null: the app does not identify itself. */
  readonly clientId: string | null;
  readonly terms: TermsQuery;
  /** Echoed unchanged. */
  readonly state: string | null;
  /** The address that the key is for (RFC 8707). */
  readonly resource: string | null;
  /** By S256. Null: the key comes in the fragment. */
  readonly codeChallenge: string | null;
}

const parameters = z.object({
  redirect_url: z
    .string()
    .optional()
    .describe("The URL to redirect the browser to: https, or http on localhost. Either it or `redirect_uri` is required."),
  redirect_uri: z.string().optional().describe("An alias of `redirect_url`."),
  app_key: clientIdText.optional().describe("The app's publishable key."),
  client_id: clientIdText
    .optional()
    .describe("An alias of `app_key`; or the client ID of `POST /api/oauth/register`, or the address of the client's metadata document."),
  ...termsQuery,
  scope: termsQuery.permissions.describe("An alias of `permissions`, separated by spaces."),
  state: stateText.optional().describe("Returned unchanged."),
  resource: resourceText.optional().describe("The address that the key is for: this gateway's `/mcp`, or its base (RFC 8707)."),
  response_type: z
    .literal("code", "must be `code`, or left out for a key in the fragment")
    .optional()
    .describe("code, together with a `code_challenge`."),
  code_challenge: pkceText.optional().describe("The PKCE code challenge. With it the answer is a code, to exchange for the key."),
  code_challenge_method: z.literal("S256", "must be S256").optional().describe("The method of the code challenge: S256."),
});

/** Drops parameters without a value, which count as absent; unknown ones are ignored (RFC 6749 3.1). */
function dropEmpty(query: unknown): unknown {
  return typeof query === "object" && query !== null
    ? Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""))
    : query;
}

export const authorizationQuery = z.preprocess(dropEmpty, parameters).transform((query, issues): AuthorizationInput => {
  const complain = (path: keyof typeof query, message: string) => {
    issues.addIssue({ code: "custom", path: [path], message });
    return z.NEVER;
  };
  if (query.redirect_url !== undefined && query.redirect_uri !== undefined)
    return complain("redirect_uri", "is another name of redirect_url");
  if (query.app_key !== undefined && query.client_id !== undefined) return complain("client_id", "is another name of app_key");
  if (query.permissions && query.scope) return complain("scope", "is another name of permissions");
  const redirectUrl = query.redirect_url ?? query.redirect_uri;
  if (redirectUrl === undefined) return complain("redirect_url", "is required: it says where you return to");
  const codeChallenge = query.code_challenge ?? null;
  if (codeChallenge === null && (query.response_type ?? query.code_challenge_method) !== undefined) {
    return complain("code_challenge", "is required: a code is only given with PKCE");
  }
  const { models, budget, expiry, permissions = query.scope, state = null, resource = null } = query;
  return {
    redirectUrl,
    clientId: query.app_key ?? query.client_id ?? null,
    terms: { models, budget, expiry, permissions },
    state,
    resource,
    codeChallenge,
  };
});

/** The same under the services' names, for clients with a consent page of their own. */
export const createAuthorizationRequestInput = z
  .strictObject({
    redirectUrl: z.string(),
    appKey: clientIdText.nullish(),
    models: modelNames.nullish(),
    creditBudget: budget.nullish(),
    expiresInDays: days.nullish(),
    permissions: z.array(permission).nullish(),
    state: stateText.nullish(),
    resource: resourceText.nullish(),
    codeChallenge: pkceText.nullish(),
  })
  .transform(
    ({ redirectUrl, appKey, models, creditBudget, expiresInDays, permissions, state, resource, codeChallenge }): AuthorizationInput => {
      const terms = {
        models: models ?? [],
        budget: creditBudget ?? undefined,
        expiry: expiresInDays ?? undefined,
        permissions: permissions ?? [],
      };
      const optional = { clientId: appKey ?? null, state: state ?? null, resource: resource ?? null, codeChallenge: codeChallenge ?? null };
      return { redirectUrl, terms, ...optional };
    },
  );
