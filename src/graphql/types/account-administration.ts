/**
 * What operators do with any account: make it, find it, grant credits, set its tier, let it publish. And what they see of the charges
 * that the database refuses.
 */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import {
  accountSearch,
  grantCreditsInput,
  type ManagedAccount as ManagedAccountRow,
  setPublisherInput,
  setTierInput,
} from "../../services/accounts/account-administration.js";
import { REFUSED_SETTLEMENTS_SHOWN_MAX } from "../../services/accounts/limits.js";
import {
  type RefusedSettlementRow,
  type RefusedSettlementsShown,
  retryRefusedSettlementsInput,
} from "../../services/accounts/refused-settlements.js";
import { parseInput } from "../../services/requests/input.js";
import { createAccountInput } from "../../services/sessions/sign-in.js";
import { builder } from "../builder.js";
import { pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Balance } from "./accounts.js";
import { MeterSourceEnum } from "./usage.js";

const ManagedAccount = builder.objectRef<ManagedAccountRow>("ManagedAccount").implement({
  description: "Any account, as operators see it.",
  fields: (t) => ({
    id: t.exposeID("id"),
    handle: t.exposeString("handle"),
    name: t.exposeString("name", { nullable: true }),
    email: t.exposeString("email", { nullable: true }),
    githubUsername: t.exposeString("githubUsername", { nullable: true }),
    tier: t.exposeString("tier", { nullable: true, description: "Null: no tier, nothing is refilled." }),
    nextResetAt: t.expose("nextResetAt", {
      type: "DateTime",
      nullable: true,
      description: "When the tier's credits are next refilled; null: never, or not before the account is next used.",
    }),
    isOperator: t.exposeBoolean("isOperator"),
    isPublisher: t.exposeBoolean("isPublisher", { description: "May publish community models and agents. Operators may." }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    balance: t.expose("balance", { type: Balance }),
  }),
});

builder.queryField("accounts", (t) =>
  t.field({
    type: builder.connectionObject({ type: ManagedAccount, name: "ManagedAccountConnection" }, { name: "ManagedAccountEdge" }),
    nullable: true,
    description: "Accounts, newest first. Operators only.",
    args: { ...pageArgs, search: t.arg.string({ description: "Part of a handle, name, e-mail address or GitHub user name; or an id." }) },
    complexity: pageCost,
    resolve: async (_root, args, ctx) => {
      const { search = null } = parsePermitted(ctx, requireOperator, accountSearch, { search: args.search });
      const page = await ctx.services.accountAdministration.list(ctx, toPageRequest(args), search);
      return toConnection(page, args, ({ id, createdAt }) => ({ id, timestamp: createdAt }));
    },
  }),
);

builder.queryField("account", (t) =>
  t.field({
    type: ManagedAccount,
    nullable: true,
    description: "One account. Operators only.",
    args: { id: t.arg.id({ required: true }) },
    resolve: (_root, { id }, ctx) => ctx.services.accountAdministration.get(ctx, id),
  }),
);

const GrantCreditsInput = builder.inputType("GrantCreditsInput", {
  fields: (t) => ({
    accountId: t.id({ required: true }),
    bucket: t.field({ type: MeterSourceEnum, required: true }),
    credits: t.field({ type: "Credits", required: true }),
    note: t.string({ description: "Kept in the ledger." }),
    grantId: t.id({ description: "A UUID of your own: the same grant sent twice is granted once." }),
  }),
});

interface GrantedCredits {
  readonly account: ManagedAccountRow;
  readonly balance: bigint;
}

const GrantCreditsPayload = builder.objectRef<GrantedCredits>("GrantCreditsPayload").implement({
  fields: (t) => ({
    account: t.field({ type: ManagedAccount, resolve: ({ account }) => account }),
    balance: t.field({
      type: "Credits",
      description: "The sum of its buckets after the grant.",
      resolve: ({ balance }) => formatNanocredits(balance),
    }),
  }),
});

builder.mutationField("grantCredits", (t) =>
  t.field({
    type: GrantCreditsPayload,
    nullable: true,
    description: "Gives credits to an account. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: GrantCreditsInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.accountAdministration.grantCredits(ctx, parsePermitted(ctx, requireOperator, grantCreditsInput, input)),
  }),
);

const CreateAccountInput = builder.inputType("CreateAccountInput", {
  fields: (t) => ({ email: t.string({ required: true }), name: t.string() }),
});

interface CreatedAccount {
  readonly account: ManagedAccountRow;
  readonly password: string;
}

const CreateAccountPayload = builder.objectRef<CreatedAccount>("CreateAccountPayload").implement({
  fields: (t) => ({
    account: t.field({ type: ManagedAccount, resolve: ({ account }) => account }),
    password: t.exposeString("password", { description: "To sign in with, and to be changed then. Shown this once." }),
  }),
});

builder.mutationField("createAccount", (t) =>
  t.field({
    type: CreateAccountPayload,
    nullable: true,
    description: "Makes an account for somebody, also where sign-up is closed. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateAccountInput, required: true }) },
    resolve: async (_root, { input }, ctx) => {
      const { accountId, password } = await ctx.services.signIn.createFor(
        ctx,
        parsePermitted(ctx, requireOperator, createAccountInput, input),
      );
      return { account: await ctx.services.accountAdministration.get(ctx, accountId), password };
    },
  }),
);

const SetTierInput = builder.inputType("SetTierInput", {
  fields: (t) => ({
    accountId: t.id({ required: true }),
    tier: t.string({ description: "The name of a configured tier, or null for none. Must be stated." }),
  }),
});

builder.mutationField("setTier", (t) =>
  t.field({
    type: ManagedAccount,
    nullable: true,
    description:
      "Gives an account another tier. Its bucket is filled up to what the tier gives at once, and is never emptied before its next boundary. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetTierInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.accountAdministration.setTier(ctx, parsePermitted(ctx, requireOperator, setTierInput, input)),
  }),
);

const SetPublisherInput = builder.inputType("SetPublisherInput", {
  fields: (t) => ({ accountId: t.id({ required: true }), allowed: t.boolean({ required: true }) }),
});

builder.mutationField("setPublisher", (t) =>
  t.field({
    type: ManagedAccount,
    nullable: true,
    description: "Says whether an account may publish community models and agents. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetPublisherInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.accountAdministration.setPublisher(ctx, parsePermitted(ctx, requireOperator, setPublisherInput, input)),
  }),
);

const RefusedSettlement = builder.objectRef<RefusedSettlementRow>("RefusedSettlement").implement({
  description: "A charge that the database refuses. Its generation was answered; it is tried again until it is booked.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The generation's." }),
    accountId: t.exposeID("accountId"),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true }),
    model: t.exposeString("model"),
    cost: t.field({ type: "Credits", description: "What is to be charged.", resolve: ({ cost }) => formatNanocredits(cost) }),
    timestamp: t.expose("timestamp", { type: "DateTime", description: "Of the generation." }),
    refusedAt: t.expose("refusedAt", { type: "DateTime" }),
    reason: t.exposeString("reason", { description: "In the database's words, of the last try." }),
  }),
});

const RefusedSettlements = builder.objectRef<RefusedSettlementsShown>("RefusedSettlements").implement({
  fields: (t) => ({
    count: t.exposeInt("count", { description: "All of them." }),
    settlements: t.field({
      type: [RefusedSettlement],
      description: "The oldest 100.",
      complexity: { field: 1, multiplier: REFUSED_SETTLEMENTS_SHOWN_MAX },
      resolve: ({ settlements }) => settlements,
    }),
  }),
});

const OF_THIS_PROCESS = "Of the process that answers: each keeps its own. Operators only.";

builder.queryField("refusedSettlements", (t) =>
  t.field({
    type: RefusedSettlements,
    nullable: true,
    description: `The charges that the database refuses. ${OF_THIS_PROCESS}`,
    resolve: (_root, _args, ctx) => ctx.services.refusedSettlements.show(ctx),
  }),
);

const RetryRefusedSettlementsInput = builder.inputType("RetryRefusedSettlementsInput", {
  fields: (t) => ({ ids: t.idList({ description: "Of generations, at most 100. All of them unless stated." }) }),
});

builder.mutationField("retryRefusedSettlements", (t) =>
  t.field({
    type: RefusedSettlements,
    nullable: true,
    description: `Tries the charges that the database refuses once more, and answers with those that it still does. ${OF_THIS_PROCESS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RetryRefusedSettlementsInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.refusedSettlements.retry(ctx, parseInput(retryRefusedSettlementsInput, input)),
  }),
);
