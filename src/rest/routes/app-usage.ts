/** What an app has its users spend, as JSON and as CSV, for the app's owner (docs/spec/usage.md#app-usage). */
import * as z from "zod";
import { USAGE_DAILY_DAYS_DEFAULT } from "../../limits.js";
import { permissionOf } from "../../services/access/permissions.js";
import { queryUsageDays } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import { sendCsv } from "../csv.js";
import type { Endpoint } from "../endpoint.js";
import { APP_USAGE_DAILY_COLUMNS, toAppUsage } from "../presenters/app-usage.js";
import { toCsvHeader, toCsvRows } from "../presenters/usage.js";
import type { Route } from "../route.js";

const appUsageQuery = z.object({
  format: z.enum(["json", "csv"]).default("json"),
  days: queryUsageDays().default(USAGE_DAILY_DAYS_DEFAULT),
});

export function addAppUsageRoutes(route: Route, endpoint: Endpoint, { appUsage }: Pick<Services, "appUsage">): void {
  route("/apps/:id/usage/daily", {
    GET: endpoint({
      requires: permissionOf("usage"),
      query: appUsageQuery,
      handler: async (ctx, { query, exchange }) => {
        const usage = await appUsage.daily(ctx, exchange.parameter("id"), { days: query.days });
        if (query.format === "json") return toAppUsage(usage);
        const table = toCsvHeader(APP_USAGE_DAILY_COLUMNS) + toCsvRows(APP_USAGE_DAILY_COLUMNS, usage.days);
        return sendCsv(exchange, "app-usage-daily.csv", [table]);
      },
    }),
  });
}
