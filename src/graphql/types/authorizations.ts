/**
 * The redirect flow for clients that show a consent page of their own, and what a code is exchanged for
 * (docs/spec/authorization.md#redirect-flow).
 */
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

const AuthorizationRequest = builder.objectRef<Request>("AuthorizationRequest").implement({
  description: "What an app asks of the signed-in person, as it was written down. Only the session that wrote it down decides, once.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.authorizations.getMany(ctx, ids))),
  fields: (t) => ({
    app: t.expose("app", { type: App, nullable: true, description: `The app that asks. ${UNNAMED_APP} Show \`redirectHost\` instead.` }),
    redirectHost: t.string({ description: "Where the answer goes, in punycode.", resolve: ({ redirect }) => redirect.host }),
    isRedirectRegistered: t.exposeBoolean("isRedirectRegistered", { description: "Whether the app's owner has vouched for this address." }),
    asked: t.expose("asked", { type: GrantTerms, description: "What is asked for; less may be granted." }),
    creditBudgetMax: t.field({
      type: "Credits",
      description: CREDIT_BUDGET_MAX,
      resolve: ({ creditBudgetMax }) => formatNanocredits(creditBudgetMax),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "Until when it can be decided." }),
    decidedAt: t.expose("decidedAt", { type: "DateTime", nullable: true, description: "When it was decided. Null: it waits." }),
  }),
});

const REQUEST_DESCRIPTION = `A request that waits for this session's decision. ${SESSION_ONLY}`;

builder.prismaObjectField(Account, "authorizationRequest", (t) =>
  t.field({
    type: AuthorizationRequest,
    nullable: true,
    description: REQUEST_DESCRIPTION,
    args: { id: t.arg.id({ required: true, description: "Which request." }) },
    resolve: ({ id }, args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.authorizations.get(ctx, readId(args.id, "AuthorizationRequest", "id"));
    },
  }),
);

builder.queryField("authorizationRequest", (t) =>
  t.field({
    type: AuthorizationRequest,
    nullable: true,
    description: REQUEST_DESCRIPTION,
    deprecationReason: "Use `me { authorizationRequest(id) }`.",
    args: { id: t.arg.id({ required: true, description: "Which request." }) },
    resolve: (_root, { id }, ctx) => ctx.services.authorizations.get(ctx, readId(id, "AuthorizationRequest", "id")),
  }),
);

const CreateAuthorizationRequestInput = builder.inputType("CreateAuthorizationRequestInput", {
  description: "What an app has sent along, as `GET /authorize` takes it.",
  fields: (t) => ({
    redirectUrl: t.string({ required: true, description: "Where the answer goes." }),
    appKey: t.string({ description: "The app key (`pk_`) of the app that asks. Omitted: it does not say who it is." }),
    models: t.stringList({ description: "Ids or aliases. Omitted, null or empty: every model." }),
    creditBudget: t.field({ type: "Credits", description: "The credits that the key can spend in all: 5 unless stated." }),
    expiresInDays: t.int({ description: `For how many days, 1 to ${GRANT_DAYS_MAX}; ${GRANT_DAYS_DEFAULT} unless stated.` }),
    permissions: t.field({
      type: [AccountPermissionEnum],
      description: "What the key may do with the account: nothing unless stated, and never KEYS.",
    }),
    state: t.string({ description: "Given back as it is; at most 512 characters." }),
    codeChallenge: t.string({ description: "Of S256. The answer is a code then, else a key." }),
  }),
});

const CreateAuthorizationRequestPayload = builder.objectRef<{ readonly request: Request }>("CreateAuthorizationRequestPayload").implement({
  description: "A request that waits for the person's decision.",
  fields: (t) => ({
    authorizationRequest: t.expose("request", { type: AuthorizationRequest, description: "The request, to be shown to the person." }),
  }),
});

builder.mutationField("createAuthorizationRequest", (t) =>
  t.field({
    type: CreateAuthorizationRequestPayload,
    nullable: true,
    description: `Checks what an app asks and writes it down, to be shown to the person. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateAuthorizationRequestInput, required: true, description: "What the app asks." }) },
    resolve: async (_root, { input }, ctx) => {
      const asked = parsePermitted(ctx, requireSession, createAuthorizationRequestInput, input);
      return { request: await ctx.services.authorizations.create(ctx, asked) };
    },
  }),
);

/** The person's answer. */
function decisionPayload(name: string, description: string) {
  return builder.objectRef<AuthorizationAnswer>(name).implement({
    description,
    fields: (t) => ({
      authorizationRequest: t.expose("request", { type: AuthorizationRequest, description: "What was decided." }),
      redirectTo: t.exposeString("redirectTo", {
        description: "Send the browser there. It holds the key or the code where one was granted, and is told this once.",
      }),
    }),
  });
}

const ApproveAuthorizationInput = builder.inputType("ApproveAuthorizationInput", {
  description: CHOICE_DESCRIPTION,
  fields: (t) => ({ id: t.id({ required: true, description: "Which request." }), ...choiceFields(t) }),
});

const ApproveAuthorizationPayload = decisionPayload("ApproveAuthorizationPayload", "A request that was granted.");

builder.mutationField("approveAuthorization", (t) =>
  t.field({
    type: ApproveAuthorizationPayload,
    nullable: true,
    description: `Grants an app what it asks, or less. Call it when the person has said so, and not before. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ApproveAuthorizationInput, required: true, description: "Which request, and what of it." }) },
    resolve: (_root, { input }, ctx) => {
      const choice = parsePermitted(ctx, requireSession, approveAuthorizationInput, () => withoutNulls(withRequestId(input)));
      return ctx.services.authorizations.approve(ctx, choice);
    },
  }),
);

const DenyAuthorizationInput = builder.inputType("DenyAuthorizationInput", {
  description: "What is not granted.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which request." }) }),
});

const DenyAuthorizationPayload = decisionPayload("DenyAuthorizationPayload", "A request that was denied.");

builder.mutationField("denyAuthorization", (t) =>
  t.field({
    type: DenyAuthorizationPayload,
    nullable: true,
    description: `Grants an app nothing. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DenyAuthorizationInput, required: true, description: "Which request." }) },
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
  description: "A code, and what shows that it is the caller's.",
  fields: (t) => ({
    code: t.string({ required: true, description: "The code that the person's browser has brought." }),
    redirectUrl: t.string({
      required: true,
      description: "The one that the code was asked for with.",
      extensions: { wireName: "redirect_uri" },
    }),
    codeVerifier: t.string({ required: true, description: "What the challenge was made of: 43 to 128 characters." }),
    appKey: t.string({ description: "Needed when the code was asked for with one.", extensions: { wireName: "client_id" } }),
  }),
});

const ExchangeAuthorizationCodePayload = builder.objectRef<{ readonly token: Token }>("ExchangeAuthorizationCodePayload").implement({
  description: "What a code was exchanged for.",
  fields: (t) => ({ token: t.expose("token", { type: IssuedToken, description: "The key." }) }),
});

builder.mutationField("exchangeAuthorizationCode", (t) =>
  t.field({
    type: ExchangeAuthorizationCodePayload,
    nullable: true,
    description: "Exchanges a code for a key, once: a second time ends that key. Needs no key.",
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: ExchangeAuthorizationCodeInput,
        required: true,
        description: "The code, and what shows that it is the caller's.",
      }),
    },
    resolve: async (_root, { input: { code, redirectUrl, codeVerifier, appKey } }, ctx) => {
      const parameters = { code, redirect_uri: redirectUrl, code_verifier: codeVerifier, client_id: appKey ?? undefined };
      return { token: await ctx.services.authorizationCodes.exchange(ctx, parseInput(exchangeCodeInput, parameters)) };
    },
  }),
);
