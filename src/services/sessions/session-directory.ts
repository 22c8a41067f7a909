/**
 * Finds the caller of a session token, as `ApiKeyCache` does for keys. The database stores the HMAC of a token, the cache its digest. The
 * cache is bounded and short-lived, and drops a session in all processes when it ends.
 */
import { createHmac, hash as digest } from "node:crypto";
import type { SessionCaller } from "../../context.js";
import { accountSuspended } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { CredentialCache } from "../access/credential-cache.js";
import { NO_VENDOR_KEYS, type VendorKeyFinder } from "../access/vendor-key-finder.js";
import type { LimitFinder } from "../usage-limits/limit-finder.js";
import { SESSION_CACHE_ENTRIES_MAX, SESSION_CACHE_MS, SESSION_RENEWAL_SECONDS, SESSION_SECONDS } from "./limits.js";

const UNKNOWN = Symbol("unknown session");
type CacheEntry = { readonly caller: SessionCaller; readonly expiresAt: Date; readonly isSuspended: boolean } | typeof UNKNOWN;
type Which = { readonly token: string } | { readonly id: string };

export class SessionDirectory {
  private readonly cache = new CredentialCache<CacheEntry>({
    entriesMax: SESSION_CACHE_ENTRIES_MAX,
    ttlMs: () => SESSION_CACHE_MS,
    idOf: (entry) => (entry === UNKNOWN ? null : entry.caller.sessionId),
  });

  constructor(
    private readonly database: Database,
    private readonly secret: Buffer,
    private readonly clock: Clock,
    events: Events,
    private readonly vendorKeys: VendorKeyFinder = NO_VENDOR_KEYS,
    private readonly limits: Pick<LimitFinder, "of"> | null = null,
  ) {
    events.listen("session-changed", ({ sessionId }) => this.cache.drop(sessionId));
    const dropAccount = ({ accountId }: { readonly accountId: string }) =>
      this.cache.dropWhere((entry) => entry !== UNKNOWN && entry.caller.accountId === accountId);
    events.listen("vendor-keys-changed", dropAccount);
    events.listen("usage-limits-changed", dropAccount);
    events.onDoubt(() => this.cache.dropAll());
  }

  hash(token: string): string {
    return createHmac("sha256", this.secret).update(token).digest("base64url");
  }

  /** Null for a token that is unknown, expired or revoked. Rejects with ACCOUNT_SUSPENDED. */
  async find(token: string): Promise<SessionCaller | null> {
    const cacheKey = digest("sha256", token, "base64");
    return this.admit(this.cache.get(cacheKey) ?? (await this.cache.lookUp(cacheKey, () => this.load({ token: this.hash(token) }))));
  }

  /** Finds a session by id; null as above. */
  async findById(id: string): Promise<SessionCaller | null> {
    const cached = this.cache.getById(id);
    return this.admit(cached ?? (await this.cache.lookUp(id, () => this.load({ id }))));
  }

  private admit(entry: CacheEntry): SessionCaller | null {
    if (entry === UNKNOWN || entry.expiresAt <= this.clock.now()) return null;
    if (entry.isSuspended) throw accountSuspended();
    return entry.caller;
  }

  private async load(which: Which): Promise<CacheEntry> {
    const now = this.clock.now();
    const row = await this.database.prisma.session.findUnique({
      where: which,
      include: { account: { select: { isOperator: true, suspendedAt: true } } },
    });
    if (!row || row.expiresAt <= now) return UNKNOWN;
    const caller: SessionCaller = {
      kind: "session",
      accountId: row.accountId,
      isOperator: row.account.isOperator,
      sessionId: row.id,
      vendorKeys: await this.vendorKeys.usableBy(row.accountId, { apiKeyIds: [], isPublic: false }),
      limits: await this.limits?.of(row.accountId, []),
    };
    if (row.account.suspendedAt !== null) return { caller, expiresAt: row.expiresAt, isSuspended: true };
    return { caller, expiresAt: await this.renew(row, now), isSuspended: false };
  }

  /** Extends a session that is used; one that ended meanwhile stays ended. */
  private async renew(row: { readonly id: string; readonly expiresAt: Date }, now: Date): Promise<Date> {
    const renewed = new Date(now.getTime() + SESSION_SECONDS * 1000);
    if (renewed.getTime() - row.expiresAt.getTime() < SESSION_RENEWAL_SECONDS * 1000) return row.expiresAt;
    await this.database.prisma.session.updateMany({ where: { id: row.id }, data: { expiresAt: renewed } });
    return renewed;
  }
}
