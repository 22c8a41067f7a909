/** The account of the caller: profile, balance, keys and usage (docs/spec/accounts.md). */
import { formatNanocredits } from "../../lib/money.js";
import { RANKED } from "../../lib/pagination.js";
import { type Balance as AccountBalance, BALANCE_COLUMNS } from "../../services/accounts/accounts.js";
import { keyPosition } from "../../services/api-keys/api-key-list.js";
import { builder } from "../builder.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { ApiKey, ApiKeyFilter, ApiKeyOrder } from "./api-keys.js";
import { LowBalance } from "./low-balance.js";

export const Balance = builder.objectRef<AccountBalance>("Balance").implement({
  description: "The balance of an account or key.",
  fields: (t) => ({
    available: t.field({
      type: "Credits",
      description: "The sum of the buckets. For a key with a budget, the rest of that budget.",
      resolve: ({ balance }) => formatNanocredits(balance),
    }),
    tier: t.field({ type: "Credits", description: "Credits that the tier refills.", resolve: ({ tier }) => formatNanocredits(tier) }),
    crypto: t.field({ type: "Credits", description: "Credits paid in with crypto.", resolve: ({ crypto }) => formatNanocredits(crypto) }),
    pack: t.field({ type: "Credits", description: "Credits bought in packs.", resolve: ({ pack }) => formatNanocredits(pack) }),
    held: t.field({
      type: "Credits",
      description: "Credits held for generations that are running.",
      resolve: ({ held }) => formatNanocredits(held),
    }),
    isKeyBudget: t.exposeBoolean("isKeyBudget", { description: "Whether `available` is the budget of the calling key." }),
  }),
});

export const Account = builder.prismaObject("Account", {
  description:
    "An account: the caller's own, or any account for operators. A key needs the matching permission for each field. A field that the key may not read is null and listed in `errors`.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.accounts.getMany(ctx, ids, selectionOf(ctx, info, [], "Account"))),
  ),
  fields: (t) => ({
    handle: t.exposeString("handle", { description: "The name of the account in community model IDs: `community/<handle>/<name>`." }),
    image: t.exposeString("image", { nullable: true, description: "The URL of the account's picture." }),
    isOperator: t.exposeBoolean("isOperator", { description: "Whether the account operates this gateway." }),
    isPublisher: t.boolean({
      description: "Whether the account may publish community models and agents. True for operators.",
      select: { isPublisher: true, isOperator: true },
      resolve: ({ isPublisher, isOperator }) => isPublisher || isOperator,
    }),
    suspendedAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the account was suspended. Null when it is not. Permission PROFILE.",
      select: { suspendedAt: true },
      resolve: ({ id, suspendedAt }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", suspendedAt),
    }),
    suspensionReason: t.string({
      nullable: true,
      description: "The operator's reason for the suspension. Null when the account is not suspended. Permission PROFILE.",
      select: { suspensionReason: true },
      resolve: ({ id, suspensionReason }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", suspensionReason),
    }),
    name: t.string({
      nullable: true,
      description: "The display name of the owner. Permission PROFILE.",
      select: { name: true },
      resolve: ({ id, name }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", name),
    }),
    email: t.string({
      nullable: true,
      description: "The e-mail address of the owner. Permission PROFILE.",
      select: { email: true },
      resolve: ({ id, email }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", email),
    }),
    isEmailVerified: t.boolean({
      nullable: true,
      description: "Whether the e-mail address was verified. Permission PROFILE.",
      select: { isEmailVerified: true },
      resolve: ({ id, isEmailVerified }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", isEmailVerified),
    }),
    githubUsername: t.string({
      nullable: true,
      description: "The owner's GitHub user name, when they signed in with GitHub. Permission PROFILE.",
      select: { githubUsername: true },
      resolve: ({ id, githubUsername }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", githubUsername),
    }),
    tier: t.string({
      nullable: true,
      description: "The name of the tier. Null when the account has no tier and gets no refills. Permission PROFILE.",
      select: { tier: true },
      resolve: ({ id, tier }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", tier),
    }),
    createdAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the account was created. Permission PROFILE.",
      resolve: ({ id, createdAt }, _args, ctx) => ctx.services.accounts.viewable(ctx, id, "profile", createdAt),
    }),
    nextResetAt: t.field({
      type: "DateTime",
      nullable: true,
      description:
        "When the tier credits are next refilled. Null when they are never refilled, or not before the account is next used. Permission PROFILE.",
      select: { tier: true, tierResetsAt: true },
      resolve: (row, _args, ctx) => {
        const { accounts } = ctx.services;
        return accounts.viewable(ctx, row.id, "profile", accounts.nextResetOf(row));
      },
    }),
    balance: t.field({
      type: Balance,
      nullable: true,
      description: "The balance of the account. Permission BALANCE.",
      select: BALANCE_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.accounts.balanceFrom(ctx, row),
    }),
    lowBalance: t.field({
      type: LowBalance,
      nullable: true,
      description: "The low-balance alert of the account. Permission BALANCE.",
      select: { lowBalanceNanocredits: true, lowBalanceSince: true },
      resolve: ({ id, lowBalanceNanocredits: threshold, lowBalanceSince: since }, _args, ctx) =>
        ctx.services.accounts.viewable(ctx, id, "balance", { threshold, since }),
    }),
    currentApiKey: t.field({
      type: ApiKey,
      nullable: true,
      description: "The key that authenticates this request. Works with any key. Null when a session makes the request.",
      resolve: ({ id }, _args, ctx, info) => {
        ctx.services.accounts.assertOwn(ctx, id);
        const selection = selectionOf(ctx, info);
        return ctx.caller.kind === "key" ? ctx.services.apiKeys.currentSelected(ctx, selection) : null;
      },
    }),
    apiKeys: t.field({
      type: builder.connectionObject(
        { type: ApiKey, name: "ApiKeyConnection", description: "A page of API keys." },
        { name: "ApiKeyEdge", description: "An API key and its cursor." },
      ),
      nullable: true,
      description:
        "API keys that are not revoked, newest first unless `orderBy` says otherwise. Needs a secret key with the permission KEYS. Operators see those of any account.",
      args: {
        ...pageArgs,
        filter: t.arg({ type: ApiKeyFilter, description: "Filters. Defaults to all keys." }),
        orderBy: t.arg({
          type: ApiKeyOrder,
          description: "The sort order. Defaults to newest first. Cursors are valid in one order only.",
        }),
      },
      complexity: pageCost,
      resolve: async ({ id }, { filter, orderBy, ...args }, ctx, info) => {
        const { apiKeys } = ctx.services;
        const selection = connectionSelectionOf(ctx, info);
        if (!orderBy) {
          const page = await apiKeys.listSelected(ctx, toPageRequest(args, "apiKeys"), selection, filter, id);
          return toConnection(page, "apiKeys", createdPosition);
        }
        const list = `apiKeys.${orderBy.field}.${orderBy.direction}`;
        const page = await apiKeys.listOrdered(ctx, toPageRequest(args, list, RANKED), orderBy, selection, {
          filter: filter ?? null,
          of: id,
        });
        return toConnection(page, list, (key) => keyPosition(key, orderBy), RANKED);
      },
    }),
  }),
});

builder.queryField("me", (t) =>
  t.field({
    type: Account,
    nullable: true,
    description: "The account that makes this request.",
    resolve: (_root, _args, ctx, info) => ctx.services.accounts.own(ctx, selectionOf(ctx, info)),
  }),
);
