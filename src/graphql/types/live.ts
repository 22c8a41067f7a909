/** Live account data: each usage row and each new balance as it happens. */
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { Balance } from "./accounts.js";
import { UsageRecord } from "./usage.js";

builder.subscriptionField("usageRecorded", (t) =>
  t.field({
    type: UsageRecord,
    description: "Each generation of the account when it has been charged. Permission USAGE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.usageRecorded(live), ctx.closing),
    resolve: (row) => row,
  }),
);

builder.subscriptionField("balanceChanged", (t) =>
  t.field({
    type: Balance,
    description: "The balance, each time that it or what is held of it changes. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.live.balanceChanged(live), ctx.closing),
    resolve: (balance) => balance,
  }),
);
