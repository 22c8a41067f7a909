/** Earnings of owners of community models and apps (docs/spec/earnings.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { permissionOf, requireAccount, requireKeyManager, requireOperator } from "../../services/access/permissions.js";
import { convertEarningsInput, type EarningDayRow, type EarningRow, earningDays, maturesAt } from "../../services/earnings/earnings.js";
import type { OwedEarnings } from "../../services/earnings/earnings-administration.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import { type Columns, toJsonRow } from "../../services/usage/usage.js";
import { CSV, formatQuery, sendCsv, toCsvHeader, toCsvRows } from "../csv.js";
import type { Endpoint } from "../endpoint.js";
import { json, jsonOr } from "../openapi/answer.js";
import { amount, credits, cursorText, nullableText, time, timeText } from "../openapi/schemas.js";
import { nextCursorOf, queryCursor } from "../query.js";
import type { Route } from "../route.js";

/** Unspecified: the most accounts of one list. */
const OWED_MAX = 10_000;
const OWED_DEFAULT = 100;

const kind = z.enum(["model", "app"]).describe("Whose share it is: of the owner of the model that served, or of the app.");
const source = z.string().describe("The canonical ID of the model, or the ID of the app key.");

const day = z.object({
  date: z.string().describe("The day (UTC)."),
  kind,
  source,
  requests: amount,
  credits: credits.describe("The credits that were earned and not taken back."),
  reversed: credits.describe("The credits that were taken back."),
  matured_at: timeText.nullable().describe("When they became usable. Null: not yet."),
});

const summary = z.object({
  pending: credits.describe("Credits that cannot be used yet."),
  available: credits.describe("Credits that can be converted, or that the operator pays out."),
  converted: credits,
  paid_out: credits,
  reversed: credits.describe("Credits that were taken back before they could be used."),
  days: z.array(day),
});

const share = z.object({
  id: z.string(),
  kind,
  source,
  credits: credits.describe("The credits that were earned."),
  reversed: credits.describe("The credits that were taken back of it."),
  created_at: time,
  matures_at: time.describe("From when it can be used."),
});

const summaryQuery = z.object({
  format: formatQuery,
  days: queryInteger(earningDays.unwrap()).default(earningDays.parse(undefined)).describe("The number of days (UTC), today included."),
});

const listQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of shares."),
  cursor: queryCursor("earnings").optional().describe(cursorText),
});

const owedQuery = z.object({
  format: formatQuery,
  limit: queryInteger(z.int().min(1).max(OWED_MAX)).default(OWED_DEFAULT).describe("The maximum number of accounts."),
});

const DAY_COLUMNS = {
  date: (row: EarningDayRow) => row.day.toISOString().slice(0, 10),
  kind: (row: EarningDayRow) => row.kind,
  source: (row: EarningDayRow) => row.source,
  requests: (row: EarningDayRow) => row.requests,
  credits: (row: EarningDayRow) => toCreditsNumber(row.nanocredits),
  reversed: (row: EarningDayRow) => toCreditsNumber(row.reversedNanocredits),
  matured_at: (row: EarningDayRow) => row.maturedAt?.toISOString() ?? null,
} as const satisfies Columns<EarningDayRow>;

const OWED_COLUMNS = {
  account_id: (row: OwedEarnings) => row.accountId,
  handle: (row: OwedEarnings) => row.handle,
  available: (row: OwedEarnings) => toCreditsNumber(row.available),
  pending: (row: OwedEarnings) => toCreditsNumber(row.pending),
} as const satisfies Columns<OwedEarnings>;

type EarningServices = Pick<Services, "earnings" | "earningsAdministration">;

export function addEarningRoutes(route: Route, endpoint: Endpoint, { earnings, earningsAdministration }: EarningServices): void {
  route("/earnings", {
    GET: endpoint({
      id: "getEarnings",
      tag: "Account",
      summary: "Returns what the account has earned with its community models and apps.",
      description: "CSV has the days alone.",
      answer: jsonOr(json("Earnings", summary), CSV),
      requires: permissionOf("balance"),
      query: summaryQuery,
      handler: async (ctx, { query: { days, format }, exchange }) => {
        const { accountId } = requireAccount(ctx);
        const rows = await earnings.daily(ctx, accountId, days);
        if (format === "csv") return sendCsv(exchange, "earnings.csv", [toCsvHeader(DAY_COLUMNS) + toCsvRows(DAY_COLUMNS, rows)]);
        const { pending, available, converted, paidOut, reversed } = await earnings.summary(ctx, accountId);
        return {
          pending: toCreditsNumber(pending),
          available: toCreditsNumber(available),
          converted: toCreditsNumber(converted),
          paid_out: toCreditsNumber(paidOut),
          reversed: toCreditsNumber(reversed),
          days: rows.map((row) => toJsonRow(DAY_COLUMNS, row)),
        };
      },
    }),
  });
  route("/earnings/shares", {
    GET: endpoint({
      id: "listEarnings",
      tag: "Account",
      summary: "Lists the shares of single charges, newest first.",
      answer: json("EarningList", z.object({ data: z.array(share), next_cursor: nullableText })),
      requires: permissionOf("balance"),
      query: listQuery,
      handler: async (ctx, { query }) => {
        const page = await earnings.list(ctx, requireAccount(ctx).accountId, { first: query.limit, after: query.cursor });
        return {
          data: page.items.map(toShare),
          next_cursor: nextCursorOf(page, "earnings"),
        };
      },
    }),
  });
  route("/earnings/convert", {
    POST: endpoint({
      id: "convertEarnings",
      tag: "Account",
      summary: "Turns earnings into credits to spend.",
      answer: json("ConvertedEarnings", z.object({ converted: credits.describe("The credits that were added to the bucket `pack`.") })),
      errors: ["409"],
      example: { body: { credits: 2.5 } },
      requires: requireKeyManager,
      body: convertEarningsInput,
      handler: async (ctx, { body }) => ({ converted: toCreditsNumber(await earnings.convert(ctx, body)) }),
    }),
  });
  route("/operator/earnings", {
    GET: endpoint({
      id: "listOwedEarnings",
      tag: "Operators",
      summary: "Lists accounts that are owed earnings, the largest sums first, for payouts.",
      answer: jsonOr(
        json(
          "OwedEarningsList",
          z.object({ data: z.array(z.object({ account_id: z.string(), handle: z.string(), available: credits, pending: credits })) }),
        ),
        CSV,
      ),
      requires: requireOperator,
      query: owedQuery,
      handler: async (ctx, { query: { format, limit }, exchange }) => {
        const rows = await earningsAdministration.owed(ctx, limit);
        if (format === "csv") return sendCsv(exchange, "owed-earnings.csv", [toCsvHeader(OWED_COLUMNS) + toCsvRows(OWED_COLUMNS, rows)]);
        return { data: rows.map((row) => toJsonRow(OWED_COLUMNS, row)) };
      },
    }),
  });
}

function toShare(row: EarningRow) {
  return {
    id: row.id,
    kind: row.kind,
    source: row.source,
    credits: toCreditsNumber(row.nanocredits),
    reversed: toCreditsNumber(row.reversedNanocredits),
    created_at: row.createdAt,
    matures_at: maturesAt(row),
  };
}
