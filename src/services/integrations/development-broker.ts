/**
 * The in-process broker for development: it stores connections as a real one does, and connects to nothing.
 *
 * 1. `connect` begins a connection and returns the address of its page, which is secret to the caller.
 * 2. `view`: a person opens the page, without script and without signing in, as owners of keys use it too. A person signed in to
 *    another account sees the owner and may not decide, because links can be forwarded.
 * 3. `decide`: that person approves or refuses, once, within ten minutes, and is redirected to the callback.
 * 4. `switchTo`: switches an approved connection off and on, to test a client.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError, conflict, permissionDenied } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { type Database, lockName } from "../../store/database.js";
import type { DevelopmentConnectionModel } from "../../store/generated/prisma/models.js";
import {
  type ConnectedApp,
  type ConnectedAppStatus,
  type IntegrationsBroker,
  type NewConnection,
  type RequestedConnection,
  type Toolkit,
  tooManyConnections,
  unknownToolkit,
} from "./broker.js";
import {
  CONNECTED_APPS_PER_ACCOUNT_MAX,
  CONNECTION_ALIAS_CHARS_MAX,
  DEVELOPMENT_CONNECTION_SECONDS,
  DEVELOPMENT_CONNECTIONS_SWEPT_AT_ONCE_MAX,
  ENDED_CONNECTION_KEPT_SECONDS,
} from "./limits.js";
import type { SignedLinks } from "./signed-links.js";

// Toolkits of the development broker: three names without an app (docs/spec/connected-apps.md#broker).

const DEVELOPMENT_TOOLKITS: readonly Toolkit[] = [
  { slug: "notes", name: "Notes", description: "Reads and writes short texts. For development: there are no notes behind it.", logo: null },
  { slug: "mail", name: "Mail", description: "Reads and sends messages. For development: there is no mailbox behind it.", logo: null },
  {
    slug: "calendar",
    name: "Calendar",
    description: "Reads and makes appointments. For development: there is no calendar behind it.",
    logo: null,
  },
];

/** Toolkits that contain every word of the search. */
function findDevelopmentToolkits(search: string): readonly Toolkit[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return DEVELOPMENT_TOOLKITS.filter(({ slug, name, description }) => {
    const text = `${slug} ${name} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** A connection may be older than this list. */
function developmentToolkitOf(slug: string): Toolkit {
  return DEVELOPMENT_TOOLKITS.find((toolkit) => toolkit.slug === slug) ?? { slug, name: slug, description: "", logo: null };
}

/** Content of a connection's link. */
export const connectionLink = z.object({ id: z.uuid(), callbackUrl: z.url() });
export type ConnectionLink = z.output<typeof connectionLink>;

export const connectionChoice = z.object({
  isApproved: z.boolean(),
  /** Empty: none. */
  alias: z.string().trim().max(CONNECTION_ALIAS_CHARS_MAX).optional(),
});
export type ConnectionChoice = z.output<typeof connectionChoice>;

export interface ConnectionView {
  readonly app: ConnectedApp;
  readonly handle: string;
  /** True: the caller is signed in to another account. */
  readonly isForeign: boolean;
  /** Until when it can be approved; null afterwards. */
  readonly expiresAt: Date | null;
  readonly callbackUrl: string;
}

export interface DevelopmentBrokerDependencies {
  readonly database: Database;
  readonly links: SignedLinks<ConnectionLink>;
  readonly clock: Clock;
  readonly pageUrl: () => string;
  /** False: another broker is configured, and the pages do not exist. */
  readonly isInUse: boolean;
}

export class DevelopmentBroker implements IntegrationsBroker {
  constructor(private readonly deps: DevelopmentBrokerDependencies) {}

  async listToolkits(search: string): Promise<readonly Toolkit[]> {
    return findDevelopmentToolkits(search);
  }

  /** Oldest first. */
  async listConnections(accountId: string): Promise<readonly ConnectedApp[]> {
    const rows = await this.rows.findMany({ where: { accountId }, orderBy: [{ createdAt: "asc" }, { id: "asc" }] });
    return rows.map((row) => this.toApp(row));
  }

  async connect({ accountId, toolkit, callbackUrl }: RequestedConnection): Promise<NewConnection> {
    if (!DEVELOPMENT_TOOLKITS.some(({ slug }) => slug === toolkit)) throw unknownToolkit(toolkit);
    const id = createId();
    const createdAt = this.deps.clock.now();
    const expiresAt = new Date(createdAt.getTime() + DEVELOPMENT_CONNECTION_SECONDS * 1000);
    await this.deps.database.prisma.$transaction(async (transaction) => {
      // Two concurrent requests must not both create the last one allowed.
      await lockName(transaction, `connected apps of ${accountId}`);
      const there = await transaction.developmentConnection.count({ where: { accountId } });
      if (there >= CONNECTED_APPS_PER_ACCOUNT_MAX) throw tooManyConnections();
      await transaction.developmentConnection.create({ data: { id, accountId, toolkit, createdAt, expiresAt } });
    });
    const token = this.deps.links.sign({ id, callbackUrl });
    return { id, url: `${this.deps.pageUrl()}?token=${token}` };
  }

  async disconnect(accountId: string, id: string): Promise<ConnectedApp | null> {
    if (!isUuid(id)) return null;
    const row = await this.rows.findUnique({ where: { id, accountId } });
    const { count } = await this.rows.deleteMany({ where: { id, accountId } });
    return row && count > 0 ? this.toApp(row) : null;
  }

  async close(): Promise<void> {}

  /** Step 2; the link is the credential. Rejects with NOT_FOUND for a forged link, or when its connection is gone. */
  async view(ctx: RequestContext, token: string): Promise<ConnectionView> {
    const { id, callbackUrl } = this.readLink(token);
    const row = await this.rows.findUnique({ where: { id } });
    const account = row && (await this.deps.database.prisma.account.findUnique({ where: { id: row.accountId }, select: { handle: true } }));
    if (!row || !account) throw goneLink();
    const app = this.toApp(row);
    return {
      app,
      handle: account.handle,
      isForeign: ctx.caller.kind === "session" && ctx.caller.accountId !== row.accountId,
      expiresAt: app.status === "initiated" ? row.expiresAt : null,
      callbackUrl,
    };
  }

  /**
   * Step 3; resolves with the next address. Rejects as `view`; also FORBIDDEN for another account, CONFLICT when it is decided or too late.
   */
  async decide(ctx: RequestContext, token: string, { isApproved, alias }: ConnectionChoice): Promise<string> {
    const { app, callbackUrl } = await this.viewOwn(ctx, token);
    const { count } = await this.rows.updateMany({
      where: { id: app.id, status: "initiated", expiresAt: { gt: this.deps.clock.now() } },
      // A refused one keeps its expiry, after which it is deleted.
      data: isApproved ? { status: "active", alias: alias || null, expiresAt: null } : { status: "failed" },
    });
    if (count === 0) throw conflict("This connection was already approved or denied, or has expired.");
    const url = new URL(callbackUrl);
    url.searchParams.set("connection", app.id);
    return url.href;
  }

  /** Step 4; as `decide`: CONFLICT when it was never approved. */
  async switchTo(ctx: RequestContext, token: string, status: "active" | "inactive"): Promise<void> {
    const { app } = await this.viewOwn(ctx, token);
    const { count } = await this.rows.updateMany({ where: { id: app.id, status: { in: ["active", "inactive"] } }, data: { status } });
    if (count === 0) throw conflict("This connection has not been approved.");
  }

  /** Deletes connections unapproved for a day, and those of deleted accounts; resolves with their number. */
  async sweep(): Promise<number> {
    const before = new Date(this.deps.clock.now().getTime() - ENDED_CONNECTION_KEPT_SECONDS * 1000);
    return this.deps.database.prisma.$executeRaw`
      DELETE FROM development_connection WHERE id IN (
        SELECT id FROM development_connection AS connection
        WHERE expires_at < ${before} OR NOT EXISTS (SELECT FROM account WHERE account.id = connection.account_id)
        LIMIT ${DEVELOPMENT_CONNECTIONS_SWEPT_AT_ONCE_MAX} FOR UPDATE SKIP LOCKED)`;
  }

  private async viewOwn(ctx: RequestContext, token: string): Promise<ConnectionView> {
    const view = await this.view(ctx, token);
    if (view.isForeign) throw permissionDenied("This connection belongs to a different account.");
    return view;
  }

  private readLink(token: string): ConnectionLink {
    const link = this.deps.isInUse ? this.deps.links.read(token) : null;
    if (!link) throw goneLink();
    return link;
  }

  private toApp({ id, toolkit, alias, status, expiresAt }: DevelopmentConnectionModel): ConnectedApp {
    const { name, description, logo } = developmentToolkitOf(toolkit);
    const isLate = status === "initiated" && expiresAt !== null && expiresAt <= this.deps.clock.now();
    const shown: ConnectedAppStatus = isLate ? "expired" : status;
    return { id, toolkit, name, description, logo, alias, status: shown };
  }

  private get rows() {
    return this.deps.database.prisma.developmentConnection;
  }
}

function goneLink(): AppError {
  return new AppError("NOT_FOUND", "This link is invalid, or the connection was removed. Start the connection again.");
}
