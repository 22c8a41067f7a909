/**
 * Connected apps: outside accounts that a person has opened to this gateway (docs/spec/connected-apps.md). A broker holds the connections;
 * this service checks permissions.
 *
 * 1. `connect` begins a connection. The answer holds the broker's page, on which a person signs in to the app and approves.
 * 2. The broker redirects that person to our callback page; `outcome` is its content. The address of that page is signed, because the
 *    person need not be signed in here.
 * 3. `list` says which connections can be used; `delete` ends one.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { requireKeyManager } from "../access/permissions.js";
import type { ConnectedApp, IntegrationsBroker, NewConnection, Toolkit } from "./broker.js";
import { CONNECTION_RETURN_SECONDS, TOOLKIT_CHARS_MAX, TOOLKIT_SEARCH_CHARS_MAX } from "./limits.js";
import type { SignedLinks } from "./signed-links.js";

export const connectIntegrationInput = z.strictObject({
  toolkit: z
    .string()
    .min(1)
    .max(TOOLKIT_CHARS_MAX)
    .regex(/^[a-z0-9_-]+$/, "may only hold small letters, digits, _ and -"),
});
export type ConnectIntegrationInput = z.output<typeof connectIntegrationInput>;

export const listToolkitsInput = z.object({
  search: z.string().max(TOOLKIT_SEARCH_CHARS_MAX).optional().describe("Words that must all occur."),
});
export type ListToolkitsInput = z.output<typeof listToolkitsInput>;

/** Content of the callback link: account, toolkit, and until when (epoch seconds) the page shows the outcome. */
export const callbackLink = z.object({ accountId: z.uuid(), toolkit: z.string(), until: z.int() });
export type CallbackLink = z.output<typeof callbackLink>;

export interface ConnectionReturn {
  readonly state: string;
  /** The connection's id, if the broker sends it. */
  readonly connection?: string | undefined;
}

export interface ConnectionOutcome {
  readonly toolkit: string;
  readonly handle: string;
  /** True: the caller is signed in to another account. */
  readonly isForeign: boolean;
  /** Null: there is none of the toolkit, or several and the broker names none. */
  readonly app: ConnectedApp | null;
  readonly apps: readonly ConnectedApp[];
}

export interface IntegrationsDependencies {
  readonly broker: IntegrationsBroker;
  readonly links: SignedLinks<CallbackLink>;
  readonly database: Database;
  readonly clock: Clock;
  readonly callbackPageUrl: () => string;
}

export class Integrations {
  constructor(private readonly deps: IntegrationsDependencies) {}

  async list(ctx: RequestContext): Promise<readonly ConnectedApp[]> {
    const { accountId } = requireKeyManager(ctx);
    return this.deps.broker.listConnections(accountId, ctx.signal);
  }

  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<ConnectedApp[]> {
    return (await this.list(ctx)).filter(({ id }) => ids.includes(id));
  }

  async listToolkits(ctx: RequestContext, { search = "" }: ListToolkitsInput): Promise<readonly Toolkit[]> {
    requireKeyManager(ctx);
    return this.deps.broker.listToolkits(search.trim(), ctx.signal);
  }

  /** Step 1. Rejects with BAD_REQUEST for an unknown toolkit, CONFLICT when the account has too many connections. */
  async connect(ctx: RequestContext, { toolkit }: ConnectIntegrationInput): Promise<NewConnection> {
    const { accountId } = requireKeyManager(ctx);
    const { broker, callbackPageUrl, clock, links } = this.deps;
    const until = Math.floor(clock.now().getTime() / 1000) + CONNECTION_RETURN_SECONDS;
    const callbackUrl = `${callbackPageUrl()}?state=${links.sign({ accountId, toolkit, until })}`;
    return broker.connect({ accountId, toolkit, callbackUrl }, ctx.signal);
  }

  /** Ends a connection and returns it. Rejects with NOT_FOUND. */
  async delete(ctx: RequestContext, id: string): Promise<ConnectedApp> {
    const { accountId } = requireKeyManager(ctx);
    const ended = await this.deps.broker.disconnect(accountId, id, ctx.signal);
    if (!ended) throw notFound("connected app");
    return ended;
  }

  /** Step 2; the link is the credential: NOT_FOUND for a forged or expired one. Shows one account's connections only. */
  async outcome(ctx: RequestContext, { state, connection }: ConnectionReturn): Promise<ConnectionOutcome> {
    const link = this.deps.links.read(state);
    if (!link || link.until * 1000 <= this.deps.clock.now().getTime()) throw oldLink();
    const { accountId, toolkit } = link;
    const account = await this.deps.database.prisma.account.findUnique({ where: { id: accountId }, select: { handle: true } });
    if (!account) throw oldLink();
    const apps = (await this.deps.broker.listConnections(accountId, ctx.signal)).filter((app) => app.toolkit === toolkit);
    return {
      toolkit,
      handle: account.handle,
      isForeign: ctx.caller.kind === "session" && ctx.caller.accountId !== accountId,
      app: findReturned(apps, connection),
      apps,
    };
  }

  close(): Promise<void> {
    return this.deps.broker.close();
  }
}

/** The connection that the broker names, or else the only one. */
function findReturned(apps: readonly ConnectedApp[], id: string | undefined): ConnectedApp | null {
  if (id !== undefined) return apps.find((app) => app.id === id) ?? null;
  return apps.length === 1 ? (apps[0] ?? null) : null;
}

function oldLink(): AppError {
  return new AppError("NOT_FOUND", "This link is invalid or has expired. Check your connected apps, or start again.");
}
