/**
 * The audit log (docs/spec/accounts.md#audit-log). An act and its row are one transaction: neither is committed without the other. Accounts
 * and keys are named by id, because rows outlive the names of a deleted account.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { createId, isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { AuditEntryModel } from "../../store/generated/prisma/models.js";
import { requireOperator } from "../access/permissions.js";
import { storableText } from "../requests/input.js";
import { AUDIT_FILTER_MAX, AUDIT_REQUEST_ID_CHARS_MAX } from "./limits.js";

export const AUDIT_ACTS = [
  "create_account",
  "grant_credits",
  "withdraw_credits",
  "refund_top_up",
  "sell_credits",
  "record_payment",
  "record_payout",
  "reverse_earnings",
  "link_accounts",
  "unlink_account",
  "set_tier",
  "set_publisher",
  "set_operator",
  "suspend_account",
  "restore_account",
  "revoke_api_key",
  "end_sessions",
  "create_password_link",
  "use_password_link",
  "retry_settlements",
  "create_vendor_key",
  "update_vendor_key",
  "delete_vendor_key",
  "create_usage_limit",
  "update_usage_limit",
  "delete_usage_limit",
  "create_owner_key",
  "reseal_secrets",
  "forget_secrets",
  "update_route",
  "add_route",
  "remove_route",
  "reset_routes",
  "set_routing",
] as const;
export type AuditAct = (typeof AUDIT_ACTS)[number];

type Facts = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** An act. It must hold no secret, and no name of a person. */
export interface AuditRecord {
  readonly act: AuditAct;
  /** The account that is changed; absent: none. */
  readonly accountId?: string;
  /** The changed object of the account; absent: the account itself. */
  readonly objectId?: string;
  readonly before?: Facts;
  readonly after?: Facts;
  readonly reason?: string | null;
}

export interface AuditEntryRow extends Omit<AuditEntryModel, "act"> {
  readonly act: AuditAct;
}

export const auditFilter = z.object({
  acts: z.array(z.enum(AUDIT_ACTS)).max(AUDIT_ACTS.length).nullish(),
  accountIds: z.array(z.uuid()).max(AUDIT_FILTER_MAX).nullish(),
  actorAccountIds: z.array(z.uuid()).max(AUDIT_FILTER_MAX).nullish(),
  objectId: z.uuid().nullish(),
  requestId: storableText.min(1).max(AUDIT_REQUEST_ID_CHARS_MAX).nullish(),
  from: z.date().nullish(),
  to: z.date().nullish(),
});
export type AuditFilter = z.output<typeof auditFilter>;

export type AuditWriter = Pick<DatabaseClient, "auditEntry">;

/** Writes the row of an act. Call it in the act's transaction. */
export async function recordAct(writer: AuditWriter, ctx: RequestContext, record: AuditRecord): Promise<void> {
  const { caller, clientAddress, requestId } = ctx;
  const isKey = caller.kind === "key";
  const actorAccountId = caller.kind === "anonymous" ? null : caller.accountId;
  await write(writer, record, { actorAccountId, actorApiKeyId: isKey ? caller.apiKeyId : null, address: clientAddress, requestId });
}

/** As `recordAct`, for the command line that works on the database itself. */
export async function recordLocalAct(writer: AuditWriter, record: AuditRecord): Promise<void> {
  await write(writer, record, { actorAccountId: null, actorApiKeyId: null, address: null, requestId: null });
}

type Actor = Pick<AuditEntryModel, "actorAccountId" | "actorApiKeyId" | "address" | "requestId">;

async function write(writer: AuditWriter, { before, after, ...record }: AuditRecord, actor: Actor): Promise<void> {
  const changes = { ...(before && { before: { ...before } }), ...(after && { after: { ...after } }) };
  await writer.auditEntry.create({ data: { id: createId(), ...record, ...actor, ...changes } });
}

export class AuditLog {
  constructor(private readonly database: Database) {}

  /** Lists rows, newest first. */
  async list(ctx: RequestContext, page: PageRequest, filter: AuditFilter): Promise<Page<AuditEntryRow>> {
    requireOperator(ctx);
    const { auditEntry } = this.database.prisma;
    const where = whereOf(filter);
    const { where: older, ...query } = newestFirst(page);
    const rows = await auditEntry.findMany({ where: { AND: [older, where] }, ...query });
    return toPage(rows.map(toEntry), page, () => auditEntry.count({ where, take: COUNT_TAKE }));
  }

  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<AuditEntryRow[]> {
    requireOperator(ctx);
    return (await this.database.prisma.auditEntry.findMany({ where: { id: { in: ids.filter(isUuid) } } })).map(toEntry);
  }
}

function whereOf({ acts, accountIds, actorAccountIds, objectId, requestId, from, to }: AuditFilter): Prisma.AuditEntryWhereInput {
  return {
    ...(acts && { act: { in: acts } }),
    ...(accountIds && { accountId: { in: accountIds } }),
    ...(actorAccountIds && { actorAccountId: { in: actorAccountIds } }),
    ...(objectId && { objectId }),
    ...(requestId && { requestId }),
    ...((from || to) && { createdAt: { ...(from && { gte: from }), ...(to && { lt: to }) } }),
  };
}

function toEntry(row: AuditEntryModel): AuditEntryRow {
  return { ...row, act: row.act as AuditAct };
}
