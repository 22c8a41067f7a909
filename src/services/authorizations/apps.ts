/** Apps by their app keys (docs/spec/authorization.md#app-keys), as a consent page shows them. */
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { isWellFormedApiKey } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import { requireAccount } from "../access/permissions.js";
import type { ApiKeyCache } from "../api-keys/api-key-cache.js";

export interface App {
  readonly id: string;
  readonly name: string;
  readonly owner: { readonly handle: string; readonly githubUsername: string | null };
  /** Empty: none is registered. */
  readonly redirectUrls: readonly string[];
  /** Percent that it takes on top of prices, within the operator's bound. */
  readonly marginPercent: number;
}

const OWNER = { select: { handle: true, githubUsername: true } } as const;

export class Apps {
  constructor(
    private readonly database: Database,
    private readonly keyCache: Pick<ApiKeyCache, "hash">,
    private readonly clock: Clock,
    private readonly marginPercentMax = 0,
  ) {}

  /** Finds the app of an app key. Throws BAD_REQUEST, with one message for keys that are not publishable, unknown, expired or revoked. */
  async identify(appKey: string): Promise<App> {
    const app = await this.findByKey(appKey);
    if (app) return app;
    throw invalidInput("The app key is not valid: it must be a publishable key (`pk_`) that is not expired or revoked.", "appKey");
  }

  async findByKey(appKey: string): Promise<App | null> {
    if (!appKey.startsWith("pk_") || !isWellFormedApiKey(appKey)) return null;
    return this.find({ hash: new Uint8Array(this.keyCache.hash(appKey)) });
  }

  /** Returns the current app; null when its key has expired or was revoked. */
  async find(where: { readonly hash: Uint8Array<ArrayBuffer> } | { readonly id: string }): Promise<App | null> {
    const row = await this.database.prisma.apiKey.findUnique({
      where: { ...where, type: "publishable", revokedAt: null },
      select: { id: true, name: true, redirectUrls: true, marginPercent: true, expiresAt: true, account: OWNER },
    });
    if (!row || (row.expiresAt !== null && row.expiresAt <= this.clock.now())) return null;
    const marginPercent = Math.min(row.marginPercent, this.marginPercentMax);
    return { id: row.id, name: row.name, owner: row.account, redirectUrls: row.redirectUrls, marginPercent };
  }

  /** Names of apps by key id, ended keys included. Any account may ask, as apps identify themselves to any account. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<ReadonlyMap<string, Pick<App, "id" | "name">>> {
    requireAccount(ctx);
    const rows = await this.database.prisma.apiKey.findMany({ where: appsOf(ids), select: { id: true, name: true } });
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Owners of apps by key id, as `getMany`. */
  async ownersOf(ctx: RequestContext, ids: readonly string[]): Promise<ReadonlyMap<string, App["owner"]>> {
    requireAccount(ctx);
    const rows = await this.database.prisma.apiKey.findMany({ where: appsOf(ids), select: { id: true, account: OWNER } });
    return new Map(rows.map(({ id, account }) => [id, account]));
  }
}

function appsOf(ids: readonly string[]) {
  return { id: { in: ids.filter(isUuid) }, type: "publishable" } as const;
}
