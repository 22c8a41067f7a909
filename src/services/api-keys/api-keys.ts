/** API keys: created, listed, changed and revoked by their account (docs/spec/keys.md). */

import { type Caller, isManagementKey, type KeyCaller, type RequestContext, type SessionCaller } from "../../context.js";
import { invalidInput, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { eachOf } from "../../lib/collections.js";
import { isUuid } from "../../lib/ids.js";
import { newestFirst, type Page, type PageRequest, type RankedPosition } from "../../lib/pagination.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import { type Events, listenOrDoubt } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";
import { isKeyCaller, isKeyManager, readableAccountOf, requireAccount, requireKeyMaker } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Leases } from "../credits/leases.js";
import type { ApiKeyCache } from "./api-key-cache.js";
import {
  assertMayChange,
  assertMayMake,
  assertMayRevoke,
  grantablePermissions,
  managedBy,
  mayManage,
  registrableUrls,
} from "./api-key-limits.js";
import { type ApiKeyOrder, KEY_IDENTITY, type KeyList, keysInOrder, keysWhere, orderColumn, readKeys } from "./api-key-list.js";
import { type AnnouncedChange, type ApiKeyRow, ApiKeyRows, showsUse } from "./api-key-rows.js";
import {
  allowedByAll,
  ancestorsOf,
  findOwned,
  inTreeOf,
  KEY_ROW,
  type KeyRow,
  type KeyTerms,
  type KeyWorth,
  lockAccount,
  revokeTree,
  setBudget,
  worthOf,
} from "./api-key-tree.js";
import type { ApiKeyFilter, CreateApiKeyInput, UpdateApiKeyInput } from "./api-keys-input.js";
import type { GrantTerms } from "./grant-terms.js";
import { assertSameDefinition, defineKey, findByExternalId, type KeyDefinition, taken, toJson } from "./key-definition.js";
import { expiryIn, findMaker, KeyMaker, type KeyWriter, withAncestors } from "./key-maker.js";

export interface CurrentApiKey extends ApiKeyRow {
  readonly valid: true;
  /** Whole seconds left; null: does not expire. */
  readonly expiresIn: number | null;
  readonly rateLimitEnabled: boolean;
}

export interface KeyGrant {
  readonly accountId: string;
  readonly origin: "redirect_flow" | "device_flow";
  /** Null: the app did not identify itself. */
  readonly appKeyId: string | null;
  /** The app's name, or the host of its redirect address. */
  readonly name: string;
  readonly terms: GrantTerms;
  /** The address that the key is for (RFC 8707); absent or null: not bound to one. */
  readonly resource?: string | null;
}

export type SelectedApiKey = Pick<ApiKeyModel, keyof typeof KEY_IDENTITY>;

/** Effective permissions and limits, as shown. */
export interface ShownWorth extends Omit<KeyWorth, "modelLists"> {
  /** Null: all models. */
  readonly allowedModels: readonly string[] | null;
  /** Whole seconds left; null: does not expire. */
  readonly expiresIn: number | null;
  readonly isValid: boolean;
}

const SECONDS_PER_DAY = 24 * 60 * 60;

export class ApiKeys {
  private readonly rows: ApiKeyRows;
  private readonly maker: KeyMaker;

  constructor(
    private readonly database: Database,
    private readonly keyCache: ApiKeyCache,
    private readonly catalog: Pick<Catalog, "idOf" | "known">,
    private readonly events: Events,
    private readonly clock: Clock,
    private readonly leases: Pick<Leases, "fold" | "recall">,
  ) {
    this.rows = new ApiKeyRows(catalog);
    this.maker = new KeyMaker(keyCache, this.rows, clock);
  }

  /** Finds the caller of a key by its ID. Rejects as `authenticate` does. */
  findCaller(apiKeyId: string): KeyCaller | Promise<KeyCaller> {
    return this.keyCache.findById(apiKeyId);
  }

  /** See ApiKeyCache.authenticate. */
  authenticate(key: string | null): Caller | Promise<Caller> {
    return this.keyCache.authenticate(key);
  }

  /** Calls `listener` when the key is changed or revoked, or when an event may have been missed, until the returned function is called. */
  onChanged(apiKeyId: string, listener: () => void): () => void {
    return listenOrDoubt(this.events, "api-key-changed", (event) => event.apiKeyId === apiKeyId, listener);
  }

  async list(ctx: RequestContext, page: PageRequest, filter: ApiKeyFilter | null = null): Promise<Page<ApiKeyRow>> {
    const { items, ...rest } = await this.listSelected(ctx, page, KEY_ROW, filter);
    return { ...rest, items: await this.rows.all(this.database.prisma, items) };
  }

  async listSelected<Column extends keyof ApiKeyModel>(
    ctx: RequestContext,
    page: PageRequest,
    select: Readonly<Record<Column, true>>,
    filter?: ApiKeyFilter | null,
  ): Promise<Page<SelectedApiKey & Pick<ApiKeyModel, Column>>>;
  async listSelected(
    ctx: RequestContext,
    page: PageRequest,
    select: Prisma.ApiKeySelect,
    filter?: ApiKeyFilter | null,
    /** An account, for operators; default: the caller's own. */
    of?: string,
  ): Promise<Page<SelectedApiKey>>;
  async listSelected(
    ctx: RequestContext,
    page: PageRequest,
    select: Prisma.ApiKeySelect,
    filter: ApiKeyFilter | null = null,
    of?: string,
  ): Promise<Page<SelectedApiKey>> {
    return this.page(ctx, page, { filter, of, query: { ...newestFirst(page), select } });
  }

  /** As `listSelected`, in another order. */
  listOrdered(
    ctx: RequestContext,
    page: PageRequest<RankedPosition>,
    order: ApiKeyOrder,
    select: Prisma.ApiKeySelect,
    list: { readonly filter: ApiKeyFilter | null; readonly of: string },
  ): Promise<Page<SelectedApiKey>> {
    return this.page(ctx, page, { ...list, query: { ...keysInOrder(page, order), select: { ...select, [orderColumn(order)]: true } } });
  }

  private async page(ctx: RequestContext, page: PageRequest<unknown>, { filter, of, query }: KeyList): Promise<Page<SelectedApiKey>> {
    const accountId = readableAccountOf(ctx, requireKeyMaker, of);
    const where = { AND: [keysWhere(accountId, filter), managedBy(ctx.caller)] };
    if (showsUse(query.select)) await this.leases.fold([accountId]);
    return readKeys(this.database, page, where, query);
  }

  /** Returns keys of the account by id, revoked ones too. A key may read itself without permission. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.ApiKeySelect): Promise<SelectedApiKey[]> {
    const caller = requireAccount(ctx);
    const isOwn = (id: string) => isKeyCaller(caller) && id === caller.apiKeyId;
    if (!ids.every(isOwn)) requireKeyMaker(ctx);
    if (showsUse(select)) await this.leases.fold([caller.accountId]);
    return this.database.prisma.apiKey.findMany({
      where: { id: { in: ids.filter(isUuid) }, accountId: caller.accountId, ...(!ids.every(isOwn) && orItself(caller)) },
      select: { ...select, ...KEY_IDENTITY },
    });
  }

  /** Reads each key by itself, so that a caller without permission still sees its own key. Missing keys are left out. */
  async getEach(
    ctx: RequestContext,
    ids: readonly string[],
    select: Prisma.ApiKeySelect,
  ): Promise<ReadonlyMap<string, SelectedApiKey | Error>> {
    requireAccount(ctx);
    if (!isKeyManager(ctx) && !isManagementKey(ctx.caller)) return eachOf(ids, (id) => this.get(ctx, id, select));
    return new Map((await this.getMany(ctx, ids, select)).map((key) => [key.id, key]));
  }

  /** Returns the calling key; any type, no permission. */
  async currentSelected(ctx: RequestContext, select: Prisma.ApiKeySelect): Promise<SelectedApiKey> {
    return this.get(ctx, callingKeyOf(ctx).apiKeyId, select);
  }

  /** Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string, select: Prisma.ApiKeySelect): Promise<SelectedApiKey> {
    const [key] = await this.getMany(ctx, [id], select);
    if (!key) throw notFound("API key");
    return key;
  }

  /** As it is shown. Rejects with NOT_FOUND, also for a revoked key. */
  async find(ctx: RequestContext, id: string): Promise<ApiKeyRow> {
    const key = (await this.get(ctx, id, { ...KEY_ROW, revokedAt: true })) as KeyRow;
    if (key.revokedAt !== null) throw notFound("API key");
    return this.rows.one(this.database.prisma, key);
  }

  /** Computes the effective limits of each key, in the order given. */
  async worthsOf(ctx: RequestContext, keys: readonly (KeyTerms & Pick<ApiKeyModel, "id" | "ancestorIds">)[]): Promise<ShownWorth[]> {
    requireAccount(ctx);
    const ancestors = await ancestorsOf(this.database.prisma, keys);
    return keys.map((key) => {
      const { modelLists, ...worth } = worthOf(key, ancestors.get(key.id) ?? []);
      const secondsLeft = this.secondsUntil(worth.expiresAt);
      return {
        ...worth,
        allowedModels: allowedByAll(modelLists, this.idOf),
        expiresIn: secondsLeft,
        isValid: !worth.isRevoked && secondsLeft !== 0,
      };
    });
  }

  /** Whole seconds; null: does not expire. */
  private secondsUntil(end: Date | null): number | null {
    return end === null ? null : Math.max(0, Math.floor((end.getTime() - this.clock.now().getTime()) / 1000));
  }

  /**
   * Creates a key and returns its text, which is shown only here. A key that a key makes is its child (docs/spec/keys.md#key-tree). For an
   * `externalId` that a key of the same definition has, returns that key, whose text is null. Rejects with CONFLICT for another definition.
   */
  async create(ctx: RequestContext, input: CreateApiKeyInput): Promise<{ apiKey: ApiKeyRow; key: string | null }> {
    const caller = requireKeyMaker(ctx);
    const { accountId } = caller;
    const { name, type, allowedModels = null, creditBudget = null, expiresIn = null } = input;
    const externalId = input.externalId ?? null;
    const isManagement = input.isManagement ?? false;
    const permissions = grantablePermissions(input, caller);
    const redirectUrls = registrableUrls(type, input.redirectUrls ?? []);
    this.assertModels(caller, allowedModels, []);
    const created = await this.database.prisma.$transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      const terms = { name, type, allowedModels, creditBudget, expiresIn, accountPermissions: permissions, redirectUrls, isManagement };
      const definition = defineKey(null, terms, this.idOf);
      const found = externalId === null ? null : await this.findDefined(transaction, caller, externalId, definition);
      if (found) return { apiKey: found, key: null };
      const maker = isKeyCaller(caller) ? await findMaker(transaction, caller.apiKeyId) : null;
      if (maker) {
        const stated = { allowedModels, creditBudget, expiresAt: this.expiry(expiresIn) };
        assertMayMake(worthOf(maker.key, maker.ancestors), permissions, stated, this.idOf);
      }
      const key = { accountId, name, type, permissions, allowedModels, creditBudget, expiresIn, redirectUrls, parent: maker?.key };
      const identity = externalId === null ? {} : { externalId, definition };
      return this.maker.insert({ ...key, ...identity, isManagement }, transaction);
    });
    if (created.key !== null) this.announce("created", accountId, [created.apiKey.id]);
    return created;
  }

  /** Null: the external id is free. */
  private async findDefined(
    transaction: Pick<DatabaseClient, "apiKey">,
    caller: KeyCaller | SessionCaller,
    externalId: string,
    definition: KeyDefinition,
  ): Promise<ApiKeyRow | null> {
    const found = await findByExternalId(transaction, caller.accountId, externalId);
    if (found === null) return null;
    if (!mayManage(caller, found)) throw taken("Another key of this account, which the calling key did not create, has this externalId.");
    assertSameDefinition(found, definition, this.idOf, this.clock.now());
    return this.rows.one(transaction, found);
  }

  /** Makes the key of a grant. Not exposed by GraphQL or REST: the flows call it once per approval. */
  async mintGranted({ terms, ...grant }: KeyGrant, writer: KeyWriter): Promise<{ apiKey: ApiKeyRow; key: string }> {
    const { models: allowedModels, creditBudget, expiresInDays, permissions, marginPercent } = terms;
    const expiresIn = expiresInDays * SECONDS_PER_DAY;
    await lockAccount(writer, grant.accountId);
    const key = { ...grant, type: "secret", permissions, allowedModels, creditBudget, expiresIn, redirectUrls: [], marginPercent } as const;
    return this.maker.insert(key, writer);
  }

  /** Publishes the creation of a granted key, after its transaction committed. */
  announceGranted(accountId: string, apiKeyId: string): void {
    this.announce("created", accountId, [apiKeyId]);
  }

  /** Revokes a granted key whose code was stolen. Not exposed by GraphQL or REST. */
  async revokeGranted(accountId: string, apiKeyId: string): Promise<void> {
    const ended = await revokeTree(this.database.prisma, apiKeyId, this.clock.now());
    this.announce("revoked", accountId, ended.length === 0 ? [apiKeyId] : ended.map(({ id }) => id));
  }

  async update(ctx: RequestContext, id: string, input: UpdateApiKeyInput): Promise<ApiKeyRow> {
    const caller = requireKeyMaker(ctx);
    const { name, allowedModels, creditBudget, expiresIn } = input;
    const expiresAt = expiresIn === undefined ? undefined : this.expiry(expiresIn);
    // A budget is never set below its holds, and leased credits count as held.
    if (creditBudget !== undefined) await this.leases.recall(caller.accountId);
    const { row, changed } = await this.database.prisma.$transaction(async (transaction) => {
      await lockAccount(transaction, caller.accountId);
      const found = await this.findManaged(transaction, caller, id);
      const target = await withAncestors(transaction, found);
      const own = isKeyCaller(caller) ? await findMaker(transaction, caller.apiKeyId) : null;
      this.assertModels(caller, allowedModels ?? null, target.key.allowedModels);
      assertMayChange(own, target, { allowedModels, creditBudget, expiresAt }, this.idOf);
      const registered = input.redirectUrls === undefined ? undefined : registrableUrls(target.key.type, input.redirectUrls ?? []);
      await transaction.apiKey.update({
        where: { id },
        data: {
          ...(name !== undefined && { name }),
          ...(allowedModels !== undefined && { restrictsModels: allowedModels !== null, allowedModels: allowedModels ?? [] }),
          ...(expiresAt !== undefined && { expiresAt }),
          ...(registered !== undefined && { redirectUrls: [...registered] }),
          ...(found.externalId !== null && { definition: toJson(defineKey(found.definition, input, this.idOf)) }),
        },
      });
      if (creditBudget !== undefined) await setBudget(transaction, caller.accountId, id, creditBudget);
      const tree = await transaction.apiKey.findMany({ where: { ...inTreeOf(id), revokedAt: null }, select: { id: true } });
      const written = await transaction.apiKey.findUniqueOrThrow({ where: { id } });
      return { row: await this.rows.one(transaction, written), changed: tree.map((key) => key.id) };
    });
    this.announce("updated", caller.accountId, changed);
    return row;
  }

  /** Revokes the key and its descendants in one step. */
  async revoke(ctx: RequestContext, id: string): Promise<ApiKeyRow> {
    const caller = requireKeyMaker(ctx);
    const ended = await this.database.prisma.$transaction(async (transaction) => {
      await lockAccount(transaction, caller.accountId);
      await this.findManaged(transaction, caller, id);
      const own = isKeyCaller(caller) ? await transaction.apiKey.findUnique({ where: { id: caller.apiKeyId } }) : null;
      assertMayRevoke(caller, own, id);
      return revokeTree(transaction, id, this.clock.now());
    });
    this.announce(
      "revoked",
      caller.accountId,
      ended.map((key) => key.id),
    );
    const row = ended.find((key) => key.id === id);
    if (!row) throw notFound("API key");
    return this.rows.one(this.database.prisma, row);
  }

  /** Rejects with NOT_FOUND, also for a key that a management key has not created. The calling key itself is found. */
  private async findManaged(
    transaction: Pick<DatabaseClient, "apiKey">,
    caller: KeyCaller | SessionCaller,
    id: string,
  ): Promise<ApiKeyModel> {
    const key = await findOwned(transaction, caller.accountId, id);
    if (mayManage(caller, key) || (isKeyCaller(caller) && caller.apiKeyId === id)) return key;
    throw notFound("API key");
  }

  /** Returns the calling key; any type, no permission (docs/spec/keys.md#fields). */
  async current(ctx: RequestContext): Promise<CurrentApiKey> {
    const caller = callingKeyOf(ctx);
    const { prisma } = this.database;
    await this.leases.fold([caller.accountId]);
    const row = await this.rows.one(prisma, await findOwned(prisma, caller.accountId, caller.apiKeyId));
    return { ...row, valid: true, expiresIn: this.secondsUntil(row.expiresAt), rateLimitEnabled: row.type === "publishable" };
  }

  /** Publishes each key by itself, so that caches need not know the tree. */
  private announce(change: AnnouncedChange, accountId: string, apiKeyIds: readonly string[]): void {
    for (const apiKeyId of apiKeyIds) this.events.publish("api-key-changed", { accountId, apiKeyId, change });
  }

  /** Throws BAD_REQUEST for unknown models. Models already in the key's list may stay when they have been removed. */
  private assertModels(caller: Caller, names: readonly string[] | null, kept: readonly string[]): void {
    for (const [index, name] of names?.entries() ?? []) {
      if (!kept.includes(name)) this.catalog.known(caller, name, `allowedModels.${index}`);
    }
  }

  private readonly idOf = (name: string): string => this.catalog.idOf(name);

  private expiry(expiresIn: number | null): Date | null {
    return expiryIn(expiresIn, this.clock);
  }
}

/** As `managedBy`, with the calling key itself. */
function orItself(caller: KeyCaller | SessionCaller): Prisma.ApiKeyWhereInput {
  return isManagementKey(caller) ? inTreeOf(caller.apiKeyId) : {};
}

function callingKeyOf(ctx: RequestContext): KeyCaller {
  const caller = requireAccount(ctx);
  if (!isKeyCaller(caller)) throw invalidInput("This request is authenticated by a session, not by a key.");
  return caller;
}
