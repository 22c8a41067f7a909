/** Sales of credits, for operators, as JSON and as CSV (docs/spec/top-ups.md#sales). */
import * as z from "zod";
import { formatNanocredits } from "../../lib/money.js";
import { requireOperator } from "../../services/access/permissions.js";
import { formatCents } from "../../services/payments/money.js";
import { SALES_DAYS_DEFAULT, SALES_DAYS_MAX, type SalesRow } from "../../services/payments/sales.js";
import { queryTime } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import { type Columns, toJsonRow } from "../../services/usage/usage.js";
import { CSV, formatQuery, sendCsv, toCsvHeader, toCsvRows } from "../csv.js";
import type { Endpoint } from "../endpoint.js";
import { json, jsonOr } from "../openapi/answer.js";
import { amount } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const salesQuery = z.object({
  format: formatQuery,
  from: queryTime()
    .optional()
    .describe(`Sales at or after this ISO 8601 time. Defaults to ${SALES_DAYS_DEFAULT} days before the end; at most ${SALES_DAYS_MAX}.`),
  to: queryTime().optional().describe("Sales before this ISO 8601 time. Defaults to now."),
});

const money = z.string().describe("A decimal number with two decimals.");
const salesReport = json(
  "Sales",
  z.looseObject({
    sales: z.array(
      z.looseObject({
        day: z.string().describe("UTC."),
        processor: z.string(),
        currency: z.string(),
        purchases: amount,
        automatic: amount.describe("Of the purchases."),
        credits: z.string().describe("Credits sold."),
        sold: money,
        refunds: amount,
        refunded: money,
        disputes: amount,
        disputed: money,
        disputes_won: amount,
        won: money,
        written_off: z.string().describe("Credits of refunds and disputes that were spent before."),
        refunds_failed: amount.describe("Refunds that the payers' banks did not take."),
        returned: money,
        write_offs_reversed: z.string().describe("Credits that were written off, and are paid after all."),
      }),
    ),
  }),
);

export function addSalesRoutes(route: Route, endpoint: Endpoint, { sales }: Pick<Services, "sales">): void {
  route("/operator/sales", {
    GET: endpoint({
      id: "listSales",
      tag: "Operators",
      summary: "Returns sales of credits by day, with refunds and disputes (operators).",
      answer: jsonOr(salesReport, CSV),
      requires: requireOperator,
      query: salesQuery,
      handler: async (ctx, { query: { format, from, to }, exchange }) => {
        const rows = await sales.read(ctx, { from, to });
        if (format === "csv") return sendCsv(exchange, "sales.csv", [toCsvHeader(SALES_COLUMNS) + toCsvRows(SALES_COLUMNS, rows)]);
        return { sales: rows.map((row) => toJsonRow(SALES_COLUMNS, row)) };
      },
    }),
  });
}

const SALES_COLUMNS = {
  day: (row: SalesRow) => row.day,
  processor: (row: SalesRow) => row.processor,
  currency: (row: SalesRow) => row.currency,
  purchases: (row: SalesRow) => row.purchases,
  automatic: (row: SalesRow) => row.automatic,
  credits: (row: SalesRow) => formatNanocredits(row.soldNanocredits),
  sold: (row: SalesRow) => formatCents(row.soldCents),
  refunds: (row: SalesRow) => row.refunds,
  refunded: (row: SalesRow) => formatCents(row.refundedCents),
  disputes: (row: SalesRow) => row.disputes,
  disputed: (row: SalesRow) => formatCents(row.disputedCents),
  disputes_won: (row: SalesRow) => row.disputesWon,
  won: (row: SalesRow) => formatCents(row.wonCents),
  written_off: (row: SalesRow) => formatNanocredits(row.writtenOffNanocredits),
  refunds_failed: (row: SalesRow) => row.refundsFailed,
  returned: (row: SalesRow) => formatCents(row.failedCents),
  write_offs_reversed: (row: SalesRow) => formatNanocredits(row.reversedNanocredits),
} satisfies Columns<SalesRow>;
