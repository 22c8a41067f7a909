/**
 * The redirect flow for clients that show a consent page of their own, and what a code is exchanged for
 * (docs/spec/authorization.md#redirect-flow).
 */

import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import type { IssuedToken } from "../../services/authorizations/authorization-codes.js";
import { exchangeCodeInput } from "../../services/authorizations/authorization-codes.js";
import {
  type AuthorizationAnswer,
  approveAuthorizationInput,
  denyAuthorizationInput,
  type AuthorizationRequest as Request,
} from "../../services/authorizations/authorizations.js";
import { createAuthorizationRequestInput } from "../../services/authorizations/request-input.js";
import { parseInput } from "../../services/requests/input.js";
import { builder } from "../builder.js";
import { AccountPermissionEnum } from "./api-keys.js";
import { GrantTerms, RequestingApp } from "./grants.js";

const AuthorizationRequest = builder.objectRef<Request>("AuthorizationRequest").implement({
  description: "What an app asks of the signed-in person, as it was written down. Only the session that wrote it down decides, once.",
  fields: (t) => ({
    id: t.exposeID("id"),
    app: t.expose("app", {
      type: RequestingApp,
      nullable: true,
      description: "Null: the app has not said who it is. Show `redirectHost` instead.",
    }),
    redirectHost: t.string({ description: "Where the answer goes, in punycode.", resolve: ({ redirect }) => redirect.host }),
    isRedirectRegistered: t.exposeBoolean("isRedirectRegistered", { description: "Whether the app's owner has vouched for this address." }),
    asked: t.expose("asked", { type: GrantTerms }),
    creditBudgetMax: t.field({
      type: "Credits",
      description: "The most that can be granted now: the budget that is asked for, or the account's balance where that is less.",
      resolve: ({ creditBudgetMax }) => formatNanocredits(creditBudgetMax),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime" }),
  }),
});

const SESSION_ONLY = "For a signed-in person; no key will do.";

builder.queryField("authorizationRequest", (t) =>
  t.field({
    type: AuthorizationRequest,
    nullable: true,
    description: `A request that waits for this session's decision. ${SESSION_ONLY}`,
    args: { id: t.arg.id({ required: true }) },
    resolve: (_root, { id }, ctx) => ctx.services.authorizations.get(ctx, id),
  }),
);

const CreateAuthorizationRequestInput = builder.inputType("CreateAuthorizationRequestInput", {
  description: "What an app has sent along, as `GET /authorize` takes it.",
  fields: (t) => ({
    redirectUrl: t.string({ required: true }),
    appKey: t.string(),
    models: t.stringList({ description: "Ids or aliases. Omitted, null or empty: every model." }),
    creditBudget: t.field({ type: "Credits", description: "5 unless stated." }),
    expiresInDays: t.int({ description: "1 to 365; 30 unless stated." }),
    permissions: t.field({ type: [AccountPermissionEnum], description: "None unless stated; never KEYS." }),
    state: t.string({ description: "Given back as it is; at most 512 characters." }),
    codeChallenge: t.string({ description: "Of S256. The answer is a code then, else a key." }),
  }),
});

builder.mutationField("createAuthorizationRequest", (t) =>
  t.field({
    type: AuthorizationRequest,
    nullable: true,
    description: `Checks what an app asks and writes it down, to be shown to the person. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateAuthorizationRequestInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.authorizations.create(ctx, parsePermitted(ctx, requireSession, createAuthorizationRequestInput, input)),
  }),
);

const AuthorizationPayload = builder.objectRef<AuthorizationAnswer>("AuthorizationPayload").implement({
  description: "The person's answer.",
  fields: (t) => ({
    redirectTo: t.exposeString("redirectTo", {
      description: "Send the browser there. It holds the key or the code, and is told this once.",
    }),
  }),
});

const ApproveAuthorizationInput = builder.inputType("ApproveAuthorizationInput", {
  description:
    "What is left out is granted as it was asked for, the budget at most `creditBudgetMax`; nothing can be widened, and no budget is larger than the balance.",
  fields: (t) => ({
    id: t.id({ required: true }),
    models: t.stringList({ description: "Ids or aliases, at least one." }),
    creditBudget: t.field({ type: "Credits" }),
    expiresInDays: t.int(),
    permissions: t.field({ type: [AccountPermissionEnum] }),
  }),
});

builder.mutationField("approveAuthorization", (t) =>
  t.field({
    type: AuthorizationPayload,
    nullable: true,
    description: `Grants an app what it asks, or less. Call it when the person has said so, and not before. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ApproveAuthorizationInput, required: true }) },
    resolve: (_root, { input: { id, ...choice } }, ctx) => {
      const stated = Object.fromEntries(Object.entries(choice).filter(([, value]) => value !== null));
      return ctx.services.authorizations.approve(ctx, parsePermitted(ctx, requireSession, approveAuthorizationInput, { id, ...stated }));
    },
  }),
);

const DenyAuthorizationInput = builder.inputType("DenyAuthorizationInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

builder.mutationField("denyAuthorization", (t) =>
  t.field({
    type: AuthorizationPayload,
    nullable: true,
    description: `Grants an app nothing. ${SESSION_ONLY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DenyAuthorizationInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.authorizations.deny(ctx, parsePermitted(ctx, requireSession, denyAuthorizationInput, input)),
  }),
);

const ExchangeAuthorizationCodeInput = builder.inputType("ExchangeAuthorizationCodeInput", {
  fields: (t) => ({
    code: t.string({ required: true }),
    redirectUrl: t.string({ required: true, description: "The one that the code was asked for with." }),
    codeVerifier: t.string({ required: true }),
    appKey: t.string({ description: "Needed when the code was asked for with one." }),
  }),
});

const ExchangeAuthorizationCodePayload = builder.objectRef<IssuedToken>("ExchangeAuthorizationCodePayload").implement({
  description: "The key that was granted.",
  fields: (t) => ({
    accessToken: t.exposeString("accessToken", { description: "A secret key. It is shown this once." }),
    scope: t.field({ type: [AccountPermissionEnum], resolve: ({ scope }) => [...scope] }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds." }),
  }),
});

builder.mutationField("exchangeAuthorizationCode", (t) =>
  t.field({
    type: ExchangeAuthorizationCodePayload,
    nullable: true,
    description: "Exchanges a code for a key, once: a second time ends that key. Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ExchangeAuthorizationCodeInput, required: true }) },
    resolve: (_root, { input: { code, redirectUrl, codeVerifier, appKey } }, ctx) => {
      const parameters = { code, redirect_uri: redirectUrl, code_verifier: codeVerifier, client_id: appKey ?? undefined };
      return ctx.services.authorizationCodes.exchange(ctx, parseInput(exchangeCodeInput, parameters));
    },
  }),
);
