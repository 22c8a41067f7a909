/** Usage and cost of an app's users, by day and model, for the owner of the app. */
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
  description: "One day's usage of one model by all users of an app. Days are UTC.",
  fields: (t) => ({
    date: t.exposeString("date", { description: "`YYYY-MM-DD`." }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    requests: t.exposeInt("requests", { description: "The number of requests." }),
    cost: t.field({
      type: "Credits",
      description: "The total charge.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
  }),
});

const AppUsage = builder.objectRef<AppUsageRows>("AppUsage").implement({
  description: "Usage and cost of an app's users, through the keys that they granted to it. It does not identify the users.",
  fields: (t) => ({
    days: t.field({
      type: [AppUsageDay],
      description: "Usage by day and model, newest first.",
      complexity: { field: 1, multiplier: USAGE_DAYS_MAX },
      resolve: ({ days }) => [...days],
    }),
    totalRequests: t.exposeInt("totalRequests", { description: "The number of requests on all days." }),
    totalCost: t.field({
      type: "Credits",
      description: "The total charge of all days.",
      resolve: ({ totalCostNanocredits }) => formatNanocredits(totalCostNanocredits),
    }),
    asOf: t.expose("asOf", { type: "DateTime", description: "When the figures were read." }),
  }),
});

const APP_KEY = "The ID of the app's publishable key.";

builder.prismaObjectField(Account, "appUsage", (t) =>
  t.field({
    type: AppUsage,
    nullable: true,
    description: "Usage of one of the account's apps. Permission USAGE.",
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
    description: "For an app key: usage of the app. Null for secret keys. Permission USAGE.",
    args: usageDailyDaysArg,
    select: { type: true },
    resolve: ({ id, type }, args, ctx) => (type === "publishable" ? usageOfApp(ctx, id, toDays(args), {}) : null),
  }),
);
