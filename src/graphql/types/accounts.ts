/** Accounts: who the caller is, what it can spend, its keys and its usage (docs/spec/accounts.md). */
import { formatNanocredits } from "../../lib/money.js";
import { type Balance as AccountBalance, BALANCE_COLUMNS } from "../../services/accounts/accounts.js";
import { builder } from "../builder.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { ApiKey, ApiKeyFilter } from "./api-keys.js";
import { LowBalance } from "./low-balance.js";

export const Balance = builder.objectRef<AccountBalance>("Balance").implement({
  description: "What can be spent.",
  fields: (t) => ({
    available: t.field({
      type: "Credits",
      description: "The sum of the buckets; for a key with a budget, what remains of that.",
      resolve: ({ balance }) => formatNanocredits(balance),
    }),
    tier: t.field({ type: "Credits", description: "Refilled by the tier.", resolve: ({ tier }) => formatNanocredits(tier) }),
    crypto: t.field({ type: "Credits", description: "Paid in with crypto.", resolve: ({ crypto }) => formatNanocredits(crypto) }),
    pack: t.field({ type: "Credits", description: "Bought.", resolve: ({ pack }) => formatNanocredits(pack) }),
    held: t.field({
      type: "Credits",
      description: "Set aside for generations that are under way.",
      resolve: ({ held }) => formatNanocredits(held),
    }),
    isKeyBudget: t.exposeBoolean("isKeyBudget", { description: "True when `available` is the budget of the calling key." }),
  }),
});

export const Account = builder.prismaObject("Account", {
  description:
    "An account: the caller's own, or for operators any. A key needs the matching permission for each part of it; a part that is refused is null and named in `errors`.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.accounts.getMany(ctx, ids, selectionOf(ctx, info, [], "Account"))),
  ),
  fields: (t) => ({
    handle: t.exposeString("handle", { description: "Names the account in community model ids: `community/<handle>/<name>`." }),
    image: t.exposeString("image", { nullable: true, description: "The address of its picture." }),
    isOperator: t.exposeBoolean("isOperator", { description: "Operates this gateway." }),
    isPublisher: t.boolean({
      description: "May publish community models and agents. Operators may.",
      select: { isPublisher: true, isOperator: true },
      resolve: ({ isPublisher, isOperator }) => isPublisher || isOperator,
    }),
    name: t.string({
      nullable: true,
      description: "What its owner is called. Permission PROFILE.",
      select: { name: true },
      resolve: ({ id, name }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", name),
    }),
    email: t.string({
      nullable: true,
      description: "Where its owner is reached. Permission PROFILE.",
      select: { email: true },
      resolve: ({ id, email }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", email),
    }),
    isEmailVerified: t.boolean({
      nullable: true,
      description: "Whether the e-mail address is known to be its owner's. Permission PROFILE.",
      select: { isEmailVerified: true },
      resolve: ({ id, isEmailVerified }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", isEmailVerified),
    }),
    githubUsername: t.string({
      nullable: true,
      description: "Its owner's name at GitHub, when they have signed in there. Permission PROFILE.",
      select: { githubUsername: true },
      resolve: ({ id, githubUsername }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", githubUsername),
    }),
    tier: t.string({
      nullable: true,
      description: "Null: no tier, nothing is refilled. Permission PROFILE.",
      select: { tier: true },
      resolve: ({ id, tier }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", tier),
    }),
    createdAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When it was made. Permission PROFILE.",
      resolve: ({ id, createdAt }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", createdAt),
    }),
    nextResetAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the tier's credits are next refilled; null: never, or not before the account is next used. Permission PROFILE.",
      select: { tier: true, tierResetsAt: true },
      resolve: (row, _args, ctx) => {
        const { accounts } = ctx.services;
        return accounts.viewable(ctx, row.id, "profile", accounts.nextResetOf(row));
      },
    }),
    balance: t.field({
      type: Balance,
      nullable: true,
      description: "Permission BALANCE.",
      select: BALANCE_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.accounts.balanceFrom(ctx, row),
    }),
    lowBalance: t.field({
      type: LowBalance,
      nullable: true,
      description: "The balance below which the account wants to be told. Permission BALANCE.",
      select: { lowBalanceNanocredits: true, lowBalanceSince: true },
      resolve: ({ id, lowBalanceNanocredits: threshold, lowBalanceSince: since }, _args, ctx) =>
        ctx.services.accounts.viewable(ctx, id, "balance", { threshold, since }),
    }),
    currentApiKey: t.field({
      type: ApiKey,
      nullable: true,
      description: "The key that this request was made with. Works with any key. Null: a session asks.",
      resolve: ({ id }, _args, ctx, info) => {
        ctx.services.accounts.assertOwn(ctx, id);
        const selection = selectionOf(ctx, info);
        return ctx.caller.kind === "key" ? ctx.services.apiKeys.currentSelected(ctx, selection) : null;
      },
    }),
    apiKeys: t.field({
      type: builder.connectionObject(
        { type: ApiKey, name: "ApiKeyConnection", description: "API keys, page by page." },
        { name: "ApiKeyEdge", description: "An API key, and its place in the list." },
      ),
      nullable: true,
      description: "Those that are not revoked, newest first. Needs a secret key with the permission KEYS.",
      args: { ...pageArgs, filter: t.arg({ type: ApiKeyFilter, description: "Which ones. All of them unless stated." }) },
      complexity: pageCost,
      resolve: async ({ id }, args, ctx, info) => {
        const { accounts, apiKeys } = ctx.services;
        accounts.assertOwn(ctx, id);
        const page = await apiKeys.listSelected(ctx, toPageRequest(args, "apiKeys"), connectionSelectionOf(ctx, info), args.filter);
        return toConnection(page, "apiKeys", createdPosition);
      },
    }),
  }),
});

builder.queryField("me", (t) =>
  t.field({
    type: Account,
    nullable: true,
    description: "The account behind this request.",
    resolve: (_root, _args, ctx, info) => ctx.services.accounts.own(ctx, selectionOf(ctx, info)),
  }),
);
