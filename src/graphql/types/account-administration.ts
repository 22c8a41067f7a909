/**
 * What operators do with any account: make it, find it, grant credits, set its tier, let it publish. And what they see of the charges
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
import { REFUSED_SETTLEMENTS_SHOWN_MAX } from "../../services/accounts/limits.js";
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
  description: "Which accounts: those that answer to all of it.",
  fields: (t) => ({
    tiers: t.stringList({ description: "Those with one of these tiers, as the configuration names them." }),
    isOperator: t.boolean({ description: "Those that operate this gateway, or those that do not." }),
    isPublisher: t.boolean({ description: "Those that may publish, operators among them, or those that may not." }),
  }),
});

builder.queryField("accounts", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Account, name: "AccountConnection", description: "Accounts, page by page." },
      { name: "AccountEdge", description: "An account, and its place in the list." },
    ),
    nullable: true,
    description: "Accounts, newest first. Operators only.",
    args: {
      ...pageArgs,
      search: t.arg.string({ description: "Part of a handle, name, e-mail address or GitHub user name; or an id." }),
      filter: t.arg({ type: AccountFilter, description: "Which ones. All of them unless stated." }),
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
    args: { id: t.arg.id({ required: true, description: "Whose." }) },
    resolve: (_root, { id }, ctx, info) => ctx.services.accounts.getAny(ctx, readId(id, "Account", "id"), selectionOf(ctx, info)),
  }),
);

const GrantCreditsInput = builder.inputType("GrantCreditsInput", {
  description: "Credits for an account.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "Whose." }),
    bucket: t.field({ type: MeterSourceEnum, required: true, description: "Where they go." }),
    credits: t.field({ type: "Credits", required: true, description: "How many, more than 0." }),
    note: t.string({ description: "Kept in the ledger." }),
    grantId: t.id({ description: "A UUID of your own: the same grant sent twice is granted once." }),
  }),
});

interface ManagedAccount {
  readonly account: SelectedAccount;
}

function accountPayload<Managed extends ManagedAccount>(name: string, description: string) {
  return builder.objectRef<Managed>(name).implement({
    description,
    fields: (t) => ({
      account: t.field({ type: Account, description: "As it now is, its balance included.", resolve: ({ account }) => account }),
    }),
  });
}

/** What is selected of an account that a mutation has changed. */
async function managed(ctx: GraphQLContext, info: GraphQLResolveInfo, accountId: string): Promise<ManagedAccount> {
  return { account: await ctx.services.accounts.get(ctx, accountId, selectionOf(ctx, info, ["account"])) };
}

const GrantCreditsPayload = accountPayload<ManagedAccount>("GrantCreditsPayload", "An account that was given credits.");

builder.mutationField("grantCredits", (t) =>
  t.field({
    type: GrantCreditsPayload,
    nullable: true,
    description: "Gives credits to an account. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: GrantCreditsInput, required: true, description: "How many, and to whom." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const grant = parsePermitted(ctx, requireOperator, grantCreditsInput, () => withAccountId(input));
      await ctx.services.accountAdministration.grantCredits(ctx, grant);
      return managed(ctx, info, grant.accountId);
    },
  }),
);

const CreateAccountInput = builder.inputType("CreateAccountInput", {
  description: "Whose account to make.",
  fields: (t) => ({
    email: t.string({ required: true, description: "To sign in with. Nobody else may have it." }),
    name: t.string({ description: "What its owner is called." }),
  }),
});

interface CreatedAccount extends ManagedAccount {
  readonly password: string;
}

const CreateAccountPayload = accountPayload<CreatedAccount>("CreateAccountPayload", "A new account.");

builder.objectField(CreateAccountPayload, "password", (t) =>
  t.exposeString("password", { description: "To sign in with, and to be changed then. Shown this once." }),
);

builder.mutationField("createAccount", (t) =>
  t.field({
    type: CreateAccountPayload,
    nullable: true,
    description: "Makes an account for somebody, also where sign-up is closed. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateAccountInput, required: true, description: "Whose." }) },
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
  description: "A tier for an account.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "Whose." }),
    tier: t.string({ description: "The name of a configured tier, or null for none. Must be stated." }),
  }),
});

const SetTierPayload = accountPayload<ManagedAccount>("SetTierPayload", "An account whose tier was set.");

builder.mutationField("setTier", (t) =>
  t.field({
    type: SetTierPayload,
    nullable: true,
    description:
      "Gives an account another tier. Its bucket is filled up to what the tier gives at once, and is never emptied before its next boundary. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetTierInput, required: true, description: "Which tier, and whose." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, setTierInput, () => withAccountId(input));
      await ctx.services.accountAdministration.setTier(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

const SetPublisherInput = builder.inputType("SetPublisherInput", {
  description: "Whether an account may publish.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "Whose." }),
    isPublisher: t.boolean({ required: true, description: "Whether it may publish community models and agents." }),
  }),
});

const SetPublisherPayload = accountPayload<ManagedAccount>("SetPublisherPayload", "An account that may publish, or no longer.");

builder.mutationField("setPublisher", (t) =>
  t.field({
    type: SetPublisherPayload,
    nullable: true,
    description: "Says whether an account may publish community models and agents. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetPublisherInput, required: true, description: "Whether it may, and which account." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, setPublisherInput, () => withAccountId(input));
      await ctx.services.accountAdministration.setPublisher(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

const SetOperatorInput = builder.inputType("SetOperatorInput", {
  description: "Whether an account operates this gateway.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "Whose." }),
    isOperator: t.boolean({
      required: true,
      description: "Whether it may do what operators may, with its sessions and its keys that hold the permission KEYS.",
    }),
  }),
});

const SetOperatorPayload = accountPayload<ManagedAccount>("SetOperatorPayload", "An account that operates this gateway, or no longer.");

builder.mutationField("setOperator", (t) =>
  t.field({
    type: SetOperatorPayload,
    nullable: true,
    description: "Says whether an account operates this gateway. The last one that does cannot be ended. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetOperatorInput, required: true, description: "Whether it does, and which account." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const change = parsePermitted(ctx, requireOperator, setOperatorInput, () => withAccountId(input));
      await ctx.services.accountAdministration.setOperator(ctx, change);
      return managed(ctx, info, change.accountId);
    },
  }),
);

function withAccountId<Input extends { readonly accountId: string }>(input: Input): Input {
  return { ...input, accountId: readId(input.accountId, "Account", "accountId") };
}

const accountOf = rowsBatchedBy((ctx, ids, select) => ctx.services.accounts.getMany(ctx, ids, select));

const RefusedSettlement = builder.objectRef<RefusedSettlementRow>("RefusedSettlement").implement({
  description: "A charge that the database refuses. Its generation was answered; it is tried again until it is booked.",
  fields: (t) => ({
    generationId: t.exposeID("id", { description: "The REST id of the generation that is to be charged." }),
    accountId: t.exposeID("accountId", { description: "The REST id of the account that is to pay." }),
    account: t.field({
      type: Account,
      nullable: true,
      description: "The account that is to pay. Null: it is gone.",
      resolve: ({ accountId }, _args, ctx, info) => accountOf(ctx, accountId, info),
    }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: "The REST id of the key that is to pay. Null: a session asked." }),
    modelId: t.exposeID("model", { description: "The canonical id of the model that was asked for." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model that was asked for. Null: it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    cost: t.field({ type: "Credits", description: "What is to be charged.", resolve: ({ cost }) => formatNanocredits(cost) }),
    timestamp: t.expose("timestamp", { type: "DateTime", description: "When the generation ended." }),
    refusedAt: t.expose("refusedAt", { type: "DateTime", description: "When the database first refused it." }),
    reason: t.exposeString("reason", { description: "Why the last try was refused, in the database's words." }),
  }),
});

const RefusedSettlements = builder.objectRef<RefusedSettlementsShown>("RefusedSettlements").implement({
  description: "The charges that the database refuses.",
  fields: (t) => ({
    count: t.exposeInt("count", { description: "How many there are in all." }),
    settlements: t.field({
      type: [RefusedSettlement],
      description: "The oldest 100.",
      complexity: { field: 1, multiplier: REFUSED_SETTLEMENTS_SHOWN_MAX },
      resolve: ({ settlements }) => settlements,
    }),
  }),
});

const OF_THIS_GATEWAY = "Of the gateway that answers, with all of its workers: each keeps its own. Operators only.";

builder.queryField("refusedSettlements", (t) =>
  t.field({
    type: RefusedSettlements,
    nullable: true,
    description: `The charges that the database refuses. ${OF_THIS_GATEWAY}`,
    resolve: (_root, _args, ctx) => ctx.services.refusedSettlements.show(ctx),
  }),
);

const RetryRefusedSettlementsInput = builder.inputType("RetryRefusedSettlementsInput", {
  description: "The charges to be tried once more.",
  fields: (t) => ({ ids: t.idList({ description: "Of generations, at most 100. All of them unless stated." }) }),
});

interface RetriedSettlements {
  readonly refusedSettlements: RefusedSettlementsShown;
}

const RetryRefusedSettlementsPayload = builder.objectRef<RetriedSettlements>("RetryRefusedSettlementsPayload").implement({
  description: "Charges that have been tried once more.",
  fields: (t) => ({
    refusedSettlements: t.field({
      type: RefusedSettlements,
      description: "Those that the database still refuses.",
      resolve: ({ refusedSettlements }) => refusedSettlements,
    }),
  }),
});

builder.mutationField("retryRefusedSettlements", (t) =>
  t.field({
    type: RetryRefusedSettlementsPayload,
    nullable: true,
    description: `Tries the charges that the database refuses once more, and answers with those that it still does. ${OF_THIS_GATEWAY}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RetryRefusedSettlementsInput, required: true, description: "The charges to be tried once more." }) },
    resolve: async (_root, { input }, ctx) => {
      const ids = input.ids?.map((id, index) => readId(id, "UsageRecord", `ids.${index}`));
      const parsed = parseInput(retryRefusedSettlementsInput, { ...input, ...(ids && { ids }) });
      return { refusedSettlements: await ctx.services.refusedSettlements.retry(ctx, parsed) };
    },
  }),
);
