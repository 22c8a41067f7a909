/** The redirect flow for clients with their own consent page, and the code exchange (docs/spec/authorization.md#redirect-flow). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import { GRANT_DAYS_DEFAULT, GRANT_DAYS_MAX } from "../../services/api-keys/limits.js";
import { exchangeCodeInput, type IssuedToken as Token } from "../../services/authorizations/authorization-codes.js";
import {
  type AuthorizationAnswer,
  approveAuthorizationInput,
  denyAuthorizationInput,
  type AuthorizationRequest as Request,
} from "../../services/authorizations/authorizations.js";
import type { UnverifiedClient as Client } from "../../services/authorizations/client-metadata.js";
import { createAuthorizationRequestInput } from "../../services/authorizations/request-input.js";
import { parseInput } from "../../services/requests/input.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { Account } from "./accounts.js";
import { AccountPermissionEnum } from "./api-keys.js";
import { App } from "./apps.js";
import {
  CHOICE_DESCRIPTION,
  CREDIT_BUDGET_MAX,
  choiceFields,
  GrantTerms,
  IssuedToken,
  SESSION_ONLY,
  UNNAMED_APP,
  withoutNulls,
} from "./grants.js";

const UnverifiedClient = builder.objectRef<Client>("UnverifiedClient").implement({
  description: "A client that registered itself, or whose client ID is the address of a document about it. Show it as unverified.",
  fields: (t) => ({
    name: t.exposeString("name", { nullable: true, description: "The name that the client gives itself. Null when it gives none." }),
    documentHost: t.exposeString("documentHost", {
      nullable: true,
      description: "The host of the client's metadata document, in punycode. Null when the client registered itself.",
    }),
  }),
});

const AuthorizationRequest = builder.objectRef<Request>("AuthorizationRequest").implement({
  description: "An app's stored request for authorization by the signed-in person. Only the session that created it can decide it, once.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.authorizations.getMany(ctx, ids))),
  fields: (t) => ({
    app: t.expose("app", { type: App, nullable: true, description: `The requesting app. ${UNNAMED_APP} Show \`redirectHost\` instead.` }),
    client: t.expose("client", {
      type: UnverifiedClient,
      nullable: true,
      description: "The requesting client, when it described itself instead of sending an app key.",
    }),
    resource: t.exposeString("resource", {
      nullable: true,
      description: "The address that the key is for: this gateway's `/mcp`, or its base. Null: not bound to one.",
    }),
    redirectHost: t.string({ description: "The host that receives the answer, in punycode.", resolve: ({ redirect }) => redirect.host }),
    isRedirectRegistered: t.exposeBoolean("isRedirectRegistered", {
      description: "Whether the owner of the app, or the client, has registered this redirect URL.",
    }),
    asked: t.expose("asked", { type: GrantTerms, description: "The requested terms. The person may grant less." }),
    creditBudgetMax: t.field({
      type: "Credits",
      description: CREDIT_BUDGET_MAX,
      resolve: ({ creditBudgetMax }) => formatNanocredits(creditBudgetMax),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When the request expires." }),
    decidedAt: t.expose("decidedAt", {
      type: "DateTime",
      nullable: true,
      description: "When the request was decided. Null while it is pending.",
    }),
  }),
});

const REQUEST_DESCRIPTION = `A request that waits for a decision by this session. ${SESSION_ONLY}`;

builder.prismaObjectField(Account, "authorizationRequest", (t) =>
  t.field({
    type: AuthorizationRequest,
    nullable: true,
    description: REQUEST_DESCRIPTION,
    args: { id: t.arg.id({ required: true, description: "The ID of the request." }) },
    resolve: ({ id }, args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.authorizations.get(ctx, readId(args.id, "AuthorizationRequest", "id"));
    },
  }),
);

const CreateAuthorizationRequestInput = builder.inputType("CreateAuthorizationRequestInput", {
  description: "Parameters that the app sent, the same as for `GET /authorize`.",
  fields: (t) => ({
    redirectUrl: t.string({ required: true, description: "The URL to redirect to." }),
    appKey: t.string({
      description: "The app key (`pk_`) or client ID of the requesting app. Omitted when the app does not identify itself.",
    }),
    models: t.stringList({ description: "IDs or aliases of models. Omitted, null or empty: all models." }),
    creditBudget: t.field({ type: "Credits", description: "The total credits that the key can spend. Defaults to 5." }),
    expiresInDays: t.int({ description: `The lifetime of the key in days, 1 to ${GRANT_DAYS_MAX}. Defaults to ${GRANT_DAYS_DEFAULT}.` }),
    permissions: t.field({
      type: [AccountPermissionEnum],
      description: "Permissions of the key on the account. Defaults to none. KEYS is never granted.",
    }),
    state: t.string({ description: "Returned to the app unchanged, at most 512 characters." }),
    resource: t.string({ description: "The address that the key is for: this gateway's `/mcp`, or its base." }),
    codeChallenge: t.string({ description: "The S256 code challenge (PKCE). With it the answer is a code, otherwise a key." }),
  }),
});

const CreateAuthorizationRequestPayload = builder.objectRef<{ readonly request: Request }>("CreateAuthorizationRequestPayload").implement({
  description: "The result of `createAuthorizationRequest`.",
  fields: (t) => ({
    authorizationRequest: t.expose("request", { type: AuthorizationRequest, description: "The request to show to the person." }),
  }),
});

builder.mutationField("createAuthorizationRequest", (t) =>
  t.field({
    type: CreateAuthorizationRequestPayload,
    nullable: true,
    description: `Checks and stores an app's request, to show to the person. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateAuthorizationRequestInput, required: true, description: "The app's request." }) },
    resolve: async (_root, { input }, ctx) => {
      const asked = parsePermitted(ctx, requireSession, createAuthorizationRequestInput, input);
      return { request: await ctx.services.authorizations.create(ctx, asked) };
    },
  }),
);

function decisionPayload(name: string, description: string) {
  return builder.objectRef<AuthorizationAnswer>(name).implement({
    description,
    fields: (t) => ({
      authorizationRequest: t.expose("request", { type: AuthorizationRequest, description: "The decided request." }),
      redirectTo: t.exposeString("redirectTo", {
        description: "The URL to send the browser to. It contains the key or code when one was granted, and is returned only once.",
      }),
    }),
  });
}

const ApproveAuthorizationInput = builder.inputType("ApproveAuthorizationInput", {
  description: CHOICE_DESCRIPTION,
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the request." }), ...choiceFields(t) }),
});

const ApproveAuthorizationPayload = decisionPayload("ApproveAuthorizationPayload", "The result of `approveAuthorization`.");

builder.mutationField("approveAuthorization", (t) =>
  t.field({
    type: ApproveAuthorizationPayload,
    nullable: true,
    description: `Approves an app's request, in full or in part. Call it only after the person has confirmed. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ApproveAuthorizationInput, required: true, description: "The request and the terms to grant." }) },
    resolve: (_root, { input }, ctx) => {
      const choice = parsePermitted(ctx, requireSession, approveAuthorizationInput, () => withoutNulls(withRequestId(input)));
      return ctx.services.authorizations.approve(ctx, choice);
    },
  }),
);

const DenyAuthorizationInput = builder.inputType("DenyAuthorizationInput", {
  description: "Parameters of `denyAuthorization`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the request." }) }),
});

const DenyAuthorizationPayload = decisionPayload("DenyAuthorizationPayload", "The result of `denyAuthorization`.");

builder.mutationField("denyAuthorization", (t) =>
  t.field({
    type: DenyAuthorizationPayload,
    nullable: true,
    description: `Denies an app's request. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DenyAuthorizationInput, required: true, description: "The request to deny." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.authorizations.deny(
        ctx,
        parsePermitted(ctx, requireSession, denyAuthorizationInput, () => withRequestId(input)),
      ),
  }),
);

function withRequestId<Input extends { readonly id: string }>(input: Input): Input {
  return { ...input, id: readId(input.id, "AuthorizationRequest", "id") };
}

const ExchangeAuthorizationCodeInput = builder.inputType("ExchangeAuthorizationCodeInput", {
  description: "Parameters of `exchangeAuthorizationCode`.",
  fields: (t) => ({
    code: t.string({ required: true, description: "The code that the person's browser delivered." }),
    redirectUrl: t.string({
      required: true,
      description: "The redirect URL of the authorization request.",
      extensions: { wireName: "redirect_uri" },
    }),
    codeVerifier: t.string({ required: true, description: "The PKCE code verifier, 43 to 128 characters." }),
    appKey: t.string({
      description: "The app key or client ID. Required when the code was requested with one.",
      extensions: { wireName: "client_id" },
    }),
    resource: t.string({ description: "The address that the key is for, within the one that the code was requested for." }),
  }),
});

const ExchangeAuthorizationCodePayload = builder.objectRef<{ readonly token: Token }>("ExchangeAuthorizationCodePayload").implement({
  description: "The result of `exchangeAuthorizationCode`.",
  fields: (t) => ({ token: t.expose("token", { type: IssuedToken, description: "The granted key." }) }),
});

builder.mutationField("exchangeAuthorizationCode", (t) =>
  t.field({
    type: ExchangeAuthorizationCodePayload,
    nullable: true,
    description: "Exchanges a code for a key, once. A second exchange revokes that key. Needs no key.",
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: ExchangeAuthorizationCodeInput,
        required: true,
        description: "The code and its verifier.",
      }),
    },
    resolve: async (_root, { input: { code, redirectUrl, codeVerifier, appKey, resource } }, ctx) => {
      const optional = { client_id: appKey ?? undefined, resource: resource ?? undefined };
      const parameters = { code, redirect_uri: redirectUrl, code_verifier: codeVerifier, ...optional };
      return { token: await ctx.services.authorizationCodes.exchange(ctx, parseInput(exchangeCodeInput, parameters)) };
    },
  }),
);
