/** Sessions of any account, as operators end them (docs/spec/accounts.md#operators). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { notFound } from "../../errors.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import { storableText } from "../requests/input.js";
import { OPERATOR_REASON_CHARS_MAX } from "./limits.js";
import { announceEnded, deleteSessions } from "./sessions.js";

export const endSessionsInput = z.strictObject({
  accountId: z.uuid(),
  reason: storableText.trim().max(OPERATOR_REASON_CHARS_MAX).nullish(),
});
export type EndSessionsInput = z.output<typeof endSessionsInput>;

export class SessionAdministration {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
  ) {}

  /** Ends all sessions of an account. Returns their number. Rejects with NOT_FOUND. */
  async endAll(ctx: RequestContext, { accountId, reason }: EndSessionsInput): Promise<number> {
    requireOperator(ctx);
    const ended = await this.database.prisma.$transaction(async (transaction) => {
      if ((await transaction.account.count({ where: { id: accountId, deletion: null } })) === 0) throw notFound("account");
      const sessions = await deleteSessions(transaction, accountId);
      const facts = { before: { sessions: sessions.length }, after: { sessions: 0 } };
      await recordAct(transaction, ctx, { act: "end_sessions", accountId, ...facts, reason: reason || null });
      return sessions;
    });
    announceEnded(this.events, accountId, ended);
    ctx.log.info({ accountId, sessions: ended.length }, "an operator ended the sessions of an account");
    return ended.length;
  }
}
