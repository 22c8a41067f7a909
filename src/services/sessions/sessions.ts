/** Sessions of signed-in people: look-up, list and end (docs/spec/sessions.md#sessions). Only a session manages sessions. */
import type { RequestContext, SessionCaller } from "../../context.js";
import { notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import { type Events, listenOrDoubt } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { SessionModel } from "../../store/generated/prisma/models.js";
import { requireSession } from "../access/permissions.js";
import type { SessionCookie } from "./csrf-tokens.js";
import { SESSIONS_PER_ACCOUNT_MAX } from "./limits.js";
import type { SessionDirectory } from "./session-directory.js";

/** Columns of a session that its owner sees: never the token. */
const SHOWN = { id: true, createdAt: true, expiresAt: true, userAgent: true, ipAddress: true } as const;
const IDENTITY = { id: true, createdAt: true } as const;

export type SelectedSession = Pick<SessionModel, keyof typeof IDENTITY>;

export interface SessionRow extends Pick<SessionModel, keyof typeof SHOWN> {
  /** True for the calling session. */
  readonly isCurrent: boolean;
}

/** Selects sessions of an account; all by default. */
interface Which {
  readonly id?: string | { readonly not: string };
}

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

  /** Calls `listener` when the session ends, or when an event may have been missed, until the returned function is called. */
  onChanged(sessionId: string, listener: () => void): () => void {
    return listenOrDoubt(this.events, "session-changed", (event) => event.sessionId === sessionId, listener);
  }

  /** Lists the account's sessions, newest first. */
  async list<Column extends keyof SessionModel>(
    ctx: RequestContext,
    page: PageRequest,
    select: Readonly<Record<Column, true>>,
  ): Promise<Page<SelectedSession & Pick<SessionModel, Column>>>;
  async list(ctx: RequestContext, page: PageRequest, select: Prisma.SessionSelect): Promise<Page<SelectedSession>>;
  async list(ctx: RequestContext, page: PageRequest, select: Prisma.SessionSelect): Promise<Page<SelectedSession>> {
    const where = this.live(requireSession(ctx));
    const { session } = this.database.prisma;
    const { where: older, ...query } = newestFirst(page);
    const rows = await session.findMany({ where: { ...where, ...older }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => session.count({ where, take: COUNT_TAKE }));
  }

  /** Returns all sessions of the account, newest first. */
  async all(ctx: RequestContext): Promise<readonly SessionRow[]> {
    const { items } = await this.list(ctx, { first: SESSIONS_PER_ACCOUNT_MAX }, SHOWN);
    return items.map((row) => ({ ...row, isCurrent: this.isCurrent(ctx, row.id) }));
  }

  /** True for the calling session. */
  isCurrent({ caller }: RequestContext, id: string): boolean {
    return caller.kind === "session" && caller.sessionId === id;
  }

  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.SessionSelect): Promise<SelectedSession[]> {
    const where = { ...this.live(requireSession(ctx)), id: { in: ids.filter(isUuid) } };
    return this.database.prisma.session.findMany({ where, select: { ...select, ...IDENTITY } });
  }

  /** Ends a session of the account, which may be the calling one. */
  async revoke(ctx: RequestContext, id: string, select: Prisma.SessionSelect = {}): Promise<SelectedSession> {
    const { accountId } = requireSession(ctx);
    const [ended] = isUuid(id) ? await this.end(accountId, { id }, select) : [];
    if (!ended) throw notFound("session");
    return ended;
  }

  /** Ends every session of the account but the calling one. */
  async revokeOthers(ctx: RequestContext, select: Prisma.SessionSelect = {}): Promise<SelectedSession[]> {
    const { accountId, sessionId } = requireSession(ctx);
    return this.end(accountId, { id: { not: sessionId } }, select);
  }

  /** Ends the calling session, or all of the account's. Returns the `Set-Cookie` line that removes the cookie. */
  async signOut(
    ctx: RequestContext,
    { isEverywhere = false } = {},
    select: Prisma.SessionSelect = {},
  ): Promise<{ readonly ended: readonly SelectedSession[]; readonly cookies: readonly string[] }> {
    const { accountId, sessionId } = requireSession(ctx);
    const ended = await this.end(accountId, isEverywhere ? {} : { id: sessionId }, select);
    return { ended, cookies: [this.cookie.clear()] };
  }

  /** Ends the selected sessions of an account, for callers with checks of their own. Returns them, newest first. */
  async end(accountId: string, which: Which = {}, select: Prisma.SessionSelect = {}): Promise<SelectedSession[]> {
    const { session } = this.database.prisma;
    const ended = await session.findMany({
      where: { accountId, ...which },
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
      select: { ...select, ...IDENTITY },
    });
    await session.deleteMany({ where: { id: { in: ended.map(({ id }) => id) } } });
    announceEnded(
      this.events,
      accountId,
      ended.map(({ id }) => id),
    );
    return ended;
  }

  /** Ends the least recently used sessions beyond the bound, and deletes expired ones. */
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

  private live({ accountId }: SessionCaller) {
    return { accountId, expiresAt: { gt: this.clock.now() } };
  }
}

/** Deletes all sessions of an account in a transaction. Returns their IDs, to be announced once it is committed. */
export async function deleteSessions({ session }: Pick<DatabaseClient, "session">, accountId: string): Promise<string[]> {
  const sessions = await session.findMany({ where: { accountId }, select: { id: true } });
  const ids = sessions.map(({ id }) => id);
  await session.deleteMany({ where: { id: { in: ids } } });
  return ids;
}

/** Drops the sessions from the caches of all processes, and ends their connections. */
export function announceEnded(events: Events, accountId: string, ids: readonly string[]): void {
  for (const sessionId of ids) events.publish("session-changed", { accountId, sessionId });
}
