/** The low-balance alert: its threshold, and its event. */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { LowBalanceNotice } from "../../services/credits/low-balance.js";
import { type LowBalanceRow, setLowBalanceThresholdInput } from "../../services/credits/low-balance.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";

export const LowBalance = builder.objectRef<LowBalanceRow>("LowBalance").implement({
  description: "The low-balance alert of an account, sent through `balanceLow` and the webhook `balance.low`.",
  fields: (t) => ({
    threshold: t.field({
      type: "Credits",
      nullable: true,
      description: "The balance below which the alert is sent. Null: no alert.",
      resolve: ({ threshold }) => (threshold === null ? null : formatNanocredits(threshold)),
    }),
    since: t.expose("since", {
      type: "DateTime",
      nullable: true,
      description: "Since when the sum of the buckets has been below the threshold. Null when it is not.",
    }),
  }),
});

const SetLowBalanceThresholdInput = builder.inputType("SetLowBalanceThresholdInput", {
  description: "Parameters of `setLowBalanceThreshold`.",
  fields: (t) => ({
    threshold: t.field({
      type: "Credits",
      description: "The balance below which the alert is sent. Null: no alert. Required, even when null.",
    }),
  }),
});

const SetLowBalanceThresholdPayload = builder.objectRef<{ readonly lowBalance: LowBalanceRow }>("SetLowBalanceThresholdPayload").implement({
  description: "The result of `setLowBalanceThreshold`.",
  fields: (t) => ({
    lowBalance: t.field({ type: LowBalance, description: "The alert after the change.", resolve: ({ lowBalance }) => lowBalance }),
  }),
});

builder.mutationField("setLowBalanceThreshold", (t) =>
  t.field({
    type: SetLowBalanceThresholdPayload,
    nullable: true,
    description:
      "Sets the threshold of the low-balance alert. When the threshold is above the current balance, the alert is sent at the next fall below it. Needs a secret key with the permission KEYS.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetLowBalanceThresholdInput, required: true, description: "The new threshold." }) },
    resolve: async (_root, { input }, ctx) => {
      const threshold = parsePermitted(ctx, requireKeyManager, setLowBalanceThresholdInput, input);
      return { lowBalance: await ctx.services.lowBalance.setThreshold(ctx, threshold) };
    },
  }),
);

const BalanceFall = builder.objectRef<LowBalanceNotice>("BalanceFall").implement({
  description: "A fall of the balance below the threshold.",
  fields: (t) => ({
    balance: t.field({ type: "Credits", description: "The sum of the buckets.", resolve: ({ balance }) => formatNanocredits(balance) }),
    threshold: t.field({
      type: "Credits",
      description: "The threshold.",
      resolve: ({ threshold }) => formatNanocredits(threshold),
    }),
    since: t.expose("since", { type: "DateTime", description: "When the balance fell." }),
  }),
});

builder.subscriptionField("balanceLow", (t) =>
  t.field({
    type: BalanceFall,
    description: "Each fall of the account's balance below the threshold, sent once. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.balanceLow(live)),
    resolve: (notice) => notice,
  }),
);
