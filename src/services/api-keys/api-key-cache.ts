/**
 * Who is behind a key (docs/architecture.md#read). The database knows keys by their HMAC, and a cache in memory by their digest, neither
 * by their text. The cache holds known and unknown keys alike, is bounded, and drops a key at once everywhere when it, or a key that
 * it descends from, changes: whoever changes a key tells of all that descend from it.
 */
import { hash as digest } from "node:crypto";
import type { Caller, KeyCaller, SessionCaller } from "../../context.js";
import { credentialRefused } from "../../errors.js";
import { isRunToken, isWellFormedApiKey } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { API_KEY_CACHE_ENTRIES_MAX, API_KEY_CACHE_MS, API_KEY_UNKNOWN_CACHE_MS } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { CredentialCache } from "../access/credential-cache.js";
import type { TierStanding } from "../credits/tiers.js";
import { hashApiKey } from "../secrets/deployment-secrets.js";
import { ancestorsOf, worthOf } from "./api-key-tree.js";
import { describeExpiry, describeRevocation, malformedKey, unknownKey } from "./key-refusals.js";

const ANONYMOUS: Caller = { kind: "anonymous" };
const UNKNOWN = Symbol("unknown key");
/** A key that is good until its caller expires, and what to say from then on. */
interface GoodKey {
  readonly kind: "good";
  readonly apiKeyId: string;
  readonly caller: KeyCaller;
  readonly expiry: string;
}
/** One that has been revoked, and what to say of it: nothing makes it good again. */
interface RevokedKey {
  readonly kind: "revoked";
  readonly apiKeyId: string;
  readonly revocation: string;
}
/** A key that was looked at, for the next request that comes with it over the same connection. */
interface DigestedKey {
  readonly key: string;
  readonly digest: string;
}
type CacheEntry = GoodKey | RevokedKey | typeof UNKNOWN;
type Which = { readonly hash: Uint8Array<ArrayBuffer> } | { readonly id: string };

/** Knows who stands behind the token of an agent at work. Throws or rejects with UNAUTHORIZED for one that is not good. */
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
  /** The last key of each connection. What is remembered is that it is well-formed and what its digest is, and never whether it is good. */
  private readonly lastKeys = new WeakMap<object, DigestedKey>();

  constructor(
    private readonly database: Database,
    private readonly pepper: Buffer,
    private readonly clock: Clock,
    events: Events,
    /** Throws while the database is known to be away: no look-up then has to find out by itself. */
    private readonly assertAvailable: () => void,
    /** Told of the account behind each key that is looked up, so that nobody has to ask when its tier is next refilled. */
    private readonly learnTier: (account: TierStanding) => void,
  ) {
    events.listen("api-key-changed", ({ apiKeyId }) => this.cache.drop(apiKeyId));
    events.onDoubt(() => this.cache.dropAll());
  }

  /** A run token is accepted wherever a key is, from now on. */
  acceptRunTokens(runTokens: RunTokenResolver): void {
    this.runTokens = runTokens;
  }

  hash(key: string): Buffer {
    return hashApiKey(this.pepper, key);
  }

  /**
   * The caller behind a key, or behind the token of an agent at work; null is nobody. At once when the cache knows, else a promise. Throws or rejects with
   * UNAUTHORIZED, saying whether the key is mistyped, unknown, expired or revoked.
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

  /** The caller behind a key of which only the id is known. As `authenticate`. */
  findById(id: string): KeyCaller | Promise<KeyCaller> {
    const cached = this.cache.getById(id);
    if (cached !== undefined) return this.admit(cached);
    this.assertAvailable();
    return this.cache.lookUp(id, () => this.load({ id })).then((entry) => this.admit(entry));
  }

  private digestOf(key: string, connection: object | undefined): string {
    const last = connection && this.lastKeys.get(connection);
    if (last?.key === key) return last.digest;
    if (!isWellFormedApiKey(key)) throw malformedKey(key);
    // A plain digest is several times cheaper than the HMAC, and in memory it gives nothing away.
    const digested = { key, digest: digest("sha256", key, "base64") };
    if (connection) this.lastKeys.set(connection, digested);
    return digested.digest;
  }

  private admit(entry: CacheEntry): KeyCaller {
    if (entry === UNKNOWN) throw unknownKey();
    if (entry.kind === "revoked") throw credentialRefused(entry.revocation);
    const { caller } = entry;
    if (caller.expiresAt !== null && caller.expiresAt <= this.clock.now()) throw credentialRefused(entry.expiry);
    return caller;
  }

  private async load(which: Which): Promise<CacheEntry> {
    const row = await this.database.prisma.apiKey.findUnique({
      where: which,
      include: { account: { select: { id: true, isOperator: true, tier: true, tierResetsAt: true } } },
    });
    if (!row) return UNKNOWN;
    const ancestors = await ancestorsOf(this.database.prisma, [row]);
    const worth = worthOf(row, ancestors.get(row.id) ?? []);
    if (worth.isRevoked) {
      return { kind: "revoked", apiKeyId: row.id, revocation: describeRevocation(row, ancestors.get(row.id) ?? []) };
    }
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
      hasBudget: worth.creditBudget !== null,
      expiresAt: worth.expiresAt,
    };
    return { kind: "good", apiKeyId: row.id, caller, expiry: worth.expiresAt === null ? "" : describeExpiry(row, worth.expiresAt) };
  }
}
