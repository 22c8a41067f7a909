/** Live account data: each usage row and each new balance as it happens. */
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { UsageRecord } from "./usage.js";

builder.subscriptionField("usageRecorded", (t) =>
  t.field({
    type: UsageRecord,
    description: "Each generation of the account when it has been charged. Permission USAGE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.usageRecorded(live), ctx.closing),
    resolve: (row, _args, ctx, info) => {
      selectionOf(ctx, info);
      return row;
    },
  }),
);

const BalanceChange = builder.objectRef<{ readonly accountId: string }>("BalanceChange").implement({
  description: "The balance, or what is held of it, has changed.",
  fields: (t) => ({
    account: t.field({
      type: Account,
      description: "The account, with its balance as it now is.",
      resolve: ({ accountId }, _args, ctx, info) => ctx.services.accounts.get(ctx, accountId, selectionOf(ctx, info)),
    }),
  }),
});

builder.subscriptionField("balanceChanged", (t) =>
  t.field({
    type: BalanceChange,
    description: "Each change of the balance, or of what is held of it. A burst of changes is one. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.balanceChanged(live), ctx.closing),
    resolve: (change) => change,
  }),
);
