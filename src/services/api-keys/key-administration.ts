/** Keys of any account, as operators revoke them (docs/spec/accounts.md#operators). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { type Database, lockAccountRow } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import { storableText } from "../requests/input.js";
import { inTreeOf } from "./api-key-tree.js";
import { REVOCATION_REASON_CHARS_MAX } from "./limits.js";

export const revokeAnyApiKeyInput = z.strictObject({
  apiKeyId: z.uuid(),
  reason: storableText.trim().max(REVOCATION_REASON_CHARS_MAX).nullish(),
});
export type RevokeAnyApiKeyInput = z.output<typeof revokeAnyApiKeyInput>;

export class KeyAdministration {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly clock: Clock,
    /** Of the account whose key starts this gateway. */
    private readonly ownerHandle: string,
  ) {}

  /**
   * Revokes a key of any account, with the keys that were made with it, for accounts that are suspended too. Returns the account's ID.
   * Rejects with NOT_FOUND, also for a revoked key, and with CONFLICT for the calling key, and for others for keys of the owner's
   * account, one of which starts this gateway.
   */
  async revoke(ctx: RequestContext, { apiKeyId, reason }: RevokeAnyApiKeyInput): Promise<string> {
    const caller = requireOperator(ctx);
    // An operator may have no other way in.
    if (caller.kind === "key" && caller.apiKeyId === apiKeyId)
      throw conflict("The calling key cannot revoke itself: use another key or a session.");
    const { accountId, ended } = await this.database.prisma.$transaction(async (transaction) => {
      const found = await transaction.apiKey.findUnique({
        where: { id: apiKeyId },
        select: { accountId: true, account: { select: { handle: true } } },
      });
      if (!found) throw notFound("API key");
      if (found.account.handle === this.ownerHandle && found.accountId !== caller.accountId)
        throw conflict("A key of the owner's account is revoked by the owner: its key starts this gateway.");
      // As the ledger does: the account before its keys.
      await lockAccountRow(transaction, found.accountId);
      const revoked = await transaction.apiKey.updateManyAndReturn({
        where: { ...inTreeOf(apiKeyId), revokedAt: null },
        data: { revokedAt: this.clock.now() },
        select: { id: true },
      });
      if (!revoked.some(({ id }) => id === apiKeyId)) throw notFound("API key");
      const ids = revoked.map(({ id }) => id);
      const facts = { before: { isRevoked: false }, after: { isRevoked: true, apiKeyIds: ids } };
      await recordAct(transaction, ctx, {
        act: "revoke_api_key",
        accountId: found.accountId,
        objectId: apiKeyId,
        ...facts,
        reason: reason || null,
      });
      return { accountId: found.accountId, ended: ids };
    });
    for (const id of ended) this.events.publish("api-key-changed", { accountId, apiKeyId: id, change: "revoked" });
    ctx.log.info({ accountId, keyId: apiKeyId }, "an operator revoked a key");
    return accountId;
  }
}
