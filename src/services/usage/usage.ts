/** Usage: the history of an account's generations, newest first, and its daily roll-up (docs/spec/usage.md). */
import type { RequestContext } from "../../context.js";
import { invalidInput, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import { newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { UsageQuantities } from "../../lib/usage.js";
import { USAGE_DAILY_DAYS_DEFAULT, USAGE_DAYS_DEFAULT } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { UsageRecordModel } from "../../store/generated/prisma/models.js";
import { isKeyCaller, requireAccount, requirePermission } from "../access/permissions.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export interface UsageRow extends UsageQuantities {
  /** The generation's id: `request_id` on REST. */
  readonly id: string;
  readonly timestamp: Date;
  readonly modality: UsageRecordModel["modality"];
  readonly model: string;
  readonly modelUsed: string;
  readonly apiKeyId: string | null;
  readonly apiKeyName: string | null;
  readonly apiKeyType: "secret" | "publishable" | null;
  readonly meterSource: UsageRecordModel["meterSource"];
  readonly costNanocredits: bigint;
  readonly responseTimeMs: number;
  readonly timeToFirstTokenMs: number | null;
  readonly status: UsageRecordModel["status"];
  readonly usageSource: UsageRecordModel["usageSource"];
  readonly parentRequestId: string | null;
}

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
  /** How far back, in days. */
  readonly days?: number | undefined;
  /** The calling key's own rows, which need no permission. */
  readonly ownKeyOnly?: boolean | undefined;
}

export class UsageRecords {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async list(ctx: RequestContext, query: UsageQuery): Promise<Page<UsageRow>> {
    const owner = query.ownKeyOnly ? ownKey(ctx) : { accountId: requirePermission(ctx, "usage").accountId };
    const { where: older, ...page } = newestFirst(query.page, "timestamp");
    const since = new Date(this.clock.now().getTime() - (query.days ?? USAGE_DAYS_DEFAULT) * DAY_MS);
    const rows = await this.database.prisma.usageRecord.findMany({
      where: { ...owner, timestamp: { gte: since }, AND: older },
      ...page,
    });
    return toPage(rows, query.page.first);
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

/** The first of so many UTC days, of which the last is today. */
export function firstDayOf(now: Date, days: number): Date {
  return new Date(new Date(now.getTime() - (days - 1) * DAY_MS).toISOString().slice(0, 10));
}

function ownKey(ctx: RequestContext): { accountId: string; apiKeyId: string } {
  const caller = requireAccount(ctx);
  if (!isKeyCaller(caller)) throw invalidInput("This request is authenticated by a session, not by a key.");
  return { accountId: caller.accountId, apiKeyId: caller.apiKeyId };
}
