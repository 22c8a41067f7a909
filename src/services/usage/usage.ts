/** The history of an account's generations, newest first, and its daily roll-up (docs/spec/usage.md). */
import type { RequestContext } from "../../context.js";
import { invalidInput, notFound, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { eachOf, groupBy } from "../../lib/collections.js";
import { isUuid } from "../../lib/ids.js";
import { toCreditsNumber } from "../../lib/money.js";
import { setOwnValue } from "../../lib/own-values.js";
import type { Page, PageRequest } from "../../lib/pagination.js";
import { USAGE_DAILY_DAYS_DEFAULT, USAGE_DAYS_DEFAULT } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { AppUsageDailyModel, UsageRecordModel } from "../../store/generated/prisma/models.js";
import { isKeyCaller, readableAccountOf, requireAccount, requirePermission } from "../access/permissions.js";
import { vendorKeyIdOf } from "../catalog/route.js";
import { scopeOf, type UsageFilter, type UsageScope } from "./usage-filter.js";
import { IDENTITY, readPage, readPagesOfKeys, type SelectedUsage, type UsageOrder } from "./usage-lists.js";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Public columns (docs/spec/usage.md#rows). `id` is the generation's: `request_id` on REST. */
export const USAGE_ROW = {
  id: true,
  timestamp: true,
  modality: true,
  model: true,
  modelUsed: true,
  apiKeyId: true,
  apiKeyName: true,
  apiKeyType: true,
  meterSource: true,
  inputTextTokens: true,
  inputCachedTokens: true,
  inputCacheWriteTokens: true,
  inputAudioTokens: true,
  inputImageTokens: true,
  outputTextTokens: true,
  outputReasoningTokens: true,
  outputAudioTokens: true,
  outputImageTokens: true,
  outputVideoMilliseconds: true,
  outputAudioMilliseconds: true,
  costNanocredits: true,
  responseTimeMs: true,
  timeToFirstTokenMs: true,
  status: true,
  usageSource: true,
  parentRequestId: true,
  upstream: true,
  route: true,
  appMarginNanocredits: true,
} as const;

export type UsageRow = Pick<UsageRecordModel, keyof typeof USAGE_ROW>;

/** With the columns for operators. */
export const OPERATOR_USAGE_ROW = { ...USAGE_ROW, upstreamCostNanocredits: true } as const;

export type OperatorUsageRow = Pick<UsageRecordModel, keyof typeof OPERATOR_USAGE_ROW>;

export interface UsageDailyRow {
  /** YYYY-MM-DD, UTC. */
  readonly date: string;
  readonly model: string;
  readonly meterSource: UsageRecordModel["meterSource"];
  readonly requests: number;
  readonly costNanocredits: bigint;
}

export interface UsageQuery {
  readonly page: PageRequest;
  readonly filter?: UsageFilter | undefined;
  /** Days before `filter.to` or now; not with `filter.from`. */
  readonly days?: number | undefined;
  /** Default: newest first. */
  readonly orderBy?: UsageOrder | undefined;
  /** Only that key. The calling key's own rows need no permission. */
  readonly apiKeyId?: string | undefined;
  /** An account, for operators; default: the caller's own. */
  readonly accountId?: string | undefined;
  /** The calling key's own rows, which need no permission. */
  readonly ownKeyOnly?: boolean | undefined;
}

const NEWEST_FIRST: UsageOrder = { field: "timestamp", isAscending: false };

export class UsageRecords {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async list<Column extends keyof UsageRecordModel>(
    ctx: RequestContext,
    query: UsageQuery,
    select: Readonly<Record<Column, true>>,
  ): Promise<Page<SelectedUsage & Pick<UsageRecordModel, Column>>>;
  async list(ctx: RequestContext, query: UsageQuery, select: Prisma.UsageRecordSelect): Promise<Page<SelectedUsage>>;
  async list(ctx: RequestContext, query: UsageQuery, select: Prisma.UsageRecordSelect): Promise<Page<SelectedUsage>> {
    return readPage(this.database, await this.scope(ctx, query), query.page, query.orderBy ?? NEWEST_FIRST, select);
  }

  /** The list of each key, or its refusal. */
  async listsOfKeys(
    ctx: RequestContext,
    apiKeyIds: readonly string[],
    query: Omit<UsageQuery, "apiKeyId">,
    select: Prisma.UsageRecordSelect,
  ): Promise<ReadonlyMap<string, Page<SelectedUsage> | Error>> {
    const { page, orderBy = NEWEST_FIRST } = query;
    if (!areReadTogether(ctx, apiKeyIds) || page.after || page.before)
      return eachOf(apiKeyIds, (apiKeyId) => this.list(ctx, { ...query, apiKeyId }, select));
    return readPagesOfKeys(this.database, await this.scope(ctx, query), apiKeyIds, page, orderBy, select);
  }

  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.UsageRecordSelect): Promise<SelectedUsage[]> {
    const { accountId } = requirePermission(ctx, "usage");
    return this.database.prisma.usageRecord.findMany({
      where: { id: { in: ids.filter(isUuid) }, accountId },
      select: { ...select, ...IDENTITY },
    });
  }

  async getSelected(ctx: RequestContext, id: string, select: Prisma.UsageRecordSelect): Promise<SelectedUsage> {
    const [record] = await this.getMany(ctx, [id], select);
    if (!record) throw notFound("usage record");
    return record;
  }

  private async scope(ctx: RequestContext, query: UsageQuery): Promise<UsageScope> {
    const owner = query.ownKeyOnly
      ? ownKey(ctx)
      : { accountId: readableBy(ctx, query.apiKeyId, query.accountId), apiKeyId: query.apiKeyId };
    return scopeOf(this.database, owner.accountId, this.since(query), owner.apiKeyId);
  }

  private since({ filter, days }: Pick<UsageQuery, "filter" | "days">): UsageFilter {
    if (filter?.from && days !== undefined) throw wrongField("days", "cannot be given together with `from`");
    const to = filter?.to ?? this.clock.now();
    return { ...filter, from: filter?.from ?? new Date(to.getTime() - (days ?? USAGE_DAYS_DEFAULT) * DAY_MS) };
  }

  async get(ctx: RequestContext, id: string): Promise<UsageRow> {
    const { accountId } = requirePermission(ctx, "usage");
    if (!isUuid(id)) throw notFound("usage record");
    const row = await this.database.prisma.usageRecord.findUnique({ where: { id, accountId } });
    if (!row) throw notFound("usage record");
    return row;
  }

  async daily(ctx: RequestContext, query: { readonly days?: number | undefined }): Promise<{ rows: UsageDailyRow[]; asOf: Date }> {
    const { accountId } = requirePermission(ctx, "usage");
    const asOf = this.clock.now();
    const rows = await this.database.prisma.usageDaily.findMany({
      where: { accountId, day: { gte: firstDayOf(asOf, query.days ?? USAGE_DAILY_DAYS_DEFAULT) } },
      orderBy: [{ day: "desc" }, { model: "asc" }, { meterSource: "asc" }],
    });
    return { asOf, rows: rows.map(({ day, accountId: _, ...row }) => ({ date: day.toISOString().slice(0, 10), ...row })) };
  }
}

/** The first of `days` UTC days that end today. */
export function firstDayOf(now: Date, days: number): Date {
  return new Date(new Date(now.getTime() - (days - 1) * DAY_MS).toISOString().slice(0, 10));
}

/** False when keys must be read one by one: the calling key's own rows need no permission. */
export function areReadTogether(ctx: RequestContext, apiKeyIds: readonly string[]): boolean {
  const caller = requireAccount(ctx);
  return apiKeyIds.length > 1 && (!isKeyCaller(caller) || caller.permissions.has("usage"));
}

/** The account whose usage the caller may read: `accountId` for operators. `apiKeyId`: only that key. */
export function readableBy(ctx: RequestContext, apiKeyId: string | undefined, accountId?: string): string {
  const caller = requireAccount(ctx);
  const isOwn = apiKeyId !== undefined && isKeyCaller(caller) && caller.apiKeyId === apiKeyId;
  return isOwn ? caller.accountId : readableAccountOf(ctx, () => requirePermission(ctx, "usage"), accountId);
}

function ownKey(ctx: RequestContext): { accountId: string; apiKeyId: string } {
  const caller = requireAccount(ctx);
  if (!isKeyCaller(caller)) throw invalidInput("This request is authenticated by a session, not by a key.");
  return { accountId: caller.accountId, apiKeyId: caller.apiKeyId };
}

// Attribution: usage of an app's users, for the app's owner (docs/spec/usage.md#app-usage). An app is a publishable key; its traffic comes
// from keys that users granted. Rows have days and models, and nothing about users, not even their number.

export interface AppUsageDay {
  /** YYYY-MM-DD, UTC. */
  readonly date: string;
  readonly model: string;
  readonly requests: number;
  readonly costNanocredits: bigint;
}

export interface AppUsage {
  /** Newest first. */
  readonly days: readonly AppUsageDay[];
  readonly totalRequests: number;
  readonly totalCostNanocredits: bigint;
  readonly asOf: Date;
}

export class AppUsages {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Rejects with NOT_FOUND for a key that is no publishable key of the caller's account. A revoked key keeps its history. */
  async daily(ctx: RequestContext, appKeyId: string, query: { readonly days?: number | undefined }): Promise<AppUsage> {
    const [usage] = (await this.dailyOf(ctx, [appKeyId], query)).values();
    if (!usage) throw notFound("app");
    return usage;
  }

  /** The same per publishable key of the caller's account. */
  async dailyOf(
    ctx: RequestContext,
    appKeyIds: readonly string[],
    query: { readonly days?: number | undefined },
  ): Promise<ReadonlyMap<string, AppUsage>> {
    const { accountId } = requirePermission(ctx, "usage");
    const where = { id: { in: appKeyIds.filter(isUuid) }, accountId, type: "publishable" } as const;
    const apps = await this.database.prisma.apiKey.findMany({ where, select: { id: true } });
    const asOf = this.clock.now();
    const rows = await this.database.prisma.appUsageDaily.findMany({
      where: { appKeyId: { in: apps.map(({ id }) => id) }, day: { gte: firstDayOf(asOf, query.days ?? USAGE_DAILY_DAYS_DEFAULT) } },
      orderBy: [{ day: "desc" }, { model: "asc" }],
    });
    const byApp = groupBy(rows, ({ appKeyId }) => appKeyId);
    return new Map(apps.map(({ id }) => [id, toAppUsage(byApp.get(id) ?? [], asOf)]));
  }
}

function toAppUsage(rows: readonly AppUsageDailyModel[], asOf: Date): AppUsage {
  return {
    asOf,
    days: rows.map(({ day, model, requests, costNanocredits }) => ({
      ...{ model, requests, costNanocredits },
      date: day.toISOString().slice(0, 10),
    })),
    totalRequests: rows.reduce((total, { requests }) => total + requests, 0),
    totalCostNanocredits: rows.reduce((total, { costNanocredits }) => total + costNanocredits, 0n),
  };
}

// Public usage columns (docs/spec/usage.md#rows): one list for JSON, CSV and webhooks.

/** Money stays nanocredits until it is written as a JSON number or as an exact decimal. */
export type Cell = string | number | bigint | null;
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

const KNOWN_COLUMNS = {
  id: (row: UsageRow) => row.id,
  timestamp: (row: UsageRow) => row.timestamp.toISOString(),
  type: (row: UsageRow) => `generate.${row.modality}`,
  model: (row: UsageRow) => row.model,
  api_key_id: (row: UsageRow) => row.apiKeyId,
  api_key: (row: UsageRow) => row.apiKeyName,
  api_key_type: (row: UsageRow) => row.apiKeyType,
  meter_source: (row: UsageRow) => row.meterSource,
  input_text_tokens: (row: UsageRow) => row.inputTextTokens,
  input_cached_tokens: (row: UsageRow) => row.inputCachedTokens,
  input_cache_write_tokens: (row: UsageRow) => row.inputCacheWriteTokens,
  input_audio_tokens: (row: UsageRow) => row.inputAudioTokens,
  input_image_tokens: (row: UsageRow) => row.inputImageTokens,
  output_text_tokens: (row: UsageRow) => row.outputTextTokens,
  output_reasoning_tokens: (row: UsageRow) => row.outputReasoningTokens,
  output_audio_tokens: (row: UsageRow) => row.outputAudioTokens,
  output_image_tokens: (row: UsageRow) => row.outputImageTokens,
  output_video_seconds: (row: UsageRow) => row.outputVideoMilliseconds / 1000,
  output_audio_seconds: (row: UsageRow) => row.outputAudioMilliseconds / 1000,
  cost_usd: (row: UsageRow) => row.costNanocredits,
  response_time_ms: (row: UsageRow) => row.responseTimeMs,
  time_to_first_token_ms: (row: UsageRow) => row.timeToFirstTokenMs,
  status: (row: UsageRow) => row.status,
  usage_source: (row: UsageRow) => row.usageSource,
  request_id: (row: UsageRow) => row.id,
  parent_request_id: (row: UsageRow) => row.parentRequestId,
  upstream: (row: UsageRow) => row.upstream,
} as const satisfies Columns<UsageRow>;

/** New columns follow those that clients know. */
const LATER_COLUMNS = {
  vendor_key_id: (row: UsageRow) => vendorKeyIdOf(row.route),
  app_margin_usd: (row: UsageRow) => row.appMarginNanocredits,
} as const satisfies Columns<UsageRow>;

export const USAGE_COLUMNS = { ...KNOWN_COLUMNS, ...LATER_COLUMNS } as const satisfies Columns<UsageRow>;

export const OPERATOR_USAGE_COLUMNS = {
  ...KNOWN_COLUMNS,
  upstream_cost_usd: (row: OperatorUsageRow) => row.upstreamCostNanocredits,
  ...LATER_COLUMNS,
} as const satisfies Columns<OperatorUsageRow>;

/** Amounts are credits, as JSON numbers. */
export type JsonRow<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends (row: never) => infer Value ? (Value extends bigint ? number : Value) : never;
};

export function toJsonRow<Row, Table extends Columns<Row>>(columns: Table, row: Row): JsonRow<Table> {
  const json: Record<string, string | number | null> = {};
  for (const [name, read] of Object.entries(columns)) {
    const cell = read(row) ?? null;
    setOwnValue(json, name, typeof cell === "bigint" ? toCreditsNumber(cell) : cell);
  }
  return json as JsonRow<Table>;
}
