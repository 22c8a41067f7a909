/** Vendor keys of an account (docs/spec/vendor-keys.md). Callers that may manage the account's keys manage them. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatPercent } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, lockName, refusingTaken } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { VendorKeyModel } from "../../store/generated/prisma/models.js";
import { requireKeyManager } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model } from "../catalog/model.js";
import { takesVendorKeys } from "../generation/routing/own-routes.js";
import { storableText } from "../requests/input.js";
import type { SecretBox } from "../secrets/secret-box.js";
import type { VendorKeyCheck } from "./check.js";
import {
  VENDOR_KEY_API_KEYS_MAX,
  VENDOR_KEY_MODELS_MAX,
  VENDOR_KEY_NAME_CHARS_MAX,
  VENDOR_KEY_SECRET_CHARS_MAX,
  VENDOR_KEY_SHOWN_CHARS,
  VENDOR_KEY_SHOWN_CHARS_MIN,
  VENDOR_KEYS_PER_ACCOUNT_MAX,
} from "./limits.js";
import { secretPlace } from "./usable-keys.js";

const VISIBLE_ASCII = /^[\x21-\x7e]+$/;
export const VENDOR_KEY_USES = ["before", "after", "only"] as const;

const name = storableText.min(1).max(VENDOR_KEY_NAME_CHARS_MAX);
/** Sent in a header. No error message repeats it. */
const secret = z
  .string()
  .min(1)
  .max(VENDOR_KEY_SECRET_CHARS_MAX)
  .regex(VISIBLE_ASCII, "may only hold visible ASCII characters, without spaces; leave out the word Bearer");
const use = z.enum(VENDOR_KEY_USES);
const models = z.array(z.string().min(1).max(253)).min(1).max(VENDOR_KEY_MODELS_MAX).nullable();
const apiKeyIds = z.array(z.uuid()).min(1).max(VENDOR_KEY_API_KEYS_MAX).nullable();

export const createVendorKeyInput = z.strictObject({
  vendor: z.string().min(1).max(253),
  /** Defaults to the vendor. */
  name: name.nullish(),
  secret,
  use: use.default("before"),
  models: models.default(null),
  apiKeyIds: apiKeyIds.default(null),
  enabled: z.boolean().default(true),
});
export type CreateVendorKeyInput = z.output<typeof createVendorKeyInput>;

export const updateVendorKeyInput = z.strictObject({
  name: name.optional(),
  secret: secret.optional(),
  use: use.optional(),
  models: models.optional(),
  apiKeyIds: apiKeyIds.optional(),
  enabled: z.boolean().optional(),
});
export type UpdateVendorKeyInput = z.output<typeof updateVendorKeyInput>;

const IDENTITY = { id: true, createdAt: true } as const;
export type SelectedVendorKey = Pick<VendorKeyModel, keyof typeof IDENTITY>;

/** All columns that are shown. */
export const VENDOR_KEY_ROW = {
  ...IDENTITY,
  ...{ vendor: true, name: true, ending: true, use: true, models: true, apiKeyIds: true },
  ...{ isEnabled: true, refusal: true, refusedAt: true, updatedAt: true },
} as const;
export type VendorKeyRow = Pick<VendorKeyModel, keyof typeof VENDOR_KEY_ROW>;

export interface VendorKeysDependencies {
  readonly database: Database;
  readonly catalog: Pick<Catalog, "known" | "upstream" | "models">;
  readonly check: Pick<VendorKeyCheck, "assertAccepted">;
  readonly box: SecretBox;
  readonly events: Events;
  readonly clock: Clock;
  /** Millionths of a model's price. */
  readonly feeShare: bigint;
}

export class VendorKeys {
  constructor(private readonly deps: VendorKeysDependencies) {}

  /** Vendors that take vendor keys, and the percentage of a model's price that a call by one is charged. */
  async terms(ctx: RequestContext): Promise<{ readonly vendors: readonly string[]; readonly feePercent: string }> {
    requireKeyManager(ctx);
    return { vendors: this.vendors, feePercent: formatPercent(this.deps.feeShare) };
  }

  /** Newest first. */
  async list<Select extends Prisma.VendorKeySelect>(ctx: RequestContext, page: PageRequest, select: Select) {
    const { accountId } = requireKeyManager(ctx);
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.rows.findMany({ where: { accountId, ...older }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => this.rows.count({ where: { accountId }, take: COUNT_TAKE })) as Page<SelectedVendorKey>;
  }

  /** Newest first, with all columns that are shown. */
  async all(ctx: RequestContext): Promise<readonly VendorKeyRow[]> {
    const { accountId } = requireKeyManager(ctx);
    const orderBy = [{ createdAt: "desc" }, { id: "desc" }] satisfies Prisma.VendorKeyOrderByWithRelationInput[];
    return this.rows.findMany({ where: { accountId }, select: VENDOR_KEY_ROW, orderBy, take: VENDOR_KEYS_PER_ACCOUNT_MAX });
  }

  /** Leaves out those of other accounts. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.VendorKeySelect): Promise<SelectedVendorKey[]> {
    const { accountId } = requireKeyManager(ctx);
    return this.rows.findMany({ where: { id: { in: ids.filter(isUuid) }, accountId }, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string, select: Prisma.VendorKeySelect): Promise<SelectedVendorKey> {
    const [key] = await this.getMany(ctx, [id], select);
    if (!key) throw notFound("vendor key");
    return key;
  }

  /** As `get`, with all columns that are shown. */
  async show(ctx: RequestContext, id: string): Promise<VendorKeyRow> {
    return (await this.get(ctx, id, VENDOR_KEY_ROW)) as VendorKeyRow;
  }

  /**
   * Checks the secret at its vendor and stores it. Rejects with BAD_REQUEST naming the field, with CONFLICT when the account has too many,
   * and as the check does.
   */
  async create(ctx: RequestContext, input: CreateVendorKeyInput): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    const { vendor, secret, use, enabled } = input;
    this.assertVendor(vendor);
    const models = this.modelIds(ctx, vendor, input.models);
    const apiKeyIds = await this.ownKeyIds(accountId, input.apiKeyIds);
    const stated = input.name ?? vendor;
    await this.assertRoom(accountId, stated);
    await this.deps.check.assertAccepted(ctx, accountId, vendor, secret);
    const { box, clock, database, events } = this.deps;
    const id = createId();
    const now = clock.now();
    const named = { vendor, use, models, apiKeyIds };
    const data = { id, accountId, name: stated, ...named, isEnabled: enabled, createdAt: now, updatedAt: now };
    await refusingTaken(
      () =>
        database.prisma.$transaction(async (transaction) => {
          // Two concurrent requests must not both create the last one allowed.
          await lockName(transaction, `vendor keys of ${accountId}`);
          assertBelowMax(await transaction.vendorKey.count({ where: { accountId } }));
          await transaction.vendorKey.create({ data: { ...data, secret: box.seal(secretPlace(id), secret), ending: endingOf(secret) } });
          await recordAct(transaction, ctx, { act: "create_vendor_key", accountId, objectId: id, after: { ...named, isEnabled: enabled } });
        }),
      () => nameTaken(stated),
    );
    events.publish("vendor-keys-changed", { accountId });
    return id;
  }

  /** Changes the given parts; a new secret is checked, and has no mark of a refusal. Rejects as `create`, and with NOT_FOUND. */
  async update(ctx: RequestContext, id: string, input: UpdateVendorKeyInput): Promise<void> {
    const { accountId } = requireKeyManager(ctx);
    const known = isUuid(id) ? await this.rows.findUnique({ where: { id, accountId }, select: VENDOR_KEY_ROW }) : null;
    if (!known) throw notFound("vendor key");
    const { name, secret, use, enabled: isEnabled } = input;
    const models = input.models === undefined ? undefined : this.modelIds(ctx, known.vendor, input.models);
    const apiKeyIds = input.apiKeyIds === undefined ? undefined : await this.ownKeyIds(accountId, input.apiKeyIds);
    if (secret !== undefined) {
      this.assertVendor(known.vendor);
      await this.deps.check.assertAccepted(ctx, accountId, known.vendor, secret);
    }
    const { box, clock, database, events } = this.deps;
    const changed = present({ use, models, apiKeyIds, isEnabled });
    const renewed = secret !== undefined && {
      ...{ secret: box.seal(secretPlace(id), secret), ending: endingOf(secret), version: { increment: 1 } },
      ...{ refusal: null, refusedAt: null },
    };
    await refusingTaken(
      () =>
        database.prisma.$transaction(async (transaction) => {
          const data = { ...present({ name }), ...changed, ...renewed, updatedAt: clock.now() };
          const { count } = await transaction.vendorKey.updateMany({ where: { id, accountId }, data });
          if (count === 0) throw notFound("vendor key");
          const after = { ...changed, isRenamed: name !== undefined && name !== known.name, hasNewSecret: secret !== undefined };
          await recordAct(transaction, ctx, { act: "update_vendor_key", accountId, objectId: id, after });
        }),
      () => nameTaken(name ?? known.name),
    );
    events.publish("vendor-keys-changed", { accountId });
  }

  /** Rejects with NOT_FOUND. */
  async delete(ctx: RequestContext, id: string): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    if (!isUuid(id)) throw notFound("vendor key");
    await this.deps.database.prisma.$transaction(async (transaction) => {
      const { count } = await transaction.vendorKey.deleteMany({ where: { id, accountId } });
      if (count === 0) throw notFound("vendor key");
      await recordAct(transaction, ctx, { act: "delete_vendor_key", accountId, objectId: id });
    });
    this.deps.events.publish("vendor-keys-changed", { accountId });
    return id;
  }

  private get vendors(): readonly string[] {
    const { catalog } = this.deps;
    const called = new Set(catalog.models.flatMap(({ routes }) => routes.map(({ upstreamId }) => upstreamId)));
    return [...called].filter((id) => takesVendorKeys(catalog.upstream(id))).sort();
  }

  private assertVendor(vendor: string): void {
    const { vendors } = this;
    if (vendors.includes(vendor)) return;
    const hint = vendors.length === 0 ? "No vendor of this gateway does" : `These do: ${vendors.join(", ")}`;
    throw wrongField("vendor", `${JSON.stringify(vendor)} is no vendor that takes vendor keys. ${hint}`);
  }

  private modelIds(ctx: RequestContext, vendor: string, names: readonly string[] | null): string[] {
    const ids = (names ?? []).map((name, index) => {
      const param = `models.${index}`;
      const model = this.deps.catalog.known(ctx.caller, name, param);
      if (!isServedBy(model, vendor)) throw wrongField(param, `${model.id} is not served by ${vendor}`);
      return model.id;
    });
    return [...new Set(ids)];
  }

  private async ownKeyIds(accountId: string, ids: readonly string[] | null): Promise<string[]> {
    const named = [...new Set(ids ?? [])];
    if (named.length === 0) return named;
    const { apiKey } = this.deps.database.prisma;
    const own = await apiKey.findMany({ where: { id: { in: named }, accountId, revokedAt: null }, select: { id: true } });
    const known = new Set(own.map(({ id }) => id));
    const index = (ids ?? []).findIndex((id) => !known.has(id));
    if (index !== -1) throw wrongField(`apiKeyIds.${index}`, "is no API key of this account that is in use");
    return named;
  }

  /** Before the check, so that a refusal costs no call of the vendor. */
  private async assertRoom(accountId: string, name: string): Promise<void> {
    const there = await this.rows.findMany({ where: { accountId }, select: { name: true }, take: VENDOR_KEYS_PER_ACCOUNT_MAX });
    assertBelowMax(there.length);
    if (there.some((key) => key.name === name)) throw nameTaken(name);
  }

  private get rows() {
    return this.deps.database.prisma.vendorKey;
  }
}

function isServedBy({ routes, isCommunity }: Model, vendor: string): boolean {
  return !isCommunity && routes.some(({ upstreamId }) => upstreamId === vendor);
}

function assertBelowMax(count: number): void {
  if (count >= VENDOR_KEYS_PER_ACCOUNT_MAX) throw conflict(`An account has at most ${VENDOR_KEYS_PER_ACCOUNT_MAX} vendor keys.`);
}

function endingOf(secret: string): string {
  return secret.length < VENDOR_KEY_SHOWN_CHARS_MIN ? "" : secret.slice(-VENDOR_KEY_SHOWN_CHARS);
}

function nameTaken(name: string): Error {
  return wrongField("name", `is taken: this account has a vendor key ${JSON.stringify(name)}`);
}

function present<Fields extends object>(fields: Fields): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
