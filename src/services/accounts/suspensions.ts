/**
 * Suspends and restores accounts (docs/spec/accounts.md#suspension). The database decides: credentials are refused when they are next looked
 * up. Events drop them from the caches of all processes, and end running generations and open connections.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { type Database, type DatabaseClient, lockAccountRow } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct, recordLocalAct } from "../audit/audit-log.js";
import { storableText } from "../requests/input.js";
import { SUSPENSION_REASON_CHARS_MAX } from "./limits.js";
import { countOtherOperators } from "./operators.js";
import { OWNER_HANDLE } from "./owner.js";

const reason = storableText.trim().max(SUSPENSION_REASON_CHARS_MAX);

export const suspendAccountInput = z.strictObject({ accountId: z.uuid(), reason: reason.min(1) });
export type SuspendAccountInput = z.output<typeof suspendAccountInput>;

export const restoreAccountInput = z.strictObject({ accountId: z.uuid(), reason: reason.nullish() });
export type RestoreAccountInput = z.output<typeof restoreAccountInput>;

type Transaction = Pick<DatabaseClient, "$queryRaw" | "account" | "apiKey" | "session" | "auditEntry">;

interface Change {
  readonly suspendedAt: Date | null;
  readonly suspensionReason: string | null;
}

export class AccountSuspensions {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /**
   * Refuses the account's keys and sessions, and ends its generations and connections. Rejects with CONFLICT for the caller's own account,
   * the owner's, and the last operator. A suspended account gets the new reason.
   */
  async suspend(ctx: RequestContext, { accountId, reason: why }: SuspendAccountInput): Promise<void> {
    const caller = requireOperator(ctx);
    if (caller.accountId === accountId) throw conflict("You cannot suspend the account that you are using: ask another operator.");
    const { prisma } = this.database;
    const held = await prisma.$transaction(async (transaction) => {
      const others = await countOtherOperators(transaction, accountId);
      const before = await lockAccount(transaction, accountId);
      if (before.handle === OWNER_HANDLE) throw conflict("The owner's account cannot be suspended: its key starts this gateway.");
      if (before.isOperator && others === 0) throw conflict("This is the last operator: make another account one first.");
      const change = { suspendedAt: before.suspendedAt ?? this.clock.now(), suspensionReason: why };
      await transaction.account.update({ where: { id: accountId }, data: change });
      await recordAct(transaction, ctx, { act: "suspend_account", accountId, ...factsOf(before, change), reason: why });
      return findCredentials(transaction, accountId);
    });
    this.announce(accountId, held, true);
    ctx.log.info({ accountId }, "an operator suspended an account");
  }

  /** As `suspend`, by a rule of the operator's configuration. False: it is suspended already, or must not be. */
  async suspendByRule(accountId: string, why: string): Promise<boolean> {
    const held = await this.database.prisma.$transaction(async (transaction) => {
      const before = await lockAccount(transaction, accountId);
      if (before.suspendedAt !== null || before.isOperator || before.handle === OWNER_HANDLE) return null;
      const change = { suspendedAt: this.clock.now(), suspensionReason: why };
      await transaction.account.update({ where: { id: accountId }, data: change });
      await recordLocalAct(transaction, { act: "suspend_account", accountId, ...factsOf(before, change), reason: why });
      return findCredentials(transaction, accountId);
    });
    if (held) this.announce(accountId, held, true);
    return held !== null;
  }

  /** Accepts the account's keys and sessions again. Changes nothing for an account that is not suspended. */
  async restore(ctx: RequestContext, { accountId, reason: why }: RestoreAccountInput): Promise<void> {
    requireOperator(ctx);
    const held = await this.database.prisma.$transaction(async (transaction) => {
      const before = await lockAccount(transaction, accountId);
      if (before.suspendedAt === null) return null;
      const change = { suspendedAt: null, suspensionReason: null };
      await transaction.account.update({ where: { id: accountId }, data: change });
      await recordAct(transaction, ctx, { act: "restore_account", accountId, ...factsOf(before, change), reason: why || null });
      return findCredentials(transaction, accountId);
    });
    if (!held) return;
    this.announce(accountId, held, false);
    ctx.log.info({ accountId }, "an operator restored an account");
  }

  /** The caches first, so that work that is refused here is refused there too. */
  private announce(accountId: string, { keys, sessions }: Credentials, isSuspended: boolean): void {
    for (const { id } of keys) this.events.publish("api-key-changed", { accountId, apiKeyId: id, change: "updated" });
    for (const { id } of sessions) this.events.publish("session-changed", { accountId, sessionId: id });
    this.events.publish("account-suspension-changed", { accountId, isSuspended });
  }
}

type Credentials = Awaited<ReturnType<typeof findCredentials>>;

/** Keys that are revoked are refused anyway. */
async function findCredentials(transaction: Transaction, accountId: string) {
  const select = { id: true } as const;
  const keys = await transaction.apiKey.findMany({ where: { accountId, revokedAt: null }, select });
  return { keys, sessions: await transaction.session.findMany({ where: { accountId }, select }) };
}

/** Rejects with NOT_FOUND. */
async function lockAccount(transaction: Transaction, id: string) {
  await lockAccountRow(transaction, id);
  const account = await transaction.account.findUnique({
    where: { id, deletion: null },
    select: { handle: true, isOperator: true, suspendedAt: true, suspensionReason: true },
  });
  if (!account) throw notFound("account");
  return account;
}

function factsOf(before: Change, after: Change) {
  const facts = ({ suspendedAt, suspensionReason }: Change) => ({ suspendedAt: suspendedAt?.toISOString() ?? null, suspensionReason });
  return { before: facts(before), after: facts(after) };
}
