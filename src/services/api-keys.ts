/** API keys: created, listed, changed and revoked by their account (Spec 2.1, 4.5; decisions "Keys"). */

import { z } from "zod";
import type { AccountPermission, Caller, RequestContext } from "../context.js";
import { AppError, conflict, invalidInput, notFound, permissionDenied } from "../errors.js";
import { createApiKeyText, startOfApiKey } from "../lib/api-key-format.js";
import type { Clock } from "../lib/clock.js";
import { createId } from "../lib/ids.js";
import { type Page, type PageRequest, toPage } from "../lib/pagination.js";
import { API_KEYS_PER_ACCOUNT_MAX } from "../limits.js";
import type { Database, DatabaseClient } from "../store/database.js";
import type { Events } from "../store/events.js";
import type { ApiKeyModel } from "../store/generated/prisma/models.js";
import { isRunToken, type RunTokens } from "./agents/run-tokens.js";
import type { ApiKeyDirectory } from "./api-key-directory.js";
import type { CreateApiKeyInput, UpdateApiKeyInput } from "./api-keys-input.js";
import type { GrantTerms } from "./authorizations/grant-terms.js";
import { isKeyCaller, requireAccount, requireKeyManager } from "./permissions.js";

export interface ApiKeyRow {
  readonly id: string;
  readonly name: string;
  readonly type: "secret" | "publishable";
  readonly prefix: "sk" | "pk";
  readonly start: string;
  readonly permissions: readonly string[];
  /** Null: all models. */
  readonly allowedModels: readonly string[] | null;
  /** Nanocredits that remain; null: unlimited. */
  readonly creditBudget: bigint | null;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
  readonly origin: "created" | KeyGrant["origin"];
  /** The app that it was granted to, by its app key; null: none, or one that does not say who it is. */
  readonly app: { readonly id: string; readonly name: string } | null;
  /** Of an app key: where its flows may return to. Empty: anywhere that is safe. */
  readonly redirectUrls: readonly string[];
}

/** A key that is about to be made. */
interface NewKey extends Pick<ApiKeyRow, "name" | "type" | "permissions" | "allowedModels" | "creditBudget" | "redirectUrls"> {
  readonly accountId: string;
  /** Seconds; null: never. */
  readonly expiresIn: number | null;
  readonly origin?: KeyGrant["origin"];
  readonly appKeyId?: string | null;
}

export interface CurrentApiKey extends ApiKeyRow {
  readonly valid: true;
  /** Whole seconds left; null: does not expire. */
  readonly expiresIn: number | null;
  readonly rateLimitEnabled: boolean;
}

/** What a person has granted to an app. */
export interface KeyGrant {
  readonly accountId: string;
  readonly origin: "redirect_flow" | "device_flow";
  /** Null: the app has named none. */
  readonly appKeyId: string | null;
  /** The app's name, or the host that it is reached at. */
  readonly name: string;
  readonly terms: GrantTerms;
}

/** As much of a database client, or of a transaction, as making a key takes. */
export type KeyWriter = Pick<DatabaseClient, "apiKey">;

const SECONDS_PER_DAY = 24 * 60 * 60;

export class ApiKeys {
  constructor(
    private readonly database: Database,
    private readonly directory: ApiKeyDirectory,
    private readonly runTokens: Pick<RunTokens, "resolve">,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /** See ApiKeyDirectory.authenticate. A run token is accepted wherever a key is. */
  authenticate(key: string | null): Caller | Promise<Caller> {
    return key !== null && isRunToken(key) ? this.runTokens.resolve(key) : this.directory.authenticate(key);
  }

  /** Calls `listener` whenever this key is changed or revoked, or may have been unheard, until the returned function is called. */
  onChanged(apiKeyId: string, listener: () => void): () => void {
    const stopListening = this.events.listen("api-key-changed", (event) => {
      if (event.apiKeyId === apiKeyId) listener();
    });
    const stopDoubts = this.events.onDoubt(listener);
    return () => {
      stopListening();
      stopDoubts();
    };
  }

  async list(ctx: RequestContext, page: PageRequest): Promise<Page<ApiKeyRow>> {
    const { accountId } = requireKeyManager(ctx);
    const { after } = page;
    const rows = await this.database.prisma.apiKey.findMany({
      where: {
        accountId,
        revokedAt: null,
        ...(after && { OR: [{ createdAt: { lt: after.timestamp } }, { createdAt: after.timestamp, id: { lt: after.id } }] }),
      },
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
      take: page.first + 1,
    });
    return toPage(await this.toRows(rows), page.first);
  }

  /** The key's text is in this answer and nowhere else. */
  async create(ctx: RequestContext, input: CreateApiKeyInput): Promise<{ apiKey: ApiKeyRow; key: string }> {
    const caller = requireKeyManager(ctx);
    const { name, type, allowedModels = null, creditBudget = null, expiresIn = null } = input;
    if (isKeyCaller(caller)) await this.assertNotWider(caller.apiKeyId, { allowedModels, creditBudget, expiresIn });
    const permissions = grantablePermissions(input.accountPermissions ?? [], caller);
    const registered = registrableUrls(type, input.redirectUrls ?? []);
    const created = await this.insert(
      { accountId: caller.accountId, name, type, permissions, allowedModels, creditBudget, expiresIn, redirectUrls: registered },
      this.database.prisma,
    );
    this.events.publish("api-key-changed", { apiKeyId: created.apiKey.id });
    return created;
  }

  /** Makes the key of a grant. Not for faces: the flows call it once a person has agreed, and see to it that it is once. */
  mintGranted({ terms, ...grant }: KeyGrant, writer: KeyWriter): Promise<{ apiKey: ApiKeyRow; key: string }> {
    const { models: allowedModels, creditBudget, expiresInDays, permissions } = terms;
    const expiresIn = expiresInDays * SECONDS_PER_DAY;
    return this.insert({ ...grant, type: "secret", permissions, allowedModels, creditBudget, expiresIn, redirectUrls: [] }, writer);
  }

  /** Tells whoever listens of a granted key, once the transaction that made it has been committed. */
  announceGranted(apiKeyId: string): void {
    this.events.publish("api-key-changed", { apiKeyId });
  }

  /** Takes back the key of a grant that turns out to be stolen. Not for faces. */
  async revokeGranted(apiKeyId: string): Promise<void> {
    await this.database.prisma.apiKey.updateMany({ where: { id: apiKeyId, revokedAt: null }, data: { revokedAt: this.clock.now() } });
    this.events.publish("api-key-changed", { apiKeyId });
  }

  async update(ctx: RequestContext, id: string, input: UpdateApiKeyInput): Promise<ApiKeyRow> {
    const caller = requireKeyManager(ctx);
    const { type } = await this.findOwned(caller.accountId, id);
    if (isKeyCaller(caller)) {
      if (caller.apiKeyId === id) throw permissionDenied("A key cannot change itself.");
      await this.assertNotWider(caller.apiKeyId, input);
    }
    const { name, allowedModels, creditBudget, expiresIn } = input;
    const registered = input.redirectUrls === undefined ? undefined : registrableUrls(type, input.redirectUrls ?? []);
    // The budget first: whoever changes money takes the account's lock before any other.
    await this.database.prisma.$transaction([
      ...(creditBudget === undefined ? [] : [this.setBudget(caller.accountId, id, creditBudget)]),
      this.database.prisma.apiKey.update({
        where: { id },
        data: {
          ...(name !== undefined && { name }),
          ...(allowedModels !== undefined && { restrictsModels: allowedModels !== null, allowedModels: allowedModels ?? [] }),
          ...(expiresIn !== undefined && { expiresAt: this.expiry(expiresIn) }),
          ...(registered !== undefined && { redirectUrls: [...registered] }),
        },
      }),
    ]);
    this.events.publish("api-key-changed", { apiKeyId: id });
    return this.toRow(await this.findOwned(caller.accountId, id));
  }

  async revoke(ctx: RequestContext, id: string): Promise<ApiKeyRow> {
    const caller = requireKeyManager(ctx);
    await this.findOwned(caller.accountId, id);
    if (isKeyCaller(caller) && caller.apiKeyId === id)
      throw invalidInput("The key that authenticates the request cannot be revoked.", "id");
    const row = await this.database.prisma.apiKey.update({ where: { id }, data: { revokedAt: this.clock.now() } });
    this.events.publish("api-key-changed", { apiKeyId: id });
    return this.toRow(row);
  }

  /** The calling key itself; any type, no permission (Spec 5.5). */
  async current(ctx: RequestContext): Promise<CurrentApiKey> {
    const caller = requireAccount(ctx);
    if (!isKeyCaller(caller)) throw invalidInput("This request is authenticated by a session, not by a key.");
    const row = await this.toRow(await this.findOwned(caller.accountId, caller.apiKeyId));
    const millisecondsLeft = row.expiresAt === null ? null : row.expiresAt.getTime() - this.clock.now().getTime();
    const expiresIn = millisecondsLeft === null ? null : Math.max(0, Math.floor(millisecondsLeft / 1000));
    return { ...row, valid: true, expiresIn, rateLimitEnabled: row.type === "publishable" };
  }

  private async insert(key: NewKey, writer: KeyWriter): Promise<{ apiKey: ApiKeyRow; key: string }> {
    const { allowedModels, creditBudget, expiresIn, permissions, redirectUrls, ...columns } = key;
    const live = await writer.apiKey.count({ where: { accountId: key.accountId, revokedAt: null } });
    if (live >= API_KEYS_PER_ACCOUNT_MAX) throw conflict(`An account has at most ${API_KEYS_PER_ACCOUNT_MAX} keys.`);
    const text = createApiKeyText(key.type === "secret" ? "sk" : "pk");
    const row = await writer.apiKey.create({
      data: {
        ...columns,
        id: createId(),
        hash: new Uint8Array(this.directory.hash(text)),
        start: startOfApiKey(text),
        permissions: [...permissions],
        restrictsModels: allowedModels !== null,
        allowedModels: [...(allowedModels ?? [])],
        redirectUrls: [...redirectUrls],
        budgetNanocredits: creditBudget,
        expiresAt: this.expiry(expiresIn),
      },
    });
    return { apiKey: toApiKeyRow(row), key: text };
  }

  private async toRow(row: ApiKeyModel): Promise<ApiKeyRow> {
    const [shown] = await this.toRows([row]);
    if (!shown) throw new Error("One row in, none out.");
    return shown;
  }

  /** Apps are called as they are called now. */
  private async toRows(rows: readonly ApiKeyModel[]): Promise<ApiKeyRow[]> {
    const ids = [...new Set(rows.flatMap(({ appKeyId }) => appKeyId ?? []))];
    const apps =
      ids.length === 0 ? [] : await this.database.prisma.apiKey.findMany({ where: { id: { in: ids } }, select: { id: true, name: true } });
    const names = new Map(apps.map(({ id, name }) => [id, name]));
    return rows.map((row) => toApiKeyRow(row, names));
  }

  /** What remains is budget - spent; holds that are open are settled in full, so it is never set below them. */
  private setBudget(accountId: string, id: string, remaining: bigint | null) {
    return this.database.prisma.$queryRaw`SELECT credit_set_budget(${accountId}::uuid, ${id}::uuid, ${remaining}::bigint)`;
  }

  /** A key makes and changes no key to do more than itself: models, budget, expiry. A field that is undefined is left as it is. */
  private async assertNotWider(apiKeyId: string, wanted: UpdateApiKeyInput): Promise<void> {
    const own = toApiKeyRow(await this.database.prisma.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } }));
    const { allowedModels, creditBudget, expiresIn } = wanted;
    const ownModels = own.allowedModels;
    if (ownModels && allowedModels !== undefined && (allowedModels?.some((model) => !ownModels.includes(model)) ?? true)) {
      throw widerThanItself("allowedModels", "is restricted to some models: the other key must name a subset of them");
    }
    if (own.creditBudget !== null && creditBudget !== undefined && (creditBudget === null || creditBudget > own.creditBudget)) {
      throw widerThanItself("creditBudget", "has a budget: the other key's must not be larger");
    }
    const expiresAt = expiresIn === undefined ? undefined : this.expiry(expiresIn);
    if (own.expiresAt !== null && expiresAt !== undefined && (expiresAt === null || expiresAt > own.expiresAt)) {
      throw widerThanItself("expiresIn", "expires: the other key must not outlive it");
    }
  }

  private async findOwned(accountId: string, id: string): Promise<ApiKeyModel> {
    if (!z.uuid().safeParse(id).success) throw notFound("API key");
    const row = await this.database.prisma.apiKey.findUnique({ where: { id, accountId, revokedAt: null } });
    if (!row) throw notFound("API key");
    return row;
  }

  private expiry(expiresIn: number | null): Date | null {
    return expiresIn === null ? null : new Date(this.clock.now().getTime() + expiresIn * 1000);
  }
}

function widerThanItself(param: string, why: string): AppError {
  return new AppError("FORBIDDEN", `The calling key ${why}.`, { param });
}

/** `keys` is dropped unless a signed-in person asks, and a publishable key never holds it (decisions "Keys"). */
function grantablePermissions(asked: readonly AccountPermission[], caller: Caller): AccountPermission[] {
  const granted = new Set(asked);
  if (caller.kind !== "session") granted.delete("keys");
  return [...granted];
}

/** Only an app key is asked for by apps. */
function registrableUrls(type: ApiKeyRow["type"], urls: readonly string[]): readonly string[] {
  if (type === "publishable" || urls.length === 0) return urls;
  throw invalidInput("Redirect URLs are registered with a publishable key, which is what apps show.", "redirectUrls");
}

/** `appNames` by app key; an app that is not among them is called as the key is. */
export function toApiKeyRow(row: ApiKeyModel, appNames: ReadonlyMap<string, string> = new Map()): ApiKeyRow {
  const { appKeyId } = row;
  return {
    id: row.id,
    name: row.name,
    type: row.type,
    prefix: row.type === "secret" ? "sk" : "pk",
    start: row.start,
    permissions: row.permissions,
    allowedModels: row.restrictsModels ? row.allowedModels : null,
    creditBudget: row.budgetNanocredits === null ? null : row.budgetNanocredits - row.spentNanocredits,
    expiresAt: row.expiresAt,
    createdAt: row.createdAt,
    lastUsedAt: row.lastUsedAt,
    revokedAt: row.revokedAt,
    origin: row.origin,
    app: appKeyId === null ? null : { id: appKeyId, name: appNames.get(appKeyId) ?? row.name },
    redirectUrls: row.redirectUrls,
  };
}
