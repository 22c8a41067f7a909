/** The requests of an account: charged generations and failures in one list, newest first (docs/spec/requests.md). */
import type { RequestContext } from "../../context.js";
import { notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, type Page, type PagePosition, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import { readableAccountOf, requireOperator, requirePermission } from "../access/permissions.js";
import { IDENTITY, type SelectedUsage } from "../usage/usage-lists.js";
import { type RequestFilter, type RequestScope, requestScopeOf } from "./request-log-filter.js";

/** A charged generation, a failure, or a generation that failed and was charged for its delivered part. */
export interface LoggedRequest extends PagePosition {
  readonly accountId: string;
  /** As in X-Request-Id. Null for a charged generation, which is known by its own id. */
  readonly requestId: string | null;
  readonly generationId: string | null;
  readonly status: number;
  /** Null when it did not fail. */
  readonly code: string | null;
  readonly message: string | null;
  readonly apiKeyId: string | null;
  readonly apiKeyName: string | null;
  readonly model: string | null;
  /** Null for a charged generation. */
  readonly route: string | null;
  readonly operation: string | null;
  readonly milliseconds: number;
  readonly leftOut: number;
  readonly isCharged: boolean;
  readonly costNanocredits: bigint;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface RequestLogQuery {
  readonly page: PageRequest;
  readonly filter?: RequestFilter | undefined;
}

export class RequestLog {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Operators may read any account. */
  async list(ctx: RequestContext, accountId: string, query: RequestLogQuery): Promise<Page<LoggedRequest>> {
    requireReader(ctx, accountId);
    return this.read(accountId, query);
  }

  /** The calling account's. */
  async listOwn(ctx: RequestContext, query: RequestLogQuery): Promise<Page<LoggedRequest>> {
    const { accountId } = requirePermission(ctx, "usage");
    return this.read(accountId, query);
  }

  /** Of all accounts, or of one. Operators only. */
  async listAll(ctx: RequestContext, accountId: string | null, query: RequestLogQuery): Promise<Page<LoggedRequest>> {
    requireOperator(ctx);
    return this.read(accountId, query);
  }

  /** By the entry's id, or that of its generation. An entry of another account does not exist, except for operators. */
  async get(ctx: RequestContext, accountId: string, id: string): Promise<LoggedRequest> {
    requireReader(ctx, accountId);
    return existing(await this.find(accountId, [id]));
  }

  /** As `get`, of the calling account. */
  async getOwn(ctx: RequestContext, id: string): Promise<LoggedRequest> {
    return existing(await this.getMany(ctx, [id]));
  }

  /** As `get`, of any account. Operators only. */
  async getAny(ctx: RequestContext, id: string): Promise<LoggedRequest> {
    requireOperator(ctx);
    return existing(await this.find(null, [id]));
  }

  /** The calling account's entries that exist. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<readonly LoggedRequest[]> {
    const { accountId } = requirePermission(ctx, "usage");
    return this.find(accountId, ids);
  }

  /** The usage records of entries, by id. */
  async usageRecords(
    ctx: RequestContext,
    accountId: string,
    ids: readonly string[],
    select: Prisma.UsageRecordSelect,
  ): Promise<SelectedUsage[]> {
    requireReader(ctx, accountId);
    return this.database.prisma.usageRecord.findMany({
      where: { id: { in: ids.filter(isUuid) }, accountId },
      select: { ...select, ...IDENTITY },
    });
  }

  private async find(accountId: string | null, texts: readonly string[]): Promise<readonly LoggedRequest[]> {
    const ids = texts.filter(isUuid);
    if (ids.length === 0) return [];
    const ofAccount = (column: Prisma.Sql) => (accountId === null ? Prisma.sql`true` : Prisma.sql`${column} = ${accountId}::uuid`);
    const scope = {
      failures: Prisma.sql`(f.id = ANY (${ids}::uuid[]) OR f.generation_id = ANY (${ids}::uuid[])) AND ${ofAccount(Prisma.sql`f.account_id`)}`,
      usage: Prisma.sql`u.id = ANY (${ids}::uuid[]) AND ${ofAccount(Prisma.sql`u.account_id`)}`,
    };
    return this.rows(scope, { first: ids.length });
  }

  private async read(accountId: string | null, { page, filter = {} }: RequestLogQuery): Promise<Page<LoggedRequest>> {
    const scope = requestScopeOf(accountId, filter, this.clock.now());
    return toPage(await this.rows(scope, page), page, () => this.count(scope));
  }

  /** Reads each table's part of the page by its index, and merges them. One row more than the page, if there is one. */
  private rows(scope: RequestScope, { first, after, before, isFromEnd = false }: PageRequest): Promise<LoggedRequest[]> {
    const direction = Prisma.raw(isFromEnd ? "ASC" : "DESC");
    const take = first + 1;
    const within = (row: string) => {
      const position = Prisma.raw(`(${row}.timestamp, ${row}.id)`);
      return Prisma.join(
        [
          Prisma.sql`true`,
          ...(after ? [Prisma.sql`${position} < (${after.timestamp}, ${after.id}::uuid)`] : []),
          ...(before ? [Prisma.sql`${position} > (${before.timestamp}, ${before.id}::uuid)`] : []),
        ],
        " AND ",
      );
    };
    const parts = [
      ...(scope.failures
        ? [
            Prisma.sql`(SELECT f.id, f.timestamp, true AS is_failure FROM failed_request f WHERE ${scope.failures} AND ${within("f")}
              ORDER BY f.timestamp ${direction}, f.id ${direction} LIMIT ${take})`,
          ]
        : []),
      ...(scope.usage
        ? [
            Prisma.sql`(SELECT u.id, u.timestamp, false AS is_failure FROM usage_record u WHERE ${scope.usage} AND ${within("u")} AND ${UNFAILED}
              ORDER BY u.timestamp ${direction}, u.id ${direction} LIMIT ${take})`,
          ]
        : []),
    ];
    if (parts.length === 0) return Promise.resolve([]);
    return this.database.prisma.$queryRaw<LoggedRequest[]>`
      SELECT p.id::text, p.timestamp, coalesce(f.account_id, u.account_id)::text AS "accountId", f.request_id AS "requestId",
        coalesce(f.generation_id, u.id)::text AS "generationId", coalesce(f.status, 200) AS status, f.code, f.message,
        coalesce(f.api_key_id, u.api_key_id)::text AS "apiKeyId", coalesce(f.api_key_name, u.api_key_name) AS "apiKeyName",
        coalesce(f.model, u.model) AS model, f.route, f.operation, coalesce(f.milliseconds, u.response_time_ms) AS milliseconds,
        coalesce(f.left_out, 0) AS "leftOut", u.id IS NOT NULL AS "isCharged", coalesce(u.cost_nanocredits, 0)::bigint AS "costNanocredits",
        coalesce(u.input_text_tokens + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens + u.input_image_tokens, 0)
          AS "inputTokens",
        coalesce(u.output_text_tokens + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens, 0) AS "outputTokens"
      FROM (SELECT * FROM (${Prisma.join(parts, " UNION ALL ")}) part ORDER BY timestamp ${direction}, id ${direction} LIMIT ${take}) p
      LEFT JOIN failed_request f ON p.is_failure AND f.id = p.id
      LEFT JOIN usage_record u ON u.id = CASE WHEN p.is_failure THEN f.generation_id ELSE p.id END AND u.account_id = coalesce(f.account_id, u.account_id)
      ORDER BY p.timestamp ${direction}, p.id ${direction}`;
  }

  private async count(scope: RequestScope): Promise<number> {
    const parts = [
      ...(scope.failures ? [Prisma.sql`(SELECT FROM failed_request f WHERE ${scope.failures} LIMIT ${COUNT_TAKE})`] : []),
      ...(scope.usage ? [Prisma.sql`(SELECT FROM usage_record u WHERE ${scope.usage} AND ${UNFAILED} LIMIT ${COUNT_TAKE})`] : []),
    ];
    if (parts.length === 0) return 0;
    const [counted] = await this.database.prisma.$queryRaw<{ count: number }[]>`
      SELECT count(*)::integer FROM (SELECT FROM (${Prisma.join(parts, " UNION ALL ")}) part LIMIT ${COUNT_TAKE}) found`;
    return counted?.count ?? 0;
  }
}

/** A charged generation whose request failed is in the list once, as that failure. */
const UNFAILED = Prisma.sql`NOT EXISTS (SELECT FROM failed_request x WHERE x.generation_id = u.id AND x.account_id = u.account_id)`;

function existing([entry]: readonly LoggedRequest[]): LoggedRequest {
  if (!entry) throw notFound("request");
  return entry;
}

/** The account to read, the caller's for null. Throws FORBIDDEN for another account, except to operators. */
export function requireReader(ctx: RequestContext, accountId: string | null): string {
  return readableAccountOf(ctx, () => requirePermission(ctx, "usage"), accountId ?? undefined);
}
