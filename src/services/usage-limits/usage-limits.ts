/**
 * Limits that renew (docs/spec/usage-limits.md): of keys, by callers that may manage them, and of accounts, by operators. A key cannot change
 * a limit that it is under.
 */
import type { KeyCaller, RequestContext } from "../../context.js";
import { conflict, notFound, permissionDenied, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, type DatabaseClient, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { UsageLimitModel } from "../../store/generated/prisma/models.js";
import { readableAccountOf, requireAccount, requireKeyManager, requireOperator } from "../access/permissions.js";
import { type AuditAct, recordAct } from "../audit/audit-log.js";
import type { Catalog } from "../catalog/catalog.js";
import { type CreateUsageLimitInput, type LimitTerms, toTerms, type UpdateUsageLimitInput } from "./limit-input.js";
import { MODEL_LIMITS_MAX, USAGE_LIMITS_PER_ACCOUNT_MAX } from "./limits.js";

const IDENTITY = { id: true, createdAt: true } as const;
export type SelectedUsageLimit = Pick<UsageLimitModel, keyof typeof IDENTITY>;

/** What the current window has used. Decimal amounts. */
export interface LimitUsage {
  readonly id: string;
  readonly spent: string;
  readonly remaining: string;
  /** Null: no window, or a rolling one. */
  readonly renewsAt: Date | null;
  /** In whole percent of the amount in force. */
  readonly percent: number;
}

interface ListScope {
  readonly apiKeyId?: string | null | undefined;
  readonly accountId?: string | undefined;
  /** Only those of the account itself. */
  readonly ofAccount?: boolean | undefined;
}

export interface LimitScope {
  readonly apiKeyId?: string | undefined;
  readonly accountId?: string | undefined;
  /** Of models. */
  readonly allAccounts?: boolean | undefined;
}

export interface UsageLimitsDependencies {
  readonly database: Database;
  readonly catalog: Pick<Catalog, "known">;
  readonly events: Events;
  readonly clock: Clock;
}

export class UsageLimits {
  constructor(private readonly deps: UsageLimitsDependencies) {}

  /** Newest first: of one key, or all of the account. An operator may list those of any account. */
  async list<Select extends Prisma.UsageLimitSelect>(
    ctx: RequestContext,
    page: PageRequest,
    { apiKeyId, accountId: stated, ofAccount = false }: ListScope,
    select: Select,
  ): Promise<Page<SelectedUsageLimit>> {
    const accountId = readableAccountOf(ctx, requireKeyManager, stated);
    const where = { accountId, ...(ofAccount ? { apiKeyId: null } : apiKeyId && { apiKeyId: isUuid(apiKeyId) ? apiKeyId : null }) };
    return this.find(where, page, select);
  }

  /** Limits of models over all accounts, newest first; for operators. */
  async listOfModels<Select extends Prisma.UsageLimitSelect>(
    ctx: RequestContext,
    page: PageRequest,
    select: Select,
  ): Promise<Page<SelectedUsageLimit>> {
    requireOperator(ctx);
    return this.find({ accountId: null }, page, select);
  }

  private async find<Select extends Prisma.UsageLimitSelect>(where: Prisma.UsageLimitWhereInput, page: PageRequest, select: Select) {
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.rows.findMany({ where: { ...where, ...older }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => this.rows.count({ where, take: COUNT_TAKE })) as Page<SelectedUsageLimit>;
  }

  /** All rows with all columns, for one answer. */
  async all(ctx: RequestContext, scope: LimitScope) {
    if (scope.allAccounts === true) requireOperator(ctx);
    const accountId = scope.allAccounts === true ? null : readableAccountOf(ctx, requireKeyManager, scope.accountId);
    const where = { accountId, ...(scope.apiKeyId !== undefined && { apiKeyId: scope.apiKeyId }) };
    const orderBy = [{ createdAt: "desc" }, { id: "desc" }] satisfies Prisma.UsageLimitOrderByWithRelationInput[];
    return this.rows.findMany({ where, orderBy, take: 2 * USAGE_LIMITS_PER_ACCOUNT_MAX });
  }

  /** Leaves out those of other accounts, but not for operators. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.UsageLimitSelect): Promise<SelectedUsageLimit[]> {
    const { accountId, isOperator } = requireKeyManager(ctx);
    const where = { id: { in: ids.filter(isUuid) }, ...(!isOperator && { accountId }) };
    return this.rows.findMany({ where, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string, select: Prisma.UsageLimitSelect): Promise<SelectedUsageLimit> {
    const [limit] = await this.getMany(ctx, [id], select);
    if (!limit) throw notFound("usage limit");
    return limit;
  }

  async show(ctx: RequestContext, id: string): Promise<UsageLimitModel> {
    const { accountId, isOperator } = requireKeyManager(ctx);
    const row = isUuid(id) ? await this.rows.findUnique({ where: { id, ...(!isOperator && { accountId }) } }) : null;
    if (!row) throw notFound("usage limit");
    return row;
  }

  /** What the windows of these limits have used now. Leaves out those of other accounts, but not for operators. */
  async usageOf(ctx: RequestContext, ids: readonly string[]): Promise<LimitUsage[]> {
    const { accountId, isOperator } = requireAccount(ctx);
    const now = this.deps.clock.now();
    const rows = await this.deps.database.prisma.$queryRaw<
      { id: string; metric: LimitTerms["metric"]; size: bigint; spent: bigint; renews: Date | null }[]
    >`
      SELECT l.id, l.metric, w.renews, usage_limit_spent(l, w.since, ${now}::timestamptz) AS spent,
        l.amount + CASE WHEN l.raise_until > ${now}::timestamptz THEN l.raise_amount ELSE 0 END AS size
      FROM usage_limit l CROSS JOIN LATERAL usage_limit_window(l.period, l.minutes, l.is_rolling, l.time_zone, ${now}::timestamptz) w
      WHERE l.id = ANY (${ids.filter(isUuid)}::uuid[]) AND (${isOperator}::boolean OR l.account_id = ${accountId}::uuid)`;
    return rows.map(({ id, metric, size, spent, renews }) => ({
      id,
      spent: formatAmount(metric, spent),
      remaining: formatAmount(metric, size > spent ? size - spent : 0n),
      renewsAt: renews,
      percent: Number((spent * 100n) / (size > 0n ? size : 1n)),
    }));
  }

  /** Rejects with BAD_REQUEST naming the field, FORBIDDEN, NOT_FOUND, and with CONFLICT when the account has too many. */
  async create(ctx: RequestContext, input: CreateUsageLimitInput): Promise<string> {
    const { apiKeyId, accountId: _, allAccounts = false, metric, model, ...terms } = input;
    const accountId = await this.limitedAccount(ctx, input);
    if (allAccounts) assertOfModel(input);
    const now = this.deps.clock.now();
    const id = createId();
    const data = {
      id,
      accountId,
      apiKeyId: apiKeyId ?? null,
      model: model == null ? null : this.deps.catalog.known(ctx.caller, model, "model").id,
      ...toTerms(terms, { ...NO_TERMS, metric }, now),
      ...{ createdAt: now, updatedAt: now },
    };
    await this.deps.database.prisma.$transaction(async (transaction) => {
      // Two concurrent requests must not both create the last one allowed.
      await lockName(transaction, lockOf(accountId));
      if (accountId !== null) await forgetRevoked(transaction, accountId);
      const isOfKey = apiKeyId != null;
      const count = await transaction.usageLimit.count({ where: { accountId, apiKeyId: isOfKey ? { not: null } : null } });
      const most = allAccounts ? MODEL_LIMITS_MAX : USAGE_LIMITS_PER_ACCOUNT_MAX;
      if (count >= most) {
        throw conflict(`${allAccounts ? "Models have" : "The account has"} ${most} limits, which is the most: delete one first.`);
      }
      await transaction.usageLimit.create({ data });
      await this.record(transaction, ctx, "create_usage_limit", data);
    });
    this.changed(accountId);
    return id;
  }

  /** Changes the stated terms. Rejects as `create`. */
  async update(ctx: RequestContext, id: string, input: UpdateUsageLimitInput): Promise<void> {
    const { accountId } = await this.changeable(ctx, id);
    const now = this.deps.clock.now();
    await this.deps.database.prisma.$transaction(async (transaction) => {
      // Of two concurrent changes, the second must not undo the first.
      await lockName(transaction, lockOf(accountId));
      const before = await transaction.usageLimit.findUnique({ where: { id } });
      if (!before) throw notFound("usage limit");
      const terms = toTerms(input, before, now);
      if (accountId === null) assertOfModel({ ...before, alertAt: terms.alertAt });
      await transaction.usageLimit.update({ where: { id }, data: { ...terms, updatedAt: now } });
      // A percentage is reached again under the new terms.
      await transaction.usageLimitAlert.deleteMany({ where: { limitId: id } });
      await this.record(transaction, ctx, "update_usage_limit", { ...before, ...terms });
    });
    this.changed(accountId);
  }

  async delete(ctx: RequestContext, id: string): Promise<string> {
    const limit = await this.changeable(ctx, id);
    await this.deps.database.prisma.$transaction(async (transaction) => {
      const { count } = await transaction.usageLimit.deleteMany({ where: { id } });
      if (count === 0) throw notFound("usage limit");
      await this.record(transaction, ctx, "delete_usage_limit", limit);
    });
    this.changed(limit.accountId);
    return id;
  }

  /** Account limits are changed by operators only, limits of keys by their accounts. */
  private async changeable(ctx: RequestContext, id: string): Promise<UsageLimitModel> {
    const row = await this.show(ctx, id);
    if (row.apiKeyId === null) requireOperator(ctx);
    else await this.ownKey(ctx, row.apiKeyId);
    return row;
  }

  /** Null: all accounts. */
  private async limitedAccount(ctx: RequestContext, { apiKeyId, accountId, allAccounts }: CreateUsageLimitInput): Promise<string | null> {
    if ([apiKeyId != null, accountId != null, allAccounts === true].filter(Boolean).length !== 1) {
      throw wrongField("apiKeyId", "state the key that the limit is of, or, as an operator, the account (accountId), or allAccounts");
    }
    if (allAccounts) requireOperator(ctx);
    if (apiKeyId != null) return this.ownKey(ctx, apiKeyId);
    return accountId == null ? null : this.anyAccount(ctx, accountId);
  }

  private async anyAccount(ctx: RequestContext, accountId: string): Promise<string> {
    requireOperator(ctx);
    const account = await this.deps.database.prisma.account.findUnique({ where: { id: accountId }, select: { id: true } });
    if (!account) throw notFound("account");
    return accountId;
  }

  /** Returns the account. Rejects with NOT_FOUND for a key of another account, and with FORBIDDEN for one above the calling key. */
  private async ownKey(ctx: RequestContext, apiKeyId: string): Promise<string> {
    const { caller } = ctx;
    const { accountId } = requireKeyManager(ctx);
    const key = await this.deps.database.prisma.apiKey.findUnique({ where: { id: apiKeyId, accountId }, select: { ancestorIds: true } });
    if (!key) throw notFound("API key");
    if (caller.kind === "key" && !key.ancestorIds.includes(caller.apiKeyId)) await this.assertBesides(caller, apiKeyId);
    return accountId;
  }

  /** A key could otherwise lift a limit that it is under, or leave it by a key beside it. */
  private async assertBesides({ apiKeyId: own, hasBudget, limits = [] }: KeyCaller, apiKeyId: string): Promise<void> {
    const refuse = "A key changes limits of keys that were made with it, and, if it has no limit or budget itself, of keys beside it.";
    if (own === apiKeyId || hasBudget || limits.some(({ isOfKey }) => isOfKey)) throw permissionDenied(refuse);
    const key = await this.deps.database.prisma.apiKey.findUnique({ where: { id: own }, select: { ancestorIds: true } });
    if (!key || key.ancestorIds.includes(apiKeyId)) throw permissionDenied(refuse);
  }

  private record(
    writer: Parameters<typeof recordAct>[0],
    ctx: RequestContext,
    act: AuditAct,
    limit: LimitTerms & LimitPlace,
  ): Promise<void> {
    const { id, accountId, apiKeyId, model, metric, amount, period, minutes, isRolling, timeZone, raiseAmount, raiseUntil } = limit;
    const raised = { raiseAmount: formatAmount(metric, raiseAmount), raiseUntil: raiseUntil?.toISOString() ?? null };
    const after = { apiKeyId, model, metric, amount: formatAmount(metric, amount), period, minutes, isRolling, timeZone, ...raised };
    return recordAct(writer, ctx, { act, ...(accountId !== null && { accountId }), objectId: id, after });
  }

  private changed(accountId: string | null): void {
    this.deps.events.publish("usage-limits-changed", { accountId: accountId ?? "" });
  }

  private get rows() {
    return this.deps.database.prisma.usageLimit;
  }
}

function lockOf(accountId: string | null): string {
  return accountId === null ? "usage limits of models" : `usage limits of ${accountId}`;
}

/** Throws BAD_REQUEST for terms that a limit over all accounts cannot have. */
function assertOfModel({ model, metric, alertAt }: Pick<CreateUsageLimitInput, "model" | "metric" | "alertAt">): void {
  if (model == null) throw wrongField("model", "name the model: a limit of all accounts is of one model");
  if (metric === "credits") throw wrongField("metric", "a limit of all accounts is of requests, tokens or concurrency");
  if ((alertAt ?? []).length > 0) throw wrongField("alertAt", "a limit of all accounts notifies no account: leave it out");
}

/** Deletes limits of revoked keys that no process claims a part of: a generation under way keeps within its limits. */
async function forgetRevoked(transaction: Pick<DatabaseClient, "$executeRaw">, accountId: string): Promise<void> {
  await transaction.$executeRaw`
    DELETE FROM usage_limit l USING api_key k
    WHERE l.account_id = ${accountId}::uuid AND k.id = l.api_key_id AND k.revoked_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM usage_limit_claim c WHERE c.limit_id = l.id)`;
}

type LimitPlace = Pick<UsageLimitModel, "id" | "accountId" | "apiKeyId" | "model">;

const NO_TERMS = {
  ...{ amount: 0n, period: null, minutes: null, isRolling: false, timeZone: "UTC" },
  ...{ alertAt: [], raiseAmount: 0n, raiseUntil: null },
};

/** Credits as a decimal, all else as a whole number. */
export function formatAmount(metric: LimitTerms["metric"], amount: bigint): string {
  return metric === "credits" ? formatNanocredits(amount) : amount.toString();
}
