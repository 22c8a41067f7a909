/** Reports for operators, as JSON and as CSV: spend of all accounts (docs/spec/usage.md#spend), margins, and the audit log. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { toCreditsNumber } from "../../lib/money.js";
import type { Page, PageRequest } from "../../lib/pagination.js";
import { USAGE_LIMIT_DEFAULT, USAGE_LIMIT_MAX } from "../../limits.js";
import { requireOperator } from "../../services/access/permissions.js";
import { BOOKS, type BookMovement, type BookRow } from "../../services/accounts/books.js";
import { AUDIT_ACTS, type AuditEntryRow, type AuditFilter, auditFilter } from "../../services/audit/audit-log.js";
import { queryInteger, queryList, queryTime } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import { MARGIN_GROUPINGS, MARGIN_GROUPS_DEFAULT, MARGIN_GROUPS_MAX, type MarginRow, marginInput } from "../../services/usage/margins.js";
import {
  SPEND_GROUPINGS,
  SPEND_GROUPS_DEFAULT,
  SPEND_GROUPS_MAX,
  type Spend,
  type SpendGrouping,
  type SpendRow,
  type SpendSums,
  spendInput,
} from "../../services/usage/spend.js";
import { type Columns, toJsonRow } from "../../services/usage/usage.js";
import { CSV, CSV_PAGE_ROWS, csvPages, formatQuery, sendCsv, toCsvHeader, toCsvRows } from "../csv.js";
import type { Endpoint } from "../endpoint.js";
import { json, jsonOr } from "../openapi/answer.js";
import { amount, credits, nullableText, time, timeText } from "../openapi/schemas.js";
import { hasBefore, NEEDS_BEFORE, positionBefore, queryBefore } from "../query.js";
import type { Route } from "../route.js";

const spendQuery = z.object({
  format: formatQuery,
  by: spendInput.shape.by.describe(`The dimension to group by: ${SPEND_GROUPINGS.join(", ")}.`),
  month: spendInput.shape.month.unwrap().unwrap().optional().describe("The month (UTC), such as 2026-11. Defaults to the current month."),
  account_id: z.uuid().optional().describe("Only the spend of this account."),
  limit: queryInteger(z.int().min(1).max(SPEND_GROUPS_MAX))
    .default(SPEND_GROUPS_DEFAULT)
    .describe("The maximum number of groups, the most expensive ones. CSV has all groups."),
});

const sums = {
  requests: amount,
  failed_requests: amount,
  input_tokens: amount,
  output_tokens: amount,
  cost_usd: credits,
};

const spendReport = json(
  "Spend",
  z.looseObject({
    month: z.string(),
    by: z.enum(SPEND_GROUPINGS),
    spend: z.array(
      z.looseObject({
        account_id: nullableText.optional().describe("By account and by key."),
        handle: nullableText.optional(),
        email: nullableText.optional(),
        api_key_id: nullableText.optional().describe("By key. Null for requests of sessions."),
        api_key: nullableText.optional(),
        model: nullableText.optional().describe("By model."),
        ...sums,
      }),
    ),
    count: amount,
    total_count: amount.describe("The number of all groups."),
    total: z.looseObject(sums).describe("Sums over all groups."),
  }),
);

const booksQuery = z.object({
  format: formatQuery,
  from: queryTime().optional().describe("Entries at or after this ISO 8601 time. Defaults to the beginning of the ledger."),
  to: queryTime().optional().describe("Entries before this ISO 8601 time. Defaults to now."),
});

const movement = z.object({ kind: z.string(), debit: credits, credit: credits });
const trialBalance = json(
  "TrialBalance",
  z.object({
    from: time.nullable(),
    to: time,
    books: z.array(
      z.object({
        book: z.enum(BOOKS),
        opening: z.number().describe("The balance before, in credits. Above 0: on the credit side."),
        debit: credits,
        credit: credits,
        closing: z.number().describe("The balance after, in credits."),
        movements: z.array(movement),
      }),
    ),
    debit: credits,
    credit: credits,
    sold: credits.describe("Bought credits that accounts have now."),
    granted: credits.describe("Granted credits that accounts have now, without those of tiers."),
  }),
);

interface BookLine {
  readonly book: BookRow;
  readonly movement: BookMovement;
}

const BOOK_COLUMNS = {
  book: ({ book }: BookLine) => book.book,
  opening: ({ book }: BookLine) => book.opening,
  kind: ({ movement: { kind } }: BookLine) => kind,
  debit: ({ movement: { debit } }: BookLine) => debit,
  credit: ({ movement: { credit } }: BookLine) => credit,
  closing: ({ book }: BookLine) => book.closing,
} as const satisfies Columns<BookLine>;

function toBook({ book, opening, debit, credit, closing, movements }: BookRow) {
  return {
    book,
    opening: toCreditsNumber(opening),
    debit: toCreditsNumber(debit),
    credit: toCreditsNumber(credit),
    closing: toCreditsNumber(closing),
    movements: movements.map((each) => ({ kind: each.kind, debit: toCreditsNumber(each.debit), credit: toCreditsNumber(each.credit) })),
  };
}

const marginQuery = z.object({
  format: formatQuery,
  by: queryList(marginInput.shape.by)
    .default([...MARGIN_GROUPINGS])
    .describe(`A comma-separated list of ${MARGIN_GROUPINGS.join(", ")}. All of them by default.`),
  from: queryTime().optional().describe("Generations at or after this ISO 8601 time. Defaults to 30 days before the end; at most 92."),
  to: queryTime().optional().describe("Generations before this ISO 8601 time. Defaults to now."),
  limit: queryInteger(z.int().min(1).max(MARGIN_GROUPS_MAX))
    .default(MARGIN_GROUPS_DEFAULT)
    .describe("The maximum number of groups, those of the largest charges."),
});

const marginReport = json(
  "Margins",
  z.looseObject({
    margins: z.array(
      z.looseObject({
        model: nullableText.describe("The model that served; null when not grouped by it."),
        upstream: nullableText.describe("The upstream that served; null when not grouped by it, or not recorded."),
        day: nullableText,
        requests: amount,
        unknown_requests: amount.describe("Requests of which the operator's cost is unknown."),
        cost_usd: credits.describe("Credits charged for all requests."),
        upstream_cost_usd: credits.describe("The operator's cost of the requests of which it is known."),
        margin_usd: z.number().describe("Charged for requests of known cost, less that cost."),
      }),
    ),
    count: amount,
  }),
);

const { shape } = auditFilter;

const auditQuery = z
  .object({
    format: formatQuery,
    acts: queryList(shape.acts.unwrap().unwrap()).optional().describe("A comma-separated list of acts."),
    account_ids: queryList(shape.accountIds.unwrap().unwrap()).optional().describe("A comma-separated list of changed accounts."),
    actor_account_ids: queryList(shape.actorAccountIds.unwrap().unwrap())
      .optional()
      .describe("A comma-separated list of the operators' accounts."),
    object_id: shape.objectId.unwrap().unwrap().optional().describe("The changed object, such as a key."),
    request_id: shape.requestId.unwrap().unwrap().optional().describe("The request ID."),
    from: queryTime().optional().describe("Entries at or after this ISO 8601 time."),
    to: queryTime().optional().describe("Entries before this ISO 8601 time."),
    limit: queryInteger(z.int().min(1).max(USAGE_LIMIT_MAX)).default(USAGE_LIMIT_DEFAULT).describe("The maximum number of entries."),
    ...queryBefore("Entries", "entry", "entry of the audit log"),
  })
  .refine(hasBefore, NEEDS_BEFORE);

const auditEntry = z.looseObject({
  id: z.string(),
  created_at: timeText,
  act: z.enum(AUDIT_ACTS),
  actor_account_id: nullableText.describe("The account of the operator. Null for the command line that works on the database itself."),
  actor_api_key_id: nullableText.describe("The operator's key. Null for a session."),
  account_id: nullableText.describe("The account that was changed."),
  object_id: nullableText.describe("The changed object, such as a key or a grant."),
  before: z.unknown().describe("The changed values before."),
  after: z.unknown().describe("The changed values after."),
  reason: nullableText,
  address: nullableText.describe("The client's address."),
  request_id: nullableText,
});

const auditList = json(
  "AuditLog",
  z.looseObject({ entries: z.array(auditEntry), count: amount, next_before: time.nullable(), next_before_id: nullableText }),
);

export function addOperatorRoutes(
  route: Route,
  endpoint: Endpoint,
  { spendReports, margins, auditLog, books }: Pick<Services, "spendReports" | "margins" | "auditLog" | "books">,
): void {
  route("/operator/spend", {
    GET: endpoint({
      id: "listSpend",
      tag: "Operators",
      summary: "Returns the spend of all accounts in a month, by account, key or model (operators).",
      answer: jsonOr(spendReport, CSV),
      example: { parameters: { by: "model" } },
      requires: requireOperator,
      query: spendQuery,
      handler: async (ctx, { query, exchange }) => {
        const { by, month, account_id: accountId, limit: first } = query;
        const wanted = { by, month, accountId, first, order: "cost", isAscending: false } as const;
        if (query.format === "json") return toSpend(await spendReports.read(ctx, wanted));
        const spend = await spendReports.readAll(ctx, wanted);
        return sendCsv(exchange, `spend-${spend.month}-by-${by}.csv`, spendPieces(spend));
      },
    }),
  });
  route("/operator/books", {
    GET: endpoint({
      id: "getTrialBalance",
      tag: "Operators",
      summary: "Returns the trial balance of the ledger in a period.",
      description: "CSV has a row for each book and kind of entry.",
      answer: jsonOr(trialBalance, CSV),
      requires: requireOperator,
      query: booksQuery,
      handler: async (ctx, { query: { format, ...period }, exchange }) => {
        const balance = await books.trialBalance(ctx, period);
        if (format === "csv") {
          const rows = balance.books.flatMap((book) => book.movements.map((movement) => ({ book, movement })));
          return sendCsv(exchange, "books.csv", [toCsvHeader(BOOK_COLUMNS) + toCsvRows(BOOK_COLUMNS, rows)]);
        }
        return {
          from: balance.from,
          to: balance.to,
          books: balance.books.map(toBook),
          debit: toCreditsNumber(balance.debit),
          credit: toCreditsNumber(balance.credit),
          sold: toCreditsNumber(balance.sold),
          granted: toCreditsNumber(balance.granted),
        };
      },
    }),
  });
  route("/operator/margins", {
    GET: endpoint({
      id: "listMargins",
      tag: "Operators",
      summary: "Returns charges and the operator's costs by model, upstream and day (operators).",
      answer: jsonOr(marginReport, CSV),
      requires: requireOperator,
      query: marginQuery,
      handler: async (ctx, { query, exchange }) => {
        const { by, from, to, limit: first, format } = query;
        const rows = await margins.read(ctx, { by, from, to, first });
        if (format === "csv") return sendCsv(exchange, "margins.csv", [toCsvHeader(MARGIN_COLUMNS) + toCsvRows(MARGIN_COLUMNS, rows)]);
        return { margins: rows.map((row) => toJsonRow(MARGIN_COLUMNS, row)), count: rows.length };
      },
    }),
  });
  route("/operator/audit", {
    GET: endpoint({
      id: "listAuditLog",
      tag: "Operators",
      summary: "Lists acts of operators, newest first (operators).",
      answer: jsonOr(auditList, CSV),
      requires: requireOperator,
      query: auditQuery,
      handler: async (ctx, { query, exchange }) => {
        if (query.format === "csv") return sendCsv(exchange, "audit-log.csv", auditPages(auditLog, ctx, query));
        return toAuditList(await auditLog.list(ctx, { first: query.limit, after: positionBefore(query) }, filterOf(query)));
      },
    }),
  });
}

const SUM_COLUMNS = {
  requests: (row: SpendSums) => row.requests,
  failed_requests: (row: SpendSums) => row.failedRequests,
  input_tokens: (row: SpendSums) => row.inputTokens,
  output_tokens: (row: SpendSums) => row.outputTokens,
  cost_usd: (row: SpendSums) => row.costNanocredits,
} as const satisfies Columns<SpendSums>;

const MARGIN_COLUMNS = {
  model: (row: MarginRow) => row.model,
  upstream: (row: MarginRow) => row.upstream,
  day: (row: MarginRow) => row.day,
  requests: (row: MarginRow) => row.requests,
  unknown_requests: (row: MarginRow) => row.unknownRequests,
  cost_usd: (row: MarginRow) => row.costNanocredits,
  upstream_cost_usd: (row: MarginRow) => row.upstreamCostNanocredits,
  margin_usd: (row: MarginRow) => row.marginNanocredits,
} as const satisfies Columns<MarginRow>;

const ACCOUNT_COLUMNS = {
  account_id: (row: SpendRow) => row.accountId,
  handle: (row: SpendRow) => row.handle,
  email: (row: SpendRow) => row.email,
} as const satisfies Columns<SpendRow>;

const SPEND_COLUMNS = {
  account: { ...ACCOUNT_COLUMNS, ...SUM_COLUMNS },
  key: {
    ...ACCOUNT_COLUMNS,
    api_key_id: (row: SpendRow) => row.apiKeyId,
    api_key: (row: SpendRow) => row.apiKeyName,
    ...SUM_COLUMNS,
  },
  model: { model: (row: SpendRow) => row.model, ...SUM_COLUMNS },
} as const satisfies Readonly<Record<SpendGrouping, Columns<SpendRow>>>;

function toSpend({ month, by, rows, groups, total }: Spend) {
  return {
    ...{ month, by, count: rows.length, total_count: groups },
    spend: rows.map((row) => toJsonRow(SPEND_COLUMNS[by], row)),
    total: toJsonRow(SUM_COLUMNS, total),
  };
}

/** The month is a column, so that tables of several months can be put together. */
function* spendPieces({ month, by, rows }: Spend): Generator<string> {
  const columns: Columns<SpendRow> = { month: () => month, ...SPEND_COLUMNS[by] };
  yield toCsvHeader(columns);
  for (let start = 0; start < rows.length; start += CSV_PAGE_ROWS) yield toCsvRows(columns, rows.slice(start, start + CSV_PAGE_ROWS));
}

type AuditQuery = z.infer<typeof auditQuery>;

function filterOf(query: AuditQuery): AuditFilter {
  const { acts, account_ids: accountIds, actor_account_ids: actorAccountIds, object_id: objectId, request_id: requestId, from, to } = query;
  return { acts, accountIds, actorAccountIds, objectId, requestId, from, to };
}

const jsonText = (value: unknown) => (value === null ? null : JSON.stringify(value));

const AUDIT_COLUMNS = {
  id: (row: AuditEntryRow) => row.id,
  created_at: (row: AuditEntryRow) => row.createdAt.toISOString(),
  act: (row: AuditEntryRow) => row.act,
  actor_account_id: (row: AuditEntryRow) => row.actorAccountId,
  actor_api_key_id: (row: AuditEntryRow) => row.actorApiKeyId,
  account_id: (row: AuditEntryRow) => row.accountId,
  object_id: (row: AuditEntryRow) => row.objectId,
  before: (row: AuditEntryRow) => jsonText(row.before),
  after: (row: AuditEntryRow) => jsonText(row.after),
  reason: (row: AuditEntryRow) => row.reason,
  address: (row: AuditEntryRow) => row.address,
  request_id: (row: AuditEntryRow) => row.requestId,
} as const satisfies Columns<AuditEntryRow>;

function toAuditList({ items, hasNextPage }: Page<AuditEntryRow>) {
  const last = hasNextPage ? items.at(-1) : undefined;
  // JSON has the changed values as they are.
  const entries = items.map((row) => ({ ...toJsonRow(AUDIT_COLUMNS, row), before: row.before, after: row.after }));
  return { entries, count: entries.length, next_before: last?.createdAt ?? null, next_before_id: last?.id ?? null };
}

function auditPages(auditLog: Services["auditLog"], ctx: RequestContext, query: AuditQuery): AsyncGenerator<string> {
  const read = (page: PageRequest) => auditLog.list(ctx, page, filterOf(query));
  const range = { limit: query.limit, after: positionBefore(query) };
  return csvPages(AUDIT_COLUMNS, range, read, ({ createdAt, id }) => ({ timestamp: createdAt, id }));
}
