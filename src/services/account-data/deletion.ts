/**
 * Deletes an account (docs/spec/accounts.md#deletion), after its owner has proven their identity again and named the account.
 *
 * 1. All access to the account ends in one transaction, under the lock that every hold, lease and new key takes.
 * 2. Its row stays under another handle, because the books refer to it: usage, ledger and roll-ups keep amounts, without names.
 * 3. Available credits are forfeited in the same transaction. Holds and leases stay: generations under way settle as usual, and the
 *    remainder is forfeited afterwards.
 * 4. After the commit the change is published. `AccountErasure` does the rest.
 */
import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { RequestContext, SessionCaller } from "../../context.js";
import { invalidInput, permissionDenied } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { COUNT_TAKE } from "../../lib/pagination.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireSession } from "../access/permissions.js";
import { HANDLE_CHARS_MAX } from "../accounts/limits.js";
import type { Leases } from "../credits/leases.js";
import { MEDIA_FILE_DAYS } from "../files/limits.js";
import type { SessionCookie } from "../sessions/csrf-tokens.js";
import { passwordInput, type SignIn } from "../sessions/sign-in.js";
import type { AccountErasure } from "./erasure.js";
import { FRESH_SESSION_SECONDS } from "./limits.js";

export const deleteAccountInput = z.strictObject({
  /** The account's handle, as confirmation. */
  confirmHandle: z.string().trim().toLowerCase().max(HANDLE_CHARS_MAX),
  password: passwordInput.nullish(),
});
export type DeleteAccountInput = z.output<typeof deleteAccountInput>;

export interface DeletedAccount {
  readonly accountId: string;
  readonly deletedAt: Date;
  /** Nanocredits forfeited so far. */
  readonly forfeited: bigint;
  /** `Set-Cookie` lines of the answer. */
  readonly cookies: readonly string[];
}

/** Why the caller cannot delete the account. */
export type DeletionObstacle = "operator" | "stale_session";

/** Proof of identity. fresh_session: the account has no password, so its person must have just signed in. */
export type DeletionProof = "password" | "fresh_session";

export interface DeletionPreview {
  readonly obstacle: DeletionObstacle | null;
  readonly proof: DeletionProof;
  /** Number of each kind that ends, counted up to COUNTED_MAX + 1. */
  readonly ended: Readonly<Record<EndedKind, number>>;
  readonly keptUsageRecords: number;
}

export type EndedKind = "apiKeys" | "sessions" | "webhookEndpoints" | "communityModels" | "files";

export interface AccountDeletionParts {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
  readonly leases: Pick<Leases, "recall">;
  readonly cookie: SessionCookie;
  readonly signIn: Pick<SignIn, "checkPassword" | "hasPassword">;
  readonly erasure: AccountErasure;
}

interface Ended {
  readonly keyIds: readonly string[];
  readonly sessionIds: readonly string[];
  readonly modelIds: readonly string[];
}

/** Columns that are cleared. */
const NAMELESS = {
  ...{ name: null, email: null, isEmailVerified: false, githubUsername: null, image: null },
  ...{ tier: null, tierResetsAt: null, isPublisher: false, lowBalanceNanocredits: null },
} as const;

type Transaction = Omit<DatabaseClient, "$transaction" | "$extends" | "$connect" | "$disconnect" | "$on">;

export class AccountDeletions {
  constructor(private readonly parts: AccountDeletionParts) {}

  /** Sessions only. */
  async preview(ctx: RequestContext): Promise<DeletionPreview> {
    const caller = requireSession(ctx);
    const { accountId } = caller;
    const { apiKey, session, webhookEndpoint, communityModel, mediaFile, mediaObject, usageRecord } = this.parts.database.prisma;
    const now = this.parts.clock.now();
    const isThere = { accountId, OR: [{ expiresAt: null }, { expiresAt: { gt: now } }] };
    const counts = await Promise.all([
      apiKey.count({ where: { accountId, revokedAt: null }, take: COUNT_TAKE }),
      session.count({ where: { accountId, expiresAt: { gt: now } }, take: COUNT_TAKE }),
      webhookEndpoint.count({ where: { accountId } }),
      communityModel.count({ where: { accountId } }),
      mediaFile.count({ where: { accountId, expiresAt: { gt: now } }, take: COUNT_TAKE }),
      mediaObject.count({ where: isThere, take: COUNT_TAKE }),
      usageRecord.count({ where: { accountId }, take: COUNT_TAKE }),
    ]);
    const [apiKeys, sessions, webhookEndpoints, communityModels, linkedFiles, objects, keptUsageRecords] = counts;
    const proof = (await this.parts.signIn.hasPassword(accountId)) ? "password" : "fresh_session";
    const isProven = proof === "password" || (await this.isFresh(caller));
    return {
      obstacle: caller.isOperator ? "operator" : isProven ? null : "stale_session",
      proof,
      ended: { apiKeys, sessions, webhookEndpoints, communityModels, files: Math.min(linkedFiles + objects, COUNT_TAKE) },
      keptUsageRecords,
    };
  }

  /**
   * Sessions only. Rejects with FORBIDDEN for an operator's account and for a session that is no proof, BAD_REQUEST for a wrong password or
   * handle, or RATE_LIMITED. Concurrent calls get the same answer, and delete once.
   */
  async delete(ctx: RequestContext, { confirmHandle, password }: DeleteAccountInput): Promise<DeletedAccount> {
    const caller = requireSession(ctx);
    const { accountId } = caller;
    const { clock, database, erasure, leases } = this.parts;
    if (caller.isOperator) throw permissionDenied("An operator's account cannot be deleted.");
    try {
      await this.assertProven(caller, password ?? null);
    } catch (error) {
      // A concurrent call deleted the account, and the proof with it.
      if (await this.isDeleted(accountId)) return this.outcome(accountId);
      throw error;
    }
    // Unused leases are recalled first, so that as much as possible is forfeited at once.
    await leases.recall(accountId);
    const now = clock.now();
    const ended = await database.prisma.$transaction((transaction) => this.endAll(transaction, accountId, confirmHandle, now));
    if (ended) {
      this.announce(accountId, ended);
      ctx.log.info({ accountId }, "an account was deleted by its owner");
    }
    erasure.soon();
    return this.outcome(accountId);
  }

  private async isDeleted(accountId: string): Promise<boolean> {
    return (await this.parts.database.prisma.accountDeletion.count({ where: { accountId } })) > 0;
  }

  private async assertProven(caller: SessionCaller, password: string | null): Promise<void> {
    const { signIn } = this.parts;
    const { accountId } = caller;
    if (await signIn.hasPassword(accountId)) {
      if (password === null) throw invalidInput("The account's password is needed for this.", "password");
      await signIn.checkPassword(accountId, password, "password");
    } else if (!(await this.isFresh(caller))) {
      const minutes = FRESH_SESSION_SECONDS / 60;
      throw permissionDenied(`Sign in with GitHub again, then delete the account within ${minutes} minutes.`);
    }
  }

  /** Whether the person has just signed in. */
  private async isFresh({ sessionId }: SessionCaller): Promise<boolean> {
    const session = await this.parts.database.prisma.session.findUnique({ where: { id: sessionId }, select: { createdAt: true } });
    return session !== null && this.parts.clock.now().getTime() - session.createdAt.getTime() <= FRESH_SESSION_SECONDS * 1000;
  }

  /** Null: already deleted. */
  private async endAll(transaction: Transaction, accountId: string, confirmHandle: string, now: Date): Promise<Ended | null> {
    // A stronger lock than that of charges: waits for rows being inserted for the account.
    await transaction.$queryRaw`SELECT 1 FROM account WHERE id = ${accountId}::uuid FOR UPDATE`;
    if (await transaction.accountDeletion.findUnique({ where: { accountId } })) return null;
    const { handle, isOperator } = await transaction.account.findUniqueOrThrow({ where: { id: accountId } });
    if (isOperator) throw permissionDenied("An operator's account cannot be deleted.");
    if (confirmHandle !== handle)
      throw invalidInput(`Type the account's handle, ${handle}, to delete it with its credits.`, "confirmHandle");
    await transaction.accountDeletion.create({ data: { accountId, deletedAt: now } });
    const ended = await endAccess(transaction, accountId, now);
    await endFiles(transaction, accountId, now);
    await transaction.account.update({ where: { id: accountId }, data: { ...NAMELESS, handle: namelessHandle() } });
    await transaction.$queryRaw`SELECT credit_forfeit(${createId()}::uuid, ${accountId}::uuid)`;
    return ended;
  }

  private announce(accountId: string, { keyIds, sessionIds, modelIds }: Ended): void {
    const { events } = this.parts;
    for (const apiKeyId of keyIds) events.publish("api-key-changed", { accountId, apiKeyId, change: "revoked" });
    for (const sessionId of sessionIds) events.publish("session-changed", { accountId, sessionId });
    for (const modelId of modelIds) events.publish("community-model-changed", { accountId, modelId, change: "deleted" });
    events.publish("webhooks-changed", { accountId });
    events.publish("balance-changed", { accountId });
  }

  private async outcome(accountId: string): Promise<DeletedAccount> {
    const { cookie, database } = this.parts;
    const { accountDeletion, ledgerEntry } = database.prisma;
    const deletion = await accountDeletion.findUniqueOrThrow({ where: { accountId } });
    const { _sum } = await ledgerEntry.aggregate({
      where: { accountId, kind: "forfeit", book: "issued" },
      _sum: { amountNanocredits: true },
    });
    return { accountId, deletedAt: deletion.deletedAt, forfeited: _sum.amountNanocredits ?? 0n, cookies: [cookie.clear()] };
  }
}

/** Ends keys, sessions, sign-in methods, webhooks, models, agents, and requests of apps. */
async function endAccess(transaction: Transaction, accountId: string, now: Date): Promise<Ended> {
  const where = { accountId };
  const keys = await transaction.apiKey.updateManyAndReturn({
    where: { accountId, revokedAt: null },
    data: { revokedAt: now },
    select: { id: true },
  });
  // Usage refers to the rows, so they stay without the owner's names.
  await transaction.apiKey.updateMany({ where, data: { name: "", redirectUrls: [], restrictsModels: true, allowedModels: [] } });
  const sessions = await transaction.session.findMany({ where, select: { id: true } });
  await transaction.session.deleteMany({ where });
  await transaction.signInMethod.deleteMany({ where });
  await transaction.webhookEndpoint.deleteMany({ where });
  await transaction.preset.deleteMany({ where });
  await transaction.alert.deleteMany({ where });
  await transaction.alertRule.deleteMany({ where });
  await transaction.alertSilence.deleteMany({ where });
  await transaction.vendorKey.deleteMany({ where });
  await transaction.usageLimit.deleteMany({ where });
  // Before a payment method is charged once more.
  await transaction.autoTopUp.deleteMany({ where });
  const models = await transaction.communityModel.findMany({ where, select: { id: true } });
  const modelIds = models.map(({ id }) => id);
  await transaction.communityModel.deleteMany({ where });
  await transaction.communityModelHealth.deleteMany({ where: { modelId: { in: modelIds } } });
  await transaction.authorizationRequest.deleteMany({ where });
  await transaction.authorizationCode.deleteMany({ where });
  await transaction.deviceAuthorization.deleteMany({ where });
  return { keyIds: keys.map(({ id }) => id), sessionIds: sessions.map(({ id }) => id), modelIds };
}

/** Expires files and kept answers now; the sweep of expired ones deletes their bytes. Stored responses are deleted at once. */
async function endFiles(transaction: Transaction, accountId: string, now: Date): Promise<void> {
  const files = await transaction.mediaObject.findMany({ where: { accountId }, select: { id: true } });
  await transaction.mediaTag.deleteMany({ where: { media: { accountId } } });
  if (files.length > 0) await transaction.mediaObject.updateMany({ where: { accountId }, data: { expiresAt: now, name: null, tags: [] } });
  // A file that was uploaded more than once may also belong to another account: it keeps its expiry, and loses its name.
  await transaction.$executeRaw`
    UPDATE media_file SET name = NULL,
      expires_at = CASE WHEN expires_at <= created_at + make_interval(days => ${MEDIA_FILE_DAYS}) THEN least(expires_at, ${now}) ELSE expires_at END
    WHERE account_id = ${accountId}::uuid`;
  await transaction.idempotentRequest.updateMany({ where: { accountId, status: "done" }, data: { expiresAt: now } });
  await transaction.generationJob.updateMany({ where: { accountId, finishedAt: { not: null } }, data: { expiresAt: now } });
  await transaction.storedResponse.deleteMany({ where: { accountId } });
  await transaction.conversation.deleteMany({ where: { accountId } });
}

/** A unique handle that cannot be guessed. */
function namelessHandle(): string {
  return `deleted-${randomBytes(15).toString("hex")}`;
}
