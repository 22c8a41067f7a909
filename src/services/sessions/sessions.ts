/**
 * Sessions of signed-in people: who is behind one, which there are, and how each ends
 * (docs/spec/sessions.md#sessions). Only a session manages sessions.
 */
import type { RequestContext, SessionCaller } from "../../context.js";
import { notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import { type Events, listenOrDoubt } from "../../store/events.js";
import { requireSession } from "../access/permissions.js";
import type { SessionCookie } from "./csrf-tokens.js";
import { SESSIONS_PER_ACCOUNT_MAX } from "./limits.js";
import type { SessionDirectory } from "./session-directory.js";

export interface SessionRow {
  readonly id: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Of the browser that signed in, as it calls itself. */
  readonly userAgent: string | null;
  /** Where it signed in from. */
  readonly ipAddress: string | null;
  /** True for the session that asks. */
  readonly isCurrent: boolean;
}

const FIELDS = { id: true, createdAt: true, expiresAt: true, userAgent: true, ipAddress: true } as const;

export class Sessions {
  constructor(
    private readonly database: Database,
    private readonly directory: SessionDirectory,
    private readonly cookie: SessionCookie,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /** Null for a token that is unknown, expired or revoked. */
  find(token: string): Promise<SessionCaller | null> {
    return this.directory.find(token);
  }

  /** Calls `listener` whenever this session ends, or may have ended unheard, until the returned function is called. */
  onChanged(sessionId: string, listener: () => void): () => void {
    return listenOrDoubt(this.events, "session-changed", (event) => event.sessionId === sessionId, listener);
  }

  /** The account's own, newest first. */
  async list(ctx: RequestContext): Promise<readonly SessionRow[]> {
    const { accountId, sessionId } = requireSession(ctx);
    const rows = await this.database.prisma.session.findMany({
      where: { accountId, expiresAt: { gt: this.clock.now() } },
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
      take: SESSIONS_PER_ACCOUNT_MAX,
      select: FIELDS,
    });
    return rows.map((row) => ({ ...row, isCurrent: row.id === sessionId }));
  }

  /** Ends a session of the account, be it the one that asks. */
  async revoke(ctx: RequestContext, id: string): Promise<{ readonly id: string }> {
    const { accountId } = requireSession(ctx);
    if (!isUuid(id) || (await this.end(accountId, { id })).length === 0) throw notFound("session");
    return { id };
  }

  /** Ends every session of the account but the one that asks; answers how many there were. */
  async revokeOthers(ctx: RequestContext): Promise<number> {
    const { accountId, sessionId } = requireSession(ctx);
    return (await this.end(accountId, { id: { not: sessionId } })).length;
  }

  /** Ends the session that asks, or all of the account's. Answers the `Set-Cookie` line that makes the browser forget, too. */
  async signOut(
    ctx: RequestContext,
    { isEverywhere = false } = {},
  ): Promise<{ readonly ended: number; readonly cookies: readonly string[] }> {
    const { accountId, sessionId } = requireSession(ctx);
    const ended = await this.end(accountId, isEverywhere ? {} : { id: sessionId });
    return { ended: ended.length, cookies: [this.cookie.clear()] };
  }

  /** For what ends sessions by its own rules: those of the account that `which` selects, all of them unless it says. */
  async end(accountId: string, which: { readonly id?: string | { readonly not: string } } = {}): Promise<readonly string[]> {
    const { session } = this.database.prisma;
    const ids = (await session.findMany({ where: { accountId, ...which }, select: { id: true } })).map(({ id }) => id);
    await session.deleteMany({ where: { id: { in: ids } } });
    for (const sessionId of ids) this.events.publish("session-changed", { accountId, sessionId });
    return ids;
  }

  /** Makes room: ends what the account has above the bound, the least recently used first, and forgets what has expired. */
  async tidy(accountId: string): Promise<void> {
    const { session, verification } = this.database.prisma;
    const expired = { where: { expiresAt: { lte: this.clock.now() } } };
    await Promise.all([session.deleteMany(expired), verification.deleteMany(expired)]);
    const tooMany = await session.findMany({
      where: { accountId },
      orderBy: [{ updatedAt: "desc" }, { id: "desc" }],
      skip: SESSIONS_PER_ACCOUNT_MAX,
      select: { id: true },
    });
    for (const { id } of tooMany) await this.end(accountId, { id });
  }
}
