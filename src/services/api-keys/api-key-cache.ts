/**
 * Finds the caller of a key (docs/architecture.md#read). The database stores keys by HMAC and the cache by digest, neither by text. The
 * cache is bounded, holds known and unknown keys, and drops a key in all processes when it or an ancestor changes: a change is announced
 * for every descendant.
 */
import { hash as digest } from "node:crypto";
import type { Caller, EarningApp, KeyCaller, SessionCaller } from "../../context.js";
import { accountSuspended, credentialRefused } from "../../errors.js";
import { isRunToken, isWellFormedApiKey } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { API_KEY_CACHE_ENTRIES_MAX, API_KEY_CACHE_MS, API_KEY_UNKNOWN_CACHE_MS } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { CredentialCache } from "../access/credential-cache.js";
import { NO_VENDOR_KEYS, type VendorKeyFinder } from "../access/vendor-key-finder.js";
import type { TierStanding } from "../credits/tiers.js";
import { hashApiKey } from "../secrets/deployment-secrets.js";
import type { LimitFinder } from "../usage-limits/limit-finder.js";
import { ancestorsOf, type KeyRow, runIdsOf, worthOf } from "./api-key-tree.js";
import { describeExpiry, describeRevocation, malformedKey, unknownKey } from "./key-refusals.js";

const ANONYMOUS: Caller = { kind: "anonymous" };
const UNKNOWN = Symbol("unknown key");
/** A key that is good until its caller expires, and its refusal afterwards. */
interface GoodKey {
  readonly kind: "good";
  readonly apiKeyId: string;
  readonly caller: KeyCaller;
  readonly expiry: string;
}
/** A revoked key and its refusal; a revoked key never becomes good again. */
interface RevokedKey {
  readonly kind: "revoked";
  readonly apiKeyId: string;
  readonly revocation: string;
}
/** A key of a suspended account. */
interface SuspendedKey {
  readonly kind: "suspended";
  readonly apiKeyId: string;
}
/** A key and its digest, kept for the next request on the same connection. */
interface DigestedKey {
  readonly key: string;
  readonly digest: string;
}
type CacheEntry = GoodKey | RevokedKey | SuspendedKey | typeof UNKNOWN;
type Which = { readonly hash: Uint8Array<ArrayBuffer> } | { readonly id: string };

/** Finds the caller of an agent's run token. Throws or rejects with UNAUTHORIZED or ACCOUNT_SUSPENDED for one that is not good. */
export interface RunTokenResolver {
  resolve(token: string): KeyCaller | SessionCaller | Promise<KeyCaller | SessionCaller>;
}

export class ApiKeyCache {
  private readonly cache = new CredentialCache<CacheEntry>({
    entriesMax: API_KEY_CACHE_ENTRIES_MAX,
    ttlMs: (entry) => (entry === UNKNOWN ? API_KEY_UNKNOWN_CACHE_MS : API_KEY_CACHE_MS),
    idOf: (entry) => (entry === UNKNOWN ? null : entry.apiKeyId),
  });
  private runTokens: RunTokenResolver | null = null;
  /** The last key of each connection: that it is well-formed, and its digest, never whether it is good. */
  private readonly lastKeys = new WeakMap<object, DigestedKey>();

  constructor(
    private readonly database: Database,
    private readonly pepper: Buffer,
    private readonly clock: Clock,
    events: Events,
    /** Throws while the database is known to be unavailable, so that no look-up waits for it. */
    private readonly assertAvailable: () => void,
    /** Receives the account of each key that is looked up, so that its next refill is known without a query. */
    private readonly learnTier: (account: TierStanding) => void,
    private readonly vendorKeys: VendorKeyFinder = NO_VENDOR_KEYS,
    /** The highest margin of an app, in percent. */
    private readonly marginPercentMax = 0,
    private readonly limits: Pick<LimitFinder, "of"> | null = null,
  ) {
    events.listen("api-key-changed", ({ apiKeyId, change }) => {
      this.cache.drop(apiKeyId);
      // Keys that were granted to it pay no margin any more.
      if (change === "revoked" && marginPercentMax > 0) {
        this.cache.dropWhere((entry) => entry !== UNKNOWN && entry.kind === "good" && entry.caller.app?.id === apiKeyId);
      }
    });
    const dropAccount = ({ accountId }: { readonly accountId: string }) =>
      this.cache.dropWhere((entry) => entry !== UNKNOWN && entry.kind === "good" && entry.caller.accountId === accountId);
    events.listen("vendor-keys-changed", dropAccount);
    events.listen("usage-limits-changed", dropAccount);
    events.onDoubt(() => this.cache.dropAll());
  }

  /** From now on accepts run tokens where keys are accepted. */
  acceptRunTokens(runTokens: RunTokenResolver): void {
    this.runTokens = runTokens;
  }

  hash(key: string): Buffer {
    return hashApiKey(this.pepper, key);
  }

  /**
   * Finds the caller of a key or run token; null is an anonymous caller. Synchronous when cached, else a promise. Throws or rejects with
   * UNAUTHORIZED, which says whether the key is mistyped, unknown, expired or revoked, or with ACCOUNT_SUSPENDED.
   */
  authenticate(key: string | null, connection?: object): Caller | Promise<Caller> {
    if (key === null) return ANONYMOUS;
    if (this.runTokens && isRunToken(key)) return this.runTokens.resolve(key);
    const cacheKey = this.digestOf(key, connection);
    const cached = this.cache.get(cacheKey);
    if (cached !== undefined) return this.admit(cached);
    this.assertAvailable();
    return this.cache.lookUp(cacheKey, () => this.load({ hash: new Uint8Array(this.hash(key)) })).then((entry) => this.admit(entry));
  }

  /** Finds the caller of a key by id. Rejects as `authenticate` does. */
  findById(id: string): KeyCaller | Promise<KeyCaller> {
    const cached = this.cache.getById(id);
    if (cached !== undefined) return this.admit(cached);
    this.assertAvailable();
    return this.cache.lookUp(id, () => this.load({ id })).then((entry) => this.admit(entry));
  }

  /** The app that takes a margin: of the key, else of the nearest key above it. None takes one from its own owner, or after it was revoked. */
  private async appOf(key: KeyRow, ancestors: readonly KeyRow[]): Promise<EarningApp | undefined> {
    const granted = [key, ...ancestors.toReversed()].find(({ appKeyId, marginPercent }) => appKeyId !== null && marginPercent > 0);
    const marginPercent = Math.min(granted?.marginPercent ?? 0, this.marginPercentMax);
    if (!granted?.appKeyId || marginPercent === 0) return undefined;
    const where = { id: granted.appKeyId, revokedAt: null };
    const app = await this.database.prisma.apiKey.findUnique({ where, select: { id: true, accountId: true } });
    return app && app.accountId !== key.accountId ? { ...app, marginPercent } : undefined;
  }

  private digestOf(key: string, connection: object | undefined): string {
    const last = connection && this.lastKeys.get(connection);
    if (last?.key === key) return last.digest;
    if (!isWellFormedApiKey(key)) throw malformedKey(key);
    // A plain digest is several times cheaper than the HMAC, and in memory it reveals nothing.
    const digested = { key, digest: digest("sha256", key, "base64") };
    if (connection) this.lastKeys.set(connection, digested);
    return digested.digest;
  }

  private admit(entry: CacheEntry): KeyCaller {
    if (entry === UNKNOWN) throw unknownKey();
    if (entry.kind === "revoked") throw credentialRefused(entry.revocation);
    if (entry.kind === "suspended") throw accountSuspended();
    const { caller } = entry;
    if (caller.expiresAt !== null && caller.expiresAt <= this.clock.now()) throw credentialRefused(entry.expiry);
    return caller;
  }

  private async load(which: Which): Promise<CacheEntry> {
    const row = await this.database.prisma.apiKey.findUnique({
      where: which,
      include: { account: { select: { id: true, isOperator: true, suspendedAt: true, tier: true, tierResetsAt: true } } },
    });
    if (!row) return UNKNOWN;
    const ancestors = await ancestorsOf(this.database.prisma, [row]);
    const worth = worthOf(row, ancestors.get(row.id) ?? []);
    if (worth.isRevoked) {
      return { kind: "revoked", apiKeyId: row.id, revocation: describeRevocation(row, ancestors.get(row.id) ?? []) };
    }
    if (row.account.suspendedAt !== null) return { kind: "suspended", apiKeyId: row.id };
    this.learnTier(row.account);
    const caller: KeyCaller = {
      kind: "key",
      accountId: row.accountId,
      isOperator: row.account.isOperator,
      apiKeyId: row.id,
      apiKeyName: row.name,
      apiKeyType: row.type,
      permissions: new Set(worth.permissions),
      modelLists: worth.modelLists,
      ...(row.isManagement && { isManagement: true }),
      hasBudget: worth.creditBudget !== null,
      expiresAt: worth.expiresAt,
      resource: row.resource,
      runIds: runIdsOf(row, ancestors.get(row.id) ?? []),
      vendorKeys: await this.vendorKeys.usableBy(row.accountId, {
        apiKeyIds: [row.id, ...row.ancestorIds],
        isPublic: row.type === "publishable",
      }),
      app: await this.appOf(row, ancestors.get(row.id) ?? []),
      limits: await this.limits?.of(row.accountId, [row.id, ...row.ancestorIds]),
    };
    return { kind: "good", apiKeyId: row.id, caller, expiry: worth.expiresAt === null ? "" : describeExpiry(row, worth.expiresAt) };
  }
}
