/** Usage of the account and of the calling key, as JSON and as CSV (docs/spec/usage.md). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { toCreditsNumber } from "../../lib/money.js";
import type { Page } from "../../lib/pagination.js";
import { USAGE_DAILY_DAYS_DEFAULT, USAGE_LIMIT_DEFAULT, USAGE_LIMIT_MAX } from "../../limits.js";
import { isOperatorReading, permissionOf, requireAccount, requireKeyManager } from "../../services/access/permissions.js";
import { setAppMarginInput } from "../../services/authorizations/app-margins.js";
import { queryCredits, queryInteger, queryList, queryTime, queryUsageDays } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import {
  type AppUsage,
  type AppUsageDay,
  type Columns,
  OPERATOR_USAGE_COLUMNS,
  OPERATOR_USAGE_ROW,
  toJsonRow,
  USAGE_COLUMNS,
  USAGE_ROW,
  type UsageDailyRow,
  type UsageQuery as UsageListQuery,
  type UsageRow,
} from "../../services/usage/usage.js";
import { type UsageFilter, usageFilterInput } from "../../services/usage/usage-filter.js";
import { CSV, csvPages, formatQuery, sendCsv, toCsvHeader, toCsvRows } from "../csv.js";
import type { Endpoint } from "../endpoint.js";
import { json, jsonOr } from "../openapi/answer.js";
import type { Operation } from "../openapi/contract.js";
import { amount, credits, nullableText, pathId, time, timeText } from "../openapi/schemas.js";
import { hasBefore, NEEDS_BEFORE, positionBefore, queryBefore } from "../query.js";
import type { Route } from "../route.js";

/** "cached 1 hour", read as the greatest age that a client may assume (docs/spec/usage.md#daily). */
const DAILY_MAX_AGE_SECONDS = 3_600;

const { shape } = usageFilterInput;

const filterQuery = {
  api_key_ids: queryList(shape.apiKeyIds.unwrap().unwrap()).optional().describe("A comma-separated list of key IDs."),
  model_ids: queryList(shape.modelIds.unwrap().unwrap())
    .optional()
    .describe("A comma-separated list of canonical IDs of requested models."),
  modalities: queryList(shape.modalities.unwrap().unwrap())
    .optional()
    .describe("A comma-separated list of text, image, video, speech, music, transcription, embedding and realtime."),
  statuses: queryList(shape.statuses.unwrap().unwrap()).optional().describe("A comma-separated list of ok and cancelled."),
  run: shape.runId.unwrap().unwrap().optional().describe("The ID of a run: rows of its calls and of the runs below it."),
  from: queryTime().optional().describe("Rows at or after this ISO 8601 time."),
  to: queryTime().optional().describe("Rows before this ISO 8601 time."),
  min_cost_usd: queryCredits().optional().describe("Rows that cost at least this many credits."),
  search: shape.search.unwrap().unwrap().optional().describe("A part of a model ID or key name, or the ID of a generation."),
};

const usageQuery = z
  .object({
    format: formatQuery,
    ...filterQuery,
    days: queryUsageDays().optional().describe("The number of days to go back from `to`, 30 by default. Cannot be combined with `from`."),
    limit: queryInteger(z.int().min(1).max(USAGE_LIMIT_MAX)).default(USAGE_LIMIT_DEFAULT).describe("The maximum number of rows."),
    ...queryBefore("Rows", "row", "usage record"),
  })
  .refine(hasBefore, NEEDS_BEFORE)
  .refine((query) => query.from === undefined || query.days === undefined, {
    path: ["days"],
    error: "cannot be given together with `from`",
  });

const usageDailyQuery = z.object({
  format: formatQuery,
  days: queryUsageDays().default(USAGE_DAILY_DAYS_DEFAULT).describe("The number of days to go back."),
});

const usageRow = z.looseObject({
  id: z.string(),
  timestamp: timeText,
  type: z.string(),
  model: z.string(),
  api_key_id: nullableText,
  api_key: nullableText,
  api_key_type: nullableText,
  meter_source: z.enum(["tier", "crypto", "pack"]),
  input_text_tokens: amount,
  input_cached_tokens: amount,
  input_cache_write_tokens: amount,
  input_audio_tokens: amount,
  input_image_tokens: amount,
  output_text_tokens: amount,
  output_reasoning_tokens: amount,
  output_audio_tokens: amount,
  output_image_tokens: amount,
  output_video_seconds: z.number(),
  output_audio_seconds: z.number(),
  cost_usd: credits,
  response_time_ms: amount,
  time_to_first_token_ms: amount.nullable(),
  status: z.enum(["ok", "cancelled"]),
  usage_source: z.enum(["provider", "estimated", "partial", "bounded"]),
  request_id: z.string(),
  parent_request_id: nullableText,
  upstream: nullableText.describe("The upstream that served. Null when unknown."),
  vendor_key_id: nullableText.describe("The vendor key of the account that served. Null: a key of the operator."),
  app_margin_usd: credits.nullable().describe("The part of the cost that is the margin of the key's app. Null: none, or not recorded."),
  upstream_cost_usd: credits.nullable().optional().describe("What the operator pays. For operators alone. Null when unknown."),
});

const usageList = json(
  "Usage",
  z.looseObject({ usage: z.array(usageRow), count: amount, next_before: time.nullable(), next_before_id: nullableText }),
);

const usageByDay = json(
  "UsageDaily",
  z.looseObject({
    usage: z.array(z.looseObject({ date: z.string(), model: z.string(), meter_source: z.string(), requests: amount, cost_usd: credits })),
    count: amount,
    as_of: time,
  }),
);

export function addUsageRoutes(route: Route, endpoint: Endpoint, { usage }: Pick<Services, "usage">): void {
  const usageOf = (words: Pick<Operation, "id" | "tag" | "summary">, ownKeyOnly: boolean) =>
    endpoint({
      ...words,
      answer: jsonOr(usageList, CSV),
      requires: ownKeyOnly ? requireAccount : permissionOf("usage"),
      query: usageQuery,
      handler: async (ctx, { query, exchange }) => {
        const scope = { days: query.days, filter: filterOf(query), ownKeyOnly };
        if (query.format === "csv") return sendCsv(exchange, "usage.csv", usagePages(usage, ctx, query, scope));
        const list = { ...scope, page: { first: query.limit, after: positionBefore(query) } };
        return isOperatorReading(ctx)
          ? toUsageList(await usage.list(ctx, list, OPERATOR_USAGE_ROW), (row) => toJsonRow(OPERATOR_USAGE_COLUMNS, row))
          : toUsageList(await usage.list(ctx, list, USAGE_ROW), (row) => toJsonRow(USAGE_COLUMNS, row));
      },
    });
  route("/usage", {
    GET: usageOf(
      { id: "listUsage", tag: "Account", summary: "Lists usage records with their costs, newest first (permission `usage`)." },
      false,
    ),
  });
  route("/key/usage", {
    GET: usageOf({ id: "listKeyUsage", tag: "Keys", summary: "Lists usage records of the calling key. Works with any key." }, true),
  });
  route("/usage/daily", {
    GET: endpoint({
      id: "listDailyUsage",
      tag: "Account",
      summary: "Returns requests and costs by day and model (permission `usage`).",
      answer: jsonOr(usageByDay, CSV),
      requires: permissionOf("usage"),
      query: usageDailyQuery,
      handler: async (ctx, { query, exchange }) => {
        const { rows, asOf } = await usage.daily(ctx, { days: query.days });
        exchange.setHeaders({ "Cache-Control": `private, max-age=${DAILY_MAX_AGE_SECONDS}` });
        if (query.format === "csv")
          return sendCsv(exchange, "usage-daily.csv", [toCsvHeader(USAGE_DAILY_COLUMNS) + toCsvRows(USAGE_DAILY_COLUMNS, rows)]);
        return { usage: rows.map((row) => toJsonRow(USAGE_DAILY_COLUMNS, row)), count: rows.length, as_of: asOf };
      },
    }),
  });
}

type UsageQuery = z.infer<typeof usageQuery>;

function filterOf(query: UsageQuery): UsageFilter {
  const { api_key_ids: apiKeyIds, model_ids: modelIds, min_cost_usd: minCost, run: runId, modalities, statuses, from, to, search } = query;
  return { apiKeyIds, modelIds, runId, modalities, statuses, from, to, minCost, search };
}

function toUsageList<Row extends UsageRow, Json>({ items, hasNextPage }: Page<Row>, toJson: (row: Row) => Json) {
  const last = hasNextPage ? items.at(-1) : undefined;
  const rows = items.map(toJson);
  return { usage: rows, count: rows.length, next_before: last?.timestamp ?? null, next_before_id: last?.id ?? null };
}

function usagePages(usage: Services["usage"], ctx: RequestContext, query: UsageQuery, scope: Omit<UsageListQuery, "page">) {
  const first = { limit: query.limit, after: positionBefore(query) };
  if (!isOperatorReading(ctx))
    return csvPages(
      USAGE_COLUMNS,
      first,
      (page) => usage.list(ctx, { ...scope, page }, USAGE_ROW),
      (row) => row,
    );
  return csvPages(
    OPERATOR_USAGE_COLUMNS,
    first,
    (page) => usage.list(ctx, { ...scope, page }, OPERATOR_USAGE_ROW),
    (row) => row,
  );
}

// Usage of an app's users, for the app's owner (docs/spec/usage.md#app-usage).

const byApp = z.object({ id: pathId("The ID of the app's publishable key.") });

const appUsageByDay = json(
  "AppUsageDaily",
  z.looseObject({
    usage: z.array(z.looseObject({ date: z.string(), model: z.string(), requests: amount, cost_usd: credits })),
    count: amount,
    total: z.looseObject({ requests: amount, cost_usd: credits }),
    as_of: time,
  }),
);

export function addAppUsageRoutes(
  route: Route,
  endpoint: Endpoint,
  { appUsage, appMargins }: Pick<Services, "appUsage" | "appMargins">,
): void {
  route("/apps/:id/margin", {
    PATCH: endpoint({
      id: "setAppMargin",
      tag: "Account",
      summary: "Sets the percentage that an app earns on top of prices.",
      description: "The ID is that of the app's publishable key. It counts for keys that are granted from then on.",
      answer: json("AppMargin", z.object({ app_id: z.string(), margin_percent: z.int() })),
      errors: ["404"],
      example: { body: { marginPercent: 0 } },
      requires: requireKeyManager,
      params: byApp,
      body: setAppMarginInput,
      handler: async (ctx, { params, body }) => {
        const { appId, marginPercent } = await appMargins.set(ctx, params.id, body);
        return { app_id: appId, margin_percent: marginPercent };
      },
    }),
  });
  route("/apps/:id/usage/daily", {
    GET: endpoint({
      id: "listAppDailyUsage",
      tag: "Account",
      summary: "Returns usage by all users of an app, by day and model (permission `usage`).",
      description: "The ID is that of the app's publishable key. The answer does not identify the users.",
      answer: jsonOr(appUsageByDay, CSV),
      requires: permissionOf("usage"),
      params: byApp,
      query: usageDailyQuery,
      handler: async (ctx, { params, query, exchange }) => {
        const usage = await appUsage.daily(ctx, params.id, { days: query.days });
        if (query.format === "json") return toAppUsage(usage);
        const table = toCsvHeader(APP_USAGE_DAILY_COLUMNS) + toCsvRows(APP_USAGE_DAILY_COLUMNS, usage.days);
        return sendCsv(exchange, "app-usage-daily.csv", [table]);
      },
    }),
  });
}

const USAGE_DAILY_COLUMNS = {
  date: (row: UsageDailyRow) => row.date,
  model: (row: UsageDailyRow) => row.model,
  meter_source: (row: UsageDailyRow) => row.meterSource,
  requests: (row: UsageDailyRow) => row.requests,
  cost_usd: (row: UsageDailyRow) => row.costNanocredits,
} as const satisfies Columns<UsageDailyRow>;

const APP_USAGE_DAILY_COLUMNS = {
  date: (row: AppUsageDay) => row.date,
  model: (row: AppUsageDay) => row.model,
  requests: (row: AppUsageDay) => row.requests,
  cost_usd: (row: AppUsageDay) => row.costNanocredits,
} as const satisfies Columns<AppUsageDay>;

function toAppUsage({ days, totalRequests, totalCostNanocredits, asOf }: AppUsage) {
  return {
    usage: days.map((day) => toJsonRow(APP_USAGE_DAILY_COLUMNS, day)),
    count: days.length,
    total: { requests: totalRequests, cost_usd: toCreditsNumber(totalCostNanocredits) },
    as_of: asOf,
  };
}
