/**
 * Connected apps: accounts elsewhere that a person has opened to this gateway (docs/spec/connected-apps.md). A broker
 * keeps the connections; here is who may ask it, and for whom.
 *
 * 1. `connect`: a connection is begun. The answer holds the broker's page, on which a person signs in to the app and approves.
 * 2. The broker sends that person to our callback page; `outcome` is what it tells. The address of that page is signed, because it is
 *    opened by whoever comes back, who need not be signed in here.
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

export const listToolkitsInput = z.object({ search: z.string().max(TOOLKIT_SEARCH_CHARS_MAX).optional() });
export type ListToolkitsInput = z.output<typeof listToolkitsInput>;

/** What the address of the callback page holds: what was begun, for whom, and until when (epoch seconds) it is told. */
export const callbackLink = z.object({ accountId: z.uuid(), toolkit: z.string(), until: z.int() });
export type CallbackLink = z.output<typeof callbackLink>;

export interface ConnectionReturn {
  readonly state: string;
  /** The connection's id, where the broker says it. */
  readonly connection?: string | undefined;
}

/** What has become of a connection. */
export interface ConnectionOutcome {
  readonly toolkit: string;
  /** Whose it is. */
  readonly handle: string;
  /** True: whoever is signed in has another account. */
  readonly isForeign: boolean;
  /** Null: there is none of the toolkit, or it is not known which of them it is. */
  readonly app: ConnectedApp | null;
  /** The account's connections of the toolkit. */
  readonly apps: readonly ConnectedApp[];
}

export interface IntegrationsDependencies {
  readonly broker: IntegrationsBroker;
  readonly links: SignedLinks<CallbackLink>;
  readonly database: Database;
  readonly clock: Clock;
  /** Of our callback page. */
  readonly callbackPageUrl: () => string;
}

export class Integrations {
  constructor(private readonly deps: IntegrationsDependencies) {}

  async list(ctx: RequestContext): Promise<readonly ConnectedApp[]> {
    const { accountId } = requireKeyManager(ctx);
    return this.deps.broker.listConnections(accountId, ctx.signal);
  }

  /** Those of the account with these ids. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<ConnectedApp[]> {
    return (await this.list(ctx)).filter(({ id }) => ids.includes(id));
  }

  async listToolkits(ctx: RequestContext, { search = "" }: ListToolkitsInput): Promise<readonly Toolkit[]> {
    requireKeyManager(ctx);
    return this.deps.broker.listToolkits(search.trim(), ctx.signal);
  }

  /** Step 1. BAD_REQUEST for a toolkit that there is not, CONFLICT when the account has as many connections as it may. */
  async connect(ctx: RequestContext, { toolkit }: ConnectIntegrationInput): Promise<NewConnection> {
    const { accountId } = requireKeyManager(ctx);
    const { broker, callbackPageUrl, clock, links } = this.deps;
    const until = Math.floor(clock.now().getTime() / 1000) + CONNECTION_RETURN_SECONDS;
    const callbackUrl = `${callbackPageUrl()}?state=${links.sign({ accountId, toolkit, until })}`;
    return broker.connect({ accountId, toolkit, callbackUrl }, ctx.signal);
  }

  /** Answers what was ended. NOT_FOUND. */
  async delete(ctx: RequestContext, id: string): Promise<ConnectedApp> {
    const { accountId } = requireKeyManager(ctx);
    const ended = await this.deps.broker.disconnect(accountId, id, ctx.signal);
    if (!ended) throw notFound("connected app");
    return ended;
  }

  /** Step 2; for whoever has the link: NOT_FOUND for one that was not made here or is too old. It shows one account's connections only. */
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

/** The one that the broker names; where it names none, the only one there is. */
function findReturned(apps: readonly ConnectedApp[], id: string | undefined): ConnectedApp | null {
  if (id !== undefined) return apps.find((app) => app.id === id) ?? null;
  return apps.length === 1 ? (apps[0] ?? null) : null;
}

function oldLink(): AppError {
  return new AppError("NOT_FOUND", "This link belongs to no connection, or is out of date. Look among your connected apps, or begin anew.");
}
