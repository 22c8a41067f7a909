/** The balance below which the account wants to be told, and the telling. */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { LowBalanceNotice } from "../../services/credits/low-balance.js";
import { type LowBalanceRow, setLowBalanceThresholdInput } from "../../services/credits/low-balance.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";

export const LowBalance = builder.objectRef<LowBalanceRow>("LowBalance").implement({
  description: "The balance below which the account wants to be told, by `balanceLow` and the webhook `balance.low`.",
  fields: (t) => ({
    threshold: t.field({
      type: "Credits",
      nullable: true,
      description: "Null: not to be told.",
      resolve: ({ threshold }) => (threshold === null ? null : formatNanocredits(threshold)),
    }),
    since: t.expose("since", {
      type: "DateTime",
      nullable: true,
      description: "Since when the account's buckets together have held less; null when they do not.",
    }),
  }),
});

const SetLowBalanceThresholdInput = builder.inputType("SetLowBalanceThresholdInput", {
  description: "The balance below which to tell.",
  fields: (t) => ({ threshold: t.field({ type: "Credits", description: "Null: not to be told. Must be stated." }) }),
});

const SetLowBalanceThresholdPayload = builder.objectRef<{ readonly lowBalance: LowBalanceRow }>("SetLowBalanceThresholdPayload").implement({
  description: "The balance below which the account is told from now on.",
  fields: (t) => ({
    lowBalance: t.field({ type: LowBalance, description: "As it now is.", resolve: ({ lowBalance }) => lowBalance }),
  }),
});

builder.mutationField("setLowBalanceThreshold", (t) =>
  t.field({
    type: SetLowBalanceThresholdPayload,
    nullable: true,
    description:
      "Changes the balance below which the account is told. One above the balance is told of after the next fall below it. Needs a secret key with the permission KEYS.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetLowBalanceThresholdInput, required: true, description: "The balance below which to tell." }) },
    resolve: async (_root, { input }, ctx) => {
      const threshold = parsePermitted(ctx, requireKeyManager, setLowBalanceThresholdInput, input);
      return { lowBalance: await ctx.services.lowBalance.setThreshold(ctx, threshold) };
    },
  }),
);

const BalanceFall = builder.objectRef<LowBalanceNotice>("BalanceFall").implement({
  description: "The balance fell below the threshold.",
  fields: (t) => ({
    balance: t.field({ type: "Credits", description: "The sum of the buckets.", resolve: ({ balance }) => formatNanocredits(balance) }),
    threshold: t.field({
      type: "Credits",
      description: "What it is below.",
      resolve: ({ threshold }) => formatNanocredits(threshold),
    }),
    since: t.expose("since", { type: "DateTime", description: "When it fell." }),
  }),
});

builder.subscriptionField("balanceLow", (t) =>
  t.field({
    type: BalanceFall,
    description: "Each fall of the account's balance below the threshold, once. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.balanceLow(live), ctx.closing),
    resolve: (notice) => notice,
  }),
);
