/** What an app has its users spend, by day and model, for the app's owner. */
import { formatNanocredits } from "../../lib/money.js";
import { USAGE_DAYS_MAX } from "../../limits.js";
import type { AppUsageDay as AppUsageDayRow, AppUsage as AppUsageRows } from "../../services/usage/usage.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { edgesBatchedBy } from "../loaders.js";
import { Account } from "./accounts.js";
import { ApiKey } from "./api-keys.js";
import { Model } from "./models.js";
import { toDays, usageDailyDaysArg } from "./usage.js";

const AppUsageDay = builder.objectRef<AppUsageDayRow>("AppUsageDay").implement({
  description: "One day's use of one model by all the users of an app. Days are UTC.",
  fields: (t) => ({
    date: t.exposeString("date", { description: "`YYYY-MM-DD`." }),
    modelId: t.exposeID("model", { description: "The canonical id of the model that was asked for." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model that was asked for. Null: it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    requests: t.exposeInt("requests", { description: "How many there were." }),
    cost: t.field({
      type: "Credits",
      description: "What was charged.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
  }),
});

const AppUsage = builder.objectRef<AppUsageRows>("AppUsage").implement({
  description: "What the users of an app have used and paid for with the keys that they granted to it. Nothing of it says who they are.",
  fields: (t) => ({
    days: t.field({
      type: [AppUsageDay],
      description: "The newest first.",
      complexity: { field: 1, multiplier: USAGE_DAYS_MAX },
      resolve: ({ days }) => [...days],
    }),
    totalRequests: t.exposeInt("totalRequests", { description: "Of all the days." }),
    totalCost: t.field({
      type: "Credits",
      description: "Of all the days.",
      resolve: ({ totalCostNanocredits }) => formatNanocredits(totalCostNanocredits),
    }),
    asOf: t.expose("asOf", { type: "DateTime", description: "When it was read." }),
  }),
});

const APP_KEY = "The id of the app's publishable key.";

builder.prismaObjectField(Account, "appUsage", (t) =>
  t.field({
    type: AppUsage,
    nullable: true,
    description: "The traffic of one of the account's apps. Permission USAGE.",
    args: { appKeyId: t.arg.id({ required: true, description: APP_KEY }), ...usageDailyDaysArg },
    resolve: ({ id }, args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.appUsage.daily(ctx, readId(args.appKeyId, "ApiKey", "appKeyId"), { days: toDays(args) });
    },
  }),
);

const usageOfApp = edgesBatchedBy<number | undefined, AppUsageRows>((ctx, ids, days) => ctx.services.appUsage.dailyOf(ctx, ids, { days }));

builder.prismaObjectField(ApiKey, "appUsage", (t) =>
  t.field({
    type: AppUsage,
    nullable: true,
    description: "Of an app's key: the traffic that the app has brought. Null: the key is secret. Permission USAGE.",
    args: usageDailyDaysArg,
    select: { type: true },
    resolve: ({ id, type }, args, ctx) => (type === "publishable" ? usageOfApp(ctx, id, toDays(args), {}) : null),
  }),
);

builder.queryField("appUsage", (t) =>
  t.field({
    type: AppUsage,
    nullable: true,
    description: "The traffic of one of the account's apps. Permission USAGE.",
    deprecationReason: "Use `me { appUsage }`.",
    args: { appKeyId: t.arg.id({ required: true, description: APP_KEY }), ...usageDailyDaysArg },
    resolve: (_root, args, ctx) => ctx.services.appUsage.daily(ctx, readId(args.appKeyId, "ApiKey", "appKeyId"), { days: toDays(args) }),
  }),
);
