/** The caller's account: who it is, what it can spend, its keys and its usage (docs/spec/accounts.md). */
import { formatNanocredits } from "../../lib/money.js";
import type { Balance as AccountBalance, AccountRow } from "../../services/accounts/accounts.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { ApiKey } from "./api-keys.js";
import { LowBalance } from "./low-balance.js";
import { toDays, UsageDaily, UsageRecord, usageDailyDaysArg, usageDaysArg } from "./usage.js";

export const Balance = builder.objectRef<AccountBalance>("Balance").implement({
  description: "What the caller can spend.",
  fields: (t) => ({
    available: t.field({
      type: "Credits",
      description: "The sum of the buckets; for a key with a budget, what remains of that.",
      resolve: ({ balance }) => formatNanocredits(balance),
    }),
    tier: t.field({ type: "Credits", description: "Refilled by the tier.", resolve: ({ tier }) => formatNanocredits(tier) }),
    crypto: t.field({ type: "Credits", resolve: ({ crypto }) => formatNanocredits(crypto) }),
    pack: t.field({ type: "Credits", description: "Bought.", resolve: ({ pack }) => formatNanocredits(pack) }),
    held: t.field({
      type: "Credits",
      description: "Set aside for generations that are under way.",
      resolve: ({ held }) => formatNanocredits(held),
    }),
    isKeyBudget: t.exposeBoolean("isKeyBudget", { description: "True when `available` is the budget of the calling key." }),
  }),
});

/** One read of the profile per operation, however many of its fields are asked for. */
const profiles = new WeakMap<GraphQLContext, Promise<AccountRow>>();

function profileOf(ctx: GraphQLContext): Promise<AccountRow> {
  const known = profiles.get(ctx);
  if (known !== undefined) return known;
  const profile = ctx.services.accounts.profile(ctx);
  profiles.set(ctx, profile);
  return profile;
}

export const Account = builder.objectRef<AccountRow>("Account").implement({
  description:
    "The caller's account. A key needs the matching permission for each part of it; a part that is refused is null and named in `errors`.",
  fields: (t) => ({
    id: t.exposeID("id"),
    handle: t.exposeString("handle", { description: "Names the account in community model ids: `community/<handle>/<name>`." }),
    image: t.exposeString("image", { nullable: true }),
    isOperator: t.exposeBoolean("isOperator"),
    name: t.string({
      nullable: true,
      description: "Permission PROFILE.",
      resolve: async (_row, _args, ctx) => (await profileOf(ctx)).name,
    }),
    email: t.string({
      nullable: true,
      description: "Permission PROFILE.",
      resolve: async (_row, _args, ctx) => (await profileOf(ctx)).email,
    }),
    githubUsername: t.string({
      nullable: true,
      description: "Permission PROFILE.",
      resolve: async (_row, _args, ctx) => (await profileOf(ctx)).githubUsername,
    }),
    tier: t.string({
      nullable: true,
      description: "Null: no tier, nothing is refilled. Permission PROFILE.",
      resolve: async (_row, _args, ctx) => (await profileOf(ctx)).tier,
    }),
    createdAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "Permission PROFILE.",
      resolve: async (_row, _args, ctx) => (await profileOf(ctx)).createdAt,
    }),
    nextResetAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the tier's credits are next refilled. Permission PROFILE.",
      resolve: async (_row, _args, ctx) => (await profileOf(ctx)).nextResetAt,
    }),
    balance: t.field({
      type: Balance,
      nullable: true,
      description: "Permission BALANCE.",
      resolve: (_row, _args, ctx) => ctx.services.accounts.balance(ctx),
    }),
    lowBalance: t.field({
      type: LowBalance,
      nullable: true,
      description: "The balance below which the account wants to be told. Permission BALANCE.",
      resolve: (_row, _args, ctx) => ctx.services.lowBalance.get(ctx),
    }),
    apiKeys: t.field({
      type: builder.connectionObject({ type: ApiKey, name: "ApiKeyConnection" }, { name: "ApiKeyEdge" }),
      nullable: true,
      description: "Newest first. Needs a secret key with the permission KEYS.",
      args: pageArgs,
      complexity: pageCost,
      resolve: async (_row, args, ctx) =>
        toConnection(await ctx.services.apiKeys.list(ctx, toPageRequest(args)), args, ({ id, createdAt }) => ({
          id,
          timestamp: createdAt,
        })),
    }),
    usage: t.field({
      type: builder.connectionObject({ type: UsageRecord, name: "UsageRecordConnection" }, { name: "UsageRecordEdge" }),
      nullable: true,
      description: "Newest first. Permission USAGE.",
      args: { ...pageArgs, ...usageDaysArg },
      complexity: pageCost,
      resolve: async (_row, args, ctx) =>
        toConnection(await ctx.services.usage.list(ctx, { page: toPageRequest(args), days: toDays(args) }), args, (row) => row),
    }),
    usageDaily: t.field({
      type: UsageDaily,
      nullable: true,
      description: "Permission USAGE.",
      args: usageDailyDaysArg,
      resolve: (_row, args, ctx) => ctx.services.usage.daily(ctx, { days: toDays(args) }),
    }),
  }),
});

builder.queryField("me", (t) =>
  t.field({
    type: Account,
    nullable: true,
    description: "The account behind this request.",
    resolve: (_root, _args, ctx) => ctx.services.accounts.me(ctx),
  }),
);
