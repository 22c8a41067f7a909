/**
 * The redirect flow (docs/spec/authorization.md): an app sends a person here, who decides on its permissions and budget.
 *
 * 1. `check`: the app, its request and the redirect address are checked before the sign-in. Errors are shown on our page, never
 *    sent to an address that is not trusted yet.
 * 2. `create`: the request is stored for the session that sees it.
 * 3. `approve` or `deny`: that session decides once. The stored request counts, and the choice within it; other form fields do not.
 * 4. The person is sent back with a key in the fragment or, where the app sent a challenge, with a code in the query, which the app
 *    exchanges (authorization-codes.ts).
 */
import * as z from "zod";
import type { RequestContext, SessionCaller } from "../../context.js";
import { AppError, conflict, invalidInput, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { AuthorizationRequestModel } from "../../store/generated/prisma/models.js";
import { requireSession } from "../access/permissions.js";
import type { ProtectedResources } from "../access/protected-resources.js";
import type { Accounts } from "../accounts/accounts.js";
import type { ApiKeys, KeyGrant } from "../api-keys/api-keys.js";
import {
  fromStoredTerms,
  type GrantChoice,
  type GrantTerms,
  grantableBudget,
  grantChoice,
  narrowTerms,
  type StoredTerms,
  toRequestedTerms,
  toStoredTerms,
} from "../api-keys/grant-terms.js";
import type { KeyWriter } from "../api-keys/key-maker.js";
import { isRegistered, parseRedirectUrl, type RedirectUrl, withFragment, withQuery } from "../api-keys/redirect-url.js";
import type { Catalog } from "../catalog/catalog.js";
import type { RefusedFunds } from "../credits/refused-funds.js";
import type { App, Apps } from "./apps.js";
import type { AuthorizationCodes } from "./authorization-codes.js";
import type { UnverifiedClient } from "./client-metadata.js";
import type { AskingClient, Clients } from "./clients.js";
import { AUTHORIZATION_REQUEST_MINUTES, AUTHORIZATION_REQUESTS_OPEN_MAX } from "./limits.js";
import type { AuthorizationInput } from "./request-input.js";

export const approveAuthorizationInput = grantChoice.extend({ id: z.uuid() });
export type ApproveAuthorizationInput = z.output<typeof approveAuthorizationInput>;

export const denyAuthorizationInput = z.strictObject({ id: z.uuid() });
export type DenyAuthorizationInput = z.output<typeof denyAuthorizationInput>;

/** An app's request, as shown to a person. */
export interface AuthorizationRequest {
  readonly id: string;
  /** Null: the app did not identify itself by an app key. */
  readonly app: App | null;
  /** Null: the app has an app key, or did not identify itself. */
  readonly client: UnverifiedClient | null;
  readonly redirect: RedirectUrl;
  /** The address that the key is for; null: not bound to one. */
  readonly resource: string | null;
  /** True: the app's owner, or the client, registered this address. */
  readonly isRedirectRegistered: boolean;
  readonly asked: GrantTerms;
  /** Nanocredits: the most that can be granted now. 0: the account is empty. */
  readonly creditBudgetMax: bigint;
  readonly expiresAt: Date;
  /** Null: not decided. */
  readonly decidedAt: Date | null;
}

/** The result of a decision. */
export interface AuthorizationAnswer {
  /** The decided request. */
  readonly request: AuthorizationRequest;
  /** The app's address with the key or code in it: do not store it. */
  readonly redirectTo: string;
}

export interface AuthorizationsParts {
  readonly database: Database;
  readonly accounts: Pick<Accounts, "balanceOf">;
  readonly apiKeys: ApiKeys;
  readonly apps: Apps;
  readonly clients: Clients;
  readonly resources: ProtectedResources;
  readonly codes: AuthorizationCodes;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly funds: Pick<RefusedFunds, "topUp" | "topUpUrl">;
  /** The authorization host's address, as clients know it (RFC 8414, RFC 9207). */
  readonly issuer: () => string;
}

interface StoredRequest {
  readonly redirectUrl: string;
  readonly appKeyId: string | null;
  /** Absent in requests that an older process stored, as is `resource`. */
  readonly client?: UnverifiedClient | null;
  readonly resource?: string | null;
  readonly terms: StoredTerms;
  readonly state: string | null;
  readonly codeChallenge: string | null;
}

/** A valid request, before a session sees it. */
export type CheckedRequest = Pick<AuthorizationRequest, "app" | "client" | "redirect" | "isRedirectRegistered" | "resource" | "asked">;
type DecisionTransaction = Pick<DatabaseClient, "authorizationRequest" | "authorizationCode"> & KeyWriter;

export class Authorizations {
  constructor(private readonly parts: AuthorizationsParts) {}

  get issuer(): string {
    return this.parts.issuer();
  }

  /** Step 1, without credentials. Rejects with BAD_REQUEST. */
  async check(ctx: RequestContext, input: AuthorizationInput): Promise<CheckedRequest> {
    return this.examine(ctx, input);
  }

  /** Step 2. Rejects with BAD_REQUEST. */
  async create(ctx: RequestContext, input: AuthorizationInput): Promise<AuthorizationRequest> {
    const { accountId, sessionId } = requireSession(ctx);
    const checked = await this.examine(ctx, input);
    const { app, client, redirect, resource, asked } = checked;
    const { authorizationRequest } = this.parts.database.prisma;
    const now = this.parts.clock.now();
    const { state, codeChallenge } = input;
    const asking = { redirectUrl: redirect.text, appKeyId: app?.id ?? null, client, resource };
    const request = { ...asking, terms: toStoredTerms(asked), state, codeChallenge };
    await this.tidy(sessionId, now);
    const row = await authorizationRequest.create({
      data: {
        id: createId(),
        accountId,
        sessionId,
        request: request satisfies StoredRequest as object,
        createdAt: now,
        expiresAt: new Date(now.getTime() + AUTHORIZATION_REQUEST_MINUTES * 60_000),
      },
    });
    return toRequest(row, checked, await this.balanceOf(row));
  }

  /** Returns a request that this session may decide. Rejects with NOT_FOUND for another session's, CONFLICT when it is decided. */
  async get(ctx: RequestContext, id: string): Promise<AuthorizationRequest> {
    const row = await this.findOpen(requireSession(ctx), id);
    const checked = await this.examineAgain(toStoredRequest(row));
    return toRequest(row, checked, await this.balanceOf(row));
  }

  /** Returns requests by id that wait for this session's decision and whose app still exists. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<AuthorizationRequest[]> {
    const { accountId, sessionId } = requireSession(ctx);
    const where = {
      ...{ id: { in: ids.filter(isUuid) }, accountId, sessionId },
      ...{ decidedAt: null, expiresAt: { gt: this.parts.clock.now() } },
    };
    const rows = await this.parts.database.prisma.authorizationRequest.findMany({ where });
    const requests = rows.map(async (row) => {
      const checked = await this.examineAgain(toStoredRequest(row)).catch(nullIfRefused);
      return checked ? [toRequest(row, checked, await this.balanceOf(row))] : [];
    });
    return (await Promise.all(requests)).flat();
  }

  /**
   * Step 3. Rejects with BAD_REQUEST for a choice wider than the request or a budget beyond the balance, NOT_FOUND, CONFLICT for a second
   * decision, or INSUFFICIENT_BALANCE for an empty account.
   */
  async approve(ctx: RequestContext, { id, ...choice }: ApproveAuthorizationInput): Promise<AuthorizationAnswer> {
    const caller = requireSession(ctx);
    const row = await this.findOpen(caller, id);
    const checked = await this.examineAgain(toStoredRequest(row));
    const { app, client, redirect, resource, asked } = checked;
    const balance = await this.balanceOf(row);
    const { catalog, funds } = this.parts;
    const grant: KeyGrant = {
      accountId: caller.accountId,
      origin: "redirect_flow",
      appKeyId: app?.id ?? null,
      name: app?.name ?? client?.name ?? redirect.host,
      resource,
      terms: narrowTerms((model) => catalog.known(caller, model, "models"), asked, choice satisfies GrantChoice, balance, funds),
    };
    const { codes, apiKeys } = this.parts;
    const { codeChallenge, state } = toStoredRequest(row);
    if (codeChallenge !== null) {
      const { decidedAt, result: code } = await this.decide(id, (transaction) =>
        codes.issue({ grant, clientId: client?.id ?? null, redirectUrl: redirect.text, codeChallenge }, transaction),
      );
      const redirectTo = withQuery(redirect.text, toParameters({ code, state, iss: this.issuer }));
      return { request: toRequest({ ...row, decidedAt }, checked, balance), redirectTo };
    }
    const { decidedAt, result: minted } = await this.decide(id, (transaction) => apiKeys.mintGranted(grant, transaction));
    apiKeys.announceGranted(grant.accountId, minted.apiKey.id);
    const redirectTo = withFragment(redirect.text, toParameters({ api_key: minted.key, state }));
    return { request: toRequest({ ...row, decidedAt }, checked, balance), redirectTo };
  }

  /** Step 3. Rejects as `approve` does. */
  async deny(ctx: RequestContext, { id }: DenyAuthorizationInput): Promise<AuthorizationAnswer> {
    const row = await this.findOpen(requireSession(ctx), id);
    const { codeChallenge, state } = toStoredRequest(row);
    const checked = await this.examineAgain(toStoredRequest(row));
    const { redirect } = checked;
    const balance = await this.balanceOf(row);
    const { decidedAt } = await this.decide(id, async () => undefined);
    const request = toRequest({ ...row, decidedAt }, checked, balance);
    const refusal = { error: "access_denied", state };
    const fragment = withFragment("", toParameters(refusal));
    // The refusal goes into the fragment by decision, and for OAuth clients also into the query (RFC 6749 4.1.2.1).
    if (codeChallenge === null) return { request, redirectTo: redirect.text + fragment };
    return { request, redirectTo: withQuery(redirect.text, toParameters({ ...refusal, iss: this.issuer })) + fragment };
  }

  private balanceOf({ accountId }: Pick<AuthorizationRequestModel, "accountId">): Promise<bigint> {
    return this.parts.accounts.balanceOf(accountId);
  }

  /** Deletes expired requests, and the oldest of a session that has too many. */
  private async tidy(sessionId: string, now: Date): Promise<void> {
    const { authorizationRequest } = this.parts.database.prisma;
    await authorizationRequest.deleteMany({ where: { expiresAt: { lte: now } } });
    const surplus = await authorizationRequest.findMany({
      where: { sessionId },
      orderBy: { createdAt: "desc" },
      skip: AUTHORIZATION_REQUESTS_OPEN_MAX - 1,
      select: { id: true },
    });
    if (surplus.length > 0) await authorizationRequest.deleteMany({ where: { id: { in: surplus.map(({ id }) => id) } } });
  }

  private async examine(
    ctx: RequestContext,
    { redirectUrl, clientId, resource, terms, codeChallenge }: AuthorizationInput,
  ): Promise<CheckedRequest> {
    const redirect = parseRedirectUrl(redirectUrl, "redirectUrl");
    const asking = await this.parts.clients.identify(ctx, clientId, redirect);
    // Their metadata promises a code; a key in the address is for app keys alone.
    if (asking.client !== null && codeChallenge === null) {
      throw invalidInput("An app without an app key must send a code_challenge (PKCE, S256).", "codeChallenge");
    }
    return {
      ...trusted(asking, redirect),
      resource: resource === null ? null : this.readResource(resource),
      asked: toRequestedTerms((name) => this.parts.catalog.known(ctx.caller, name, "models"), terms, asking.app?.marginPercent ?? 0),
    };
  }

  private readResource(text: string): string {
    const { resources } = this.parts;
    const resource = resources.read(text);
    if (resource === null) throw invalidInput(resources.refusal, "resource");
    return resource;
  }

  /** Checks the request again: the app may have been revoked, or have registered other addresses. */
  private async examineAgain({ redirectUrl, appKeyId, client = null, resource = null, terms }: StoredRequest): Promise<CheckedRequest> {
    const app = appKeyId === null ? null : await this.parts.apps.find({ id: appKeyId });
    if (appKeyId !== null && app === null) throw invalidInput("The app key was revoked. Return to the app and start again.");
    return { ...trusted({ app, client }, parseRedirectUrl(redirectUrl, "redirectUrl")), resource, asked: fromStoredTerms(terms) };
  }

  private async findOpen({ accountId, sessionId }: SessionCaller, id: string): Promise<AuthorizationRequestModel> {
    const row = isUuid(id)
      ? await this.parts.database.prisma.authorizationRequest.findUnique({ where: { id, accountId, sessionId } })
      : null;
    if (!row || row.expiresAt <= this.parts.clock.now())
      throw notFound("authorization request, or it has expired: go back to the app and begin again");
    if (row.decidedAt !== null) throw decided();
    return row;
  }

  /** Stores the decision and its results together, once. */
  private decide<Result>(
    id: string,
    follow: (transaction: DecisionTransaction) => Promise<Result>,
  ): Promise<{ readonly decidedAt: Date; readonly result: Result }> {
    const { database, clock } = this.parts;
    const decidedAt = clock.now();
    return database.prisma.$transaction(async (transaction) => {
      const { count } = await transaction.authorizationRequest.updateMany({ where: { id, decidedAt: null }, data: { decidedAt } });
      if (count === 0) throw decided();
      return { decidedAt, result: await follow(transaction) };
    });
  }
}

function toRequest(
  { id, expiresAt, decidedAt }: Pick<AuthorizationRequestModel, "id" | "expiresAt" | "decidedAt">,
  checked: CheckedRequest,
  balance: bigint,
): AuthorizationRequest {
  return { id, ...checked, creditBudgetMax: grantableBudget(checked.asked, balance), expiresAt, decidedAt };
}

function nullIfRefused(error: unknown): null {
  if (error instanceof AppError && error.code === "BAD_REQUEST") return null;
  throw error;
}

/** An app with registered addresses is redirected to those only, and so is a client. One whose document did not come has registered none. */
function trusted(
  { app, client }: AskingClient,
  redirect: RedirectUrl,
): Pick<CheckedRequest, "app" | "client" | "redirect" | "isRedirectRegistered"> {
  const registered = app?.redirectUrls ?? client?.redirectUrls ?? [];
  const isRedirectRegistered = isRegistered(registered, redirect);
  if (registered.length > 0 && !isRedirectRegistered) {
    throw invalidInput("The redirect URL is not one that this app has registered.", "redirectUrl");
  }
  return { app, client, redirect, isRedirectRegistered };
}

function toStoredRequest({ request }: AuthorizationRequestModel): StoredRequest {
  return request as unknown as StoredRequest;
}

/** Leaves out nulls. Writes spaces as `%20`, which every parser decodes alike. */
function toParameters(parameters: Readonly<Record<string, string | null>>): string {
  const stated = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== null);
  return stated.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

function decided(): Error {
  return conflict("This request was already approved or denied. Return to the app and start again.");
}
