/** What an app has its users spend, by day and model, for the app's owner. */
import { formatNanocredits } from "../../lib/money.js";
import { USAGE_DAYS_MAX } from "../../limits.js";
import type { AppUsageDay as AppUsageDayRow, AppUsage as AppUsageRows } from "../../services/usage/usage.js";
import { builder } from "../builder.js";
import { toDays, usageDailyDaysArg } from "./usage.js";

const AppUsageDay = builder.objectRef<AppUsageDayRow>("AppUsageDay").implement({
  description: "One day's use of one model by all the users of an app. Days are UTC.",
  fields: (t) => ({
    date: t.exposeString("date", { description: "`YYYY-MM-DD`." }),
    model: t.exposeString("model"),
    requests: t.exposeInt("requests"),
    cost: t.field({ type: "Credits", resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits) }),
  }),
});

const AppUsage = builder.objectRef<AppUsageRows>("AppUsage").implement({
  description: "What the users of an app have used and paid for with the keys that they granted to it. Nothing of it says who they are.",
  fields: (t) => ({
    days: t.field({ type: [AppUsageDay], complexity: { field: 1, multiplier: USAGE_DAYS_MAX }, resolve: ({ days }) => [...days] }),
    totalRequests: t.exposeInt("totalRequests"),
    totalCost: t.field({ type: "Credits", resolve: ({ totalCostNanocredits }) => formatNanocredits(totalCostNanocredits) }),
    asOf: t.expose("asOf", { type: "DateTime" }),
  }),
});

builder.queryField("appUsage", (t) =>
  t.field({
    type: AppUsage,
    nullable: true,
    description: "The traffic of one of the account's apps. Permission USAGE.",
    args: { appKeyId: t.arg.id({ required: true, description: "The id of the app's publishable key." }), ...usageDailyDaysArg },
    resolve: (_root, args, ctx) => ctx.services.appUsage.daily(ctx, args.appKeyId, { days: toDays(args) }),
  }),
);
