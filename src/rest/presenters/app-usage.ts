/** An app's traffic as REST shows it. */
import { toCreditsNumber } from "../../lib/money.js";
import { type AppUsage, type AppUsageDay, type Columns, toJsonRow } from "../../services/usage/usage.js";

export const APP_USAGE_DAILY_COLUMNS: Columns<AppUsageDay> = {
  date: (row) => row.date,
  model: (row) => row.model,
  requests: (row) => row.requests,
  cost_usd: (row) => row.costNanocredits,
};

export function toAppUsage({ days, totalRequests, totalCostNanocredits, asOf }: AppUsage) {
  return {
    usage: days.map((day) => toJsonRow(APP_USAGE_DAILY_COLUMNS, day)),
    count: days.length,
    total: { requests: totalRequests, cost_usd: toCreditsNumber(totalCostNanocredits) },
    as_of: asOf,
  };
}
