/** API keys as they are shown (docs/spec/keys.md#fields): effective limits, computed with all ancestors. */
import type { DatabaseClient } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { Catalog } from "../catalog/catalog.js";
import { allowedByAll, ancestorsOf, type KeyRow, worthOf } from "./api-key-tree.js";

export interface ApiKeyRow {
  readonly id: string;
  /** The key that made it; null: made by a session. */
  readonly parentId: string | null;
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
  readonly origin: "created" | "redirect_flow" | "device_flow" | "run";
  /** The app that it was granted to, by its app key; null: no app, or one that did not identify itself. */
  readonly app: { readonly id: string; readonly name: string } | null;
  /** The address that it was granted for (RFC 8707); null: not bound to one. */
  readonly resource: string | null;
  /** Of an app key: allowed redirect addresses. Empty: any safe address. */
  readonly redirectUrls: readonly string[];
  /** Of an app key: the margin that it asks for; of a granted key: the agreed one. In percent. */
  readonly marginPercent: number;
  readonly isManagement: boolean;
  /** A provisioning tool's own name of it; null: none. */
  readonly externalId: string | null;
}

/** Changes that are published as events. Expiry is not published: see LiveApiKeys. */
export type AnnouncedChange = "created" | "updated" | "revoked";

export class ApiKeyRows {
  constructor(private readonly catalog: Pick<Catalog, "idOf">) {}

  async one(database: Pick<DatabaseClient, "apiKey">, row: KeyRow): Promise<ApiKeyRow> {
    const [shown] = await this.all(database, [row]);
    if (!shown) throw new Error("One row in, none out.");
    return shown;
  }

  /** Returns keys in the order of `rows`, with the current names of apps. */
  async all(database: Pick<DatabaseClient, "apiKey">, rows: readonly KeyRow[]): Promise<ApiKeyRow[]> {
    const ancestors = await ancestorsOf(database, rows);
    const appIds = [...new Set(rows.flatMap(({ appKeyId }) => appKeyId ?? []))];
    const apps =
      appIds.length === 0 ? [] : await database.apiKey.findMany({ where: { id: { in: appIds } }, select: { id: true, name: true } });
    const appNames = new Map(apps.map(({ id, name }) => [id, name]));
    return rows.map((row) => this.toRow(row, ancestors.get(row.id) ?? [], appNames));
  }

  /** `appNames` is by app key; an app that is not in it has the name of the key. */
  private toRow(row: KeyRow, ancestors: readonly KeyRow[], appNames: ReadonlyMap<string, string>): ApiKeyRow {
    const { appKeyId } = row;
    const { permissions, modelLists, creditBudget, expiresAt } = worthOf(row, ancestors);
    return {
      id: row.id,
      parentId: row.parentId,
      name: row.name,
      type: row.type,
      prefix: row.type === "secret" ? "sk" : "pk",
      start: row.start,
      permissions,
      allowedModels: allowedByAll(modelLists, (name) => this.catalog.idOf(name)),
      creditBudget,
      expiresAt,
      createdAt: row.createdAt,
      lastUsedAt: row.lastUsedAt,
      revokedAt: row.revokedAt,
      origin: row.origin,
      app: appKeyId === null ? null : { id: appKeyId, name: appNames.get(appKeyId) ?? row.name },
      resource: row.resource,
      redirectUrls: row.redirectUrls,
      marginPercent: row.marginPercent,
      isManagement: row.isManagement,
      externalId: row.externalId,
    };
  }
}

/** Whether columns are selected that are only right after the account's leases are folded. */
export function showsUse(select: Prisma.ApiKeySelect): boolean {
  return Object.hasOwn(select, "spentNanocredits") || Object.hasOwn(select, "lastUsedAt");
}
