/**
 * Account administration for operators: create and find accounts, grant credits, set tiers and publisher access, and inspect charges
 * that the database refuses.
 */
import type { GraphQLResolveInfo } from "graphql";
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import {
  accountSearch,
  grantCreditsInput,
  setOperatorInput,
  setPublisherInput,
  setTierInput,
} from "../../services/accounts/account-administration.js";
import type { SelectedAccount } from "../../services/accounts/accounts.js";
import { GRANT_PRIORITY_MAX, REFUSED_SETTLEMENTS_SHOWN_MAX } from "../../services/accounts/limits.js";
import {
  type RefusedSettlementRow,
  type RefusedSettlementsShown,
  retryRefusedSettlementsInput,
} from "../../services/accounts/refused-settlements.js";
import { parseInput } from "../../services/requests/input.js";
import { createAccountInput } from "../../services/sessions/sign-in.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { readId } from "../global-ids.js";
import { rowsBatchedBy } from "../loaders.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { Model } from "./models.js";
import { MeterSourceEnum } from "./usage.js";

const AccountFilter = builder.inputType("AccountFilter", {
  description: "Filters for accounts. An account must match all of them.",
  fields: (t) => ({
    tiers: t.stringList({ description: "Accounts with one of these tiers, named as in the configuration." }),
    isOperator: t.boolean({ description: "True: operators of this gateway. False: all other accounts." }),
    isPublisher: t.boolean({ description: "True: accounts that may publish, operators included. False: all other accounts." }),
    isSuspended: t.boolean({ description: "True: suspended accounts. False: all other accounts." }),
  }),
});

builder.queryField("accounts", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Account, name: "AccountConnection", description: "A page of accounts." },
      { name: "AccountEdge", description: "An account and its cursor." },
    ),
    nullable: true,
    description: "Accounts, newest first. Operators only.",
    args: {
      ...pageArgs,
      search: t.arg.string({
        description:
          "Part of a handle, name, e-mail address or GitHub user name; the REST ID of an account, key, session, generation or grant; the request ID of a failed request; or a key or its beginning.",
      }),
      filter: t.arg({ type: AccountFilter, description: "Filters. Defaults to all accounts." }),
    },
    complexity: pageCost,
    resolve: async (_root, args, ctx, info) => {
      const search = parsePermitted(ctx, requireOperator, accountSearch, { search: args.search, filter: args.filter });
      const selection = connectionSelectionOf(ctx, info);
      const page = await ctx.services.accountAdministration.list(ctx, toPageRequest(args, "accounts"), search, selection);
      return toConnection(page, "accounts", createdPosition);
    },
  }),
);

builder.queryField("account", (t) =>
  t.field({
    type: Account,
    nullable: true,
    description: "One account. Operators only.",
    args: { id: t.arg.id({ required: true, description: "The ID of the account." }) },
    resolve: (_root, { id }, ctx, info) => ctx.services.accounts.getAny(ctx, readId(id, "Account", "id"), selectionOf(ctx, info)),
  }),
);

const GrantCreditsInput = builder.inputType("GrantCreditsInput", {
  description: "Parameters of `grantCredits`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account that receives the credits." }),
    bucket: t.field({ type: MeterSourceEnum, required: true, description: "The bucket that the credits are added to." }),
    credits: t.field({ type: "Credits", required: true, description: "The number of credits. Must be more than 0." }),
    note: t.string({ description: "A note that is kept in the ledger." }),
    grantId: t.id({ description: "A UUID that you choose. A grant that is sent twice with the same UUID is granted once." }),
    expiresAt: t.field({
      type: "DateTime",
      description: "When the part that is not spent expires. Of the buckets CRYPTO and PACK. Null or absent: never.",
    }),
    priority: t.int({
      description: `The order in which grants that expire are spent, from 0 (the default) to ${GRANT_PRIORITY_MAX}: smaller numbers first. All of them are spent before other credits of the bucket.`,
    }),
  }),
});

export interface ManagedAccount {
  readonly account: SelectedAccount;
}

export function accountPayload<Managed extends ManagedAccount>(name: string, description: string) {
  return builder.objectRef<Managed>(name).implement({
    description,
    fields: (t) => ({
      account: t.field({
        type: Account,
        description: "The account after the change, with its balance.",
        resolve: ({ account }) => account,
      }),
    }),
  });
}

/** Loads the selected fields of an account after a mutation changed it. */
export async function managed(ctx: GraphQLContext, info: GraphQLResolveInfo, accountId: string): Promise<ManagedAccount> {
  return { account: await ctx.services.accounts.get(ctx, accountId, selectionOf(ctx, info, ["account"])) };
}

const GrantCreditsPayload = accountPayload<ManagedAccount>("GrantCreditsPayload", "The result of `grantCredits`.");

builder.mutationField("grantCredits", (t) =>
  t.field({
    type: GrantCreditsPayload,
    nullable: true,
    description: "Grants credits to an account. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: GrantCreditsInput, required: true, description: "The account and the credits." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const grant = parsePermitted(ctx, requireOperator, grantCreditsInput, () => withAccountId(input));
      await ctx.services.accountAdministration.grantCredits(ctx, grant);
      return managed(ctx, info, grant.accountId);
    },
  }),
);

const CreateAccountInput = builder.inputType("CreateAccountInput", {
  description: "Parameters of `createAccount`.",
  fields: (t) => ({
    email: t.string({ required: true, description: "The e-mail address to sign in with. Must not belong to another account." }),
    name: t.string({ description: "The display name of the owner." }),
  }),
});

interface CreatedAccount extends ManagedAccount {
  readonly password: string;
}

const CreateAccountPayload = accountPayload<CreatedAccount>("CreateAccountPayload", "The result of `createAccount`.");

builder.objectField(CreateAccountPayload, "password", (t) =>
  t.exposeString("password", { description: "The initial password, shown only once. The owner is to change it after the first sign-in." }),
);

builder.mutationField("createAccount", (t) =>
  t.field({
    type: CreateAccountPayload,
    nullable: true,
    description: "Creates an account for another person, even when sign-up is closed. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateAccountInput, required: true, description: "The owner of the new account." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { accountId, password } = await ctx.services.signIn.createFor(
        ctx,
        parsePermitted(ctx, requireOperator, createAccountInput, input),
      );
      return { ...(await managed(ctx, info, accountId)), password };
    },
  }),
);

const SetTierInput = builder.inputType("SetTierInput", {
  description: "Parameters of `setTier`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account." }),
    tier: t.string({ description: "The name of a configured tier, or null for no tier. Required, even when null." }),
  }),
});

const SetTierPayload = accountPayload<ManagedAccount>("SetTierPayload", "The result of `setTier`.");

builder.mutationField("setTier", (t) =>
  t.field({
    type: SetTierPayload,
    nullable: true,
    description:
      "Sets the tier of an account. The tier bucket is topped up to the new tier's amount at once, and is never reduced before the next refill. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetTierInput, required: true, description: "The account and its new tier." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, setTierInput, () => withAccountId(input));
      await ctx.services.accountAdministration.setTier(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

const SetPublisherInput = builder.inputType("SetPublisherInput", {
  description: "Parameters of `setPublisher`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account." }),
    isPublisher: t.boolean({ required: true, description: "Whether the account may publish community models and agents." }),
  }),
});

const SetPublisherPayload = accountPayload<ManagedAccount>("SetPublisherPayload", "The result of `setPublisher`.");

builder.mutationField("setPublisher", (t) =>
  t.field({
    type: SetPublisherPayload,
    nullable: true,
    description: "Allows or forbids an account to publish community models and agents. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetPublisherInput, required: true, description: "The account and whether it may publish." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, setPublisherInput, () => withAccountId(input));
      await ctx.services.accountAdministration.setPublisher(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

const SetOperatorInput = builder.inputType("SetOperatorInput", {
  description: "Parameters of `setOperator`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account." }),
    isOperator: t.boolean({
      required: true,
      description: "Whether the account has operator rights, through its sessions and its keys with the permission KEYS.",
    }),
  }),
});

const SetOperatorPayload = accountPayload<ManagedAccount>("SetOperatorPayload", "The result of `setOperator`.");

builder.mutationField("setOperator", (t) =>
  t.field({
    type: SetOperatorPayload,
    nullable: true,
    description: "Grants or removes operator rights. The last operator cannot be removed. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetOperatorInput, required: true, description: "The account and whether it is an operator." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, setOperatorInput, () => withAccountId(input));
      await ctx.services.accountAdministration.setOperator(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

export function withAccountId<Input extends { readonly accountId: string }>(input: Input): Input {
  return { ...input, accountId: readId(input.accountId, "Account", "accountId") };
}

const accountOf = rowsBatchedBy((ctx, ids, select) => ctx.services.accounts.getMany(ctx, ids, select));

const RefusedSettlement = builder.objectRef<RefusedSettlementRow>("RefusedSettlement").implement({
  description: "A charge that the database refuses. The generation itself was answered. The gateway retries the charge until it is stored.",
  fields: (t) => ({
    generationId: t.exposeID("id", { description: "The REST ID of the generation to charge." }),
    accountId: t.exposeID("accountId", { description: "The REST ID of the account to charge." }),
    account: t.field({
      type: Account,
      nullable: true,
      description: "The account to charge. Null when it was deleted.",
      resolve: ({ accountId }, _args, ctx, info) => accountOf(ctx, accountId, info),
    }),
    apiKeyId: t.exposeID("apiKeyId", {
      nullable: true,
      description: "The REST ID of the key to charge. Null when a session made the request.",
    }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    cost: t.field({ type: "Credits", description: "The amount to charge.", resolve: ({ cost }) => formatNanocredits(cost) }),
    timestamp: t.expose("timestamp", { type: "DateTime", description: "When the generation ended." }),
    refusedAt: t.expose("refusedAt", { type: "DateTime", description: "When the database first refused the charge." }),
    reason: t.exposeString("reason", { description: "The database's error message for the last attempt." }),
  }),
});

const RefusedSettlements = builder.objectRef<RefusedSettlementsShown>("RefusedSettlements").implement({
  description: "Charges that the database refuses.",
  fields: (t) => ({
    count: t.exposeInt("count", { description: "The total number of refused charges." }),
    settlements: t.field({
      type: [RefusedSettlement],
      description: "The 100 oldest refused charges.",
      complexity: { field: 1, multiplier: REFUSED_SETTLEMENTS_SHOWN_MAX },
      resolve: ({ settlements }) => settlements,
    }),
  }),
});

const OF_THIS_GATEWAY = "Covers only the gateway that answers, with all of its workers: each gateway keeps its own list. Operators only.";

builder.queryField("refusedSettlements", (t) =>
  t.field({
    type: RefusedSettlements,
    nullable: true,
    description: `Charges that the database refuses. ${OF_THIS_GATEWAY}`,
    resolve: (_root, _args, ctx) => ctx.services.refusedSettlements.show(ctx),
  }),
);

const RetryRefusedSettlementsInput = builder.inputType("RetryRefusedSettlementsInput", {
  description: "Parameters of `retryRefusedSettlements`.",
  fields: (t) => ({ ids: t.idList({ description: "IDs of generations, at most 100. Defaults to all refused charges." }) }),
});

interface RetriedSettlements {
  readonly refusedSettlements: RefusedSettlementsShown;
}

const RetryRefusedSettlementsPayload = builder.objectRef<RetriedSettlements>("RetryRefusedSettlementsPayload").implement({
  description: "The result of `retryRefusedSettlements`.",
  fields: (t) => ({
    refusedSettlements: t.field({
      type: RefusedSettlements,
      description: "The charges that the database still refuses.",
      resolve: ({ refusedSettlements }) => refusedSettlements,
    }),
  }),
});

builder.mutationField("retryRefusedSettlements", (t) =>
  t.field({
    type: RetryRefusedSettlementsPayload,
    nullable: true,
    description: `Retries charges that the database refused, and returns those that it still refuses. ${OF_THIS_GATEWAY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RetryRefusedSettlementsInput, required: true, description: "The charges to retry." }) },
    resolve: async (_root, { input }, ctx) => {
      const ids = input.ids?.map((id, index) => readId(id, "UsageRecord", `ids.${index}`));
      const parsed = parseInput(retryRefusedSettlementsInput, { ...input, ...(ids && { ids }) });
      return { refusedSettlements: await ctx.services.refusedSettlements.retry(ctx, parsed) };
    },
  }),
);
