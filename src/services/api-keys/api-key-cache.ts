/**
 * Who is behind a key (docs/architecture.md#read). The database knows keys by their HMAC, and a cache in memory by their digest, neither
 * by their text. The cache holds known and unknown keys alike, is bounded, and drops a key at once everywhere when it, or a key that
 * it descends from, changes: whoever changes a key tells of all that descend from it.
 */
import { hash as digest } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Caller, KeyCaller } from "../../context.js";
import { credentialRefused } from "../../errors.js";
import { isWellFormedApiKey } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { API_KEY_CACHE_ENTRIES_MAX, API_KEY_CACHE_MS, API_KEY_UNKNOWN_CACHE_MS } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { TierStanding } from "../credits/tier-refills.js";
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
type CacheEntry = GoodKey | RevokedKey | typeof UNKNOWN;
type Which = { readonly hash: Uint8Array<ArrayBuffer> } | { readonly id: string };

export class ApiKeyCache {
  private readonly cache = new LRUCache<string, CacheEntry>({ max: API_KEY_CACHE_ENTRIES_MAX, ttl: API_KEY_CACHE_MS });
  /** By key id, so that a change finds its entry. */
  private readonly hashes = new LRUCache<string, string>({ max: API_KEY_CACHE_ENTRIES_MAX });
  /** Look-ups under way, so that a burst of one unknown key asks once. */
  private readonly pending = new Map<string, Promise<CacheEntry>>();
  /** Counts drops: an answer that was asked for before a drop must not be cached after it. */
  private generation = 0;

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
    events.listen("api-key-changed", ({ apiKeyId }) => this.drop(apiKeyId));
    events.onDoubt(() => this.dropAll());
  }

  hash(key: string): Buffer {
    return hashApiKey(this.pepper, key);
  }

  /**
   * The caller behind a key; null is nobody. At once when the cache knows, else a promise. Throws or rejects with
   * UNAUTHORIZED, saying whether the key is mistyped, unknown, expired or revoked.
   */
  authenticate(key: string | null): Caller | Promise<Caller> {
    if (key === null) return ANONYMOUS;
    if (!isWellFormedApiKey(key)) throw malformedKey(key);
    // A plain digest is several times cheaper than the HMAC, and in memory it gives nothing away.
    const cacheKey = digest("sha256", key, "base64");
    const cached = this.cache.get(cacheKey);
    if (cached !== undefined) return this.admit(cached);
    this.assertAvailable();
    return this.lookUp(cacheKey, () => ({ hash: new Uint8Array(this.hash(key)) })).then((entry) => this.admit(entry));
  }

  /** The caller behind a key of which only the id is known. As `authenticate`. */
  findById(id: string): KeyCaller | Promise<KeyCaller> {
    const cached = this.cache.get(this.hashes.get(id) ?? id) ?? this.cache.get(id);
    if (cached !== undefined) return this.admit(cached);
    this.assertAvailable();
    return this.lookUp(id, () => ({ id })).then((entry) => this.admit(entry));
  }

  private admit(entry: CacheEntry): KeyCaller {
    if (entry === UNKNOWN) throw unknownKey();
    if (entry.kind === "revoked") throw credentialRefused(entry.revocation);
    const { caller } = entry;
    if (caller.expiresAt !== null && caller.expiresAt <= this.clock.now()) throw credentialRefused(entry.expiry);
    return caller;
  }

  /** `cacheKey` is the digest of the key, or its id. */
  private lookUp(cacheKey: string, which: () => Which): Promise<CacheEntry> {
    const running = this.pending.get(cacheKey);
    if (running) return running;
    const generation = this.generation;
    const started = this.load(which())
      .then((entry) => {
        if (generation !== this.generation) return entry;
        this.cache.set(cacheKey, entry, { ttl: entry === UNKNOWN ? API_KEY_UNKNOWN_CACHE_MS : API_KEY_CACHE_MS });
        if (entry !== UNKNOWN && entry.apiKeyId !== cacheKey) this.hashes.set(entry.apiKeyId, cacheKey);
        return entry;
      })
      .finally(() => {
        if (this.pending.get(cacheKey) === started) this.pending.delete(cacheKey);
      });
    this.pending.set(cacheKey, started);
    return started;
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

  private drop(apiKeyId: string): void {
    this.generation += 1;
    // Whoever asks from now on must not be told what was read before.
    this.pending.clear();
    this.cache.delete(apiKeyId);
    const cacheKey = this.hashes.get(apiKeyId);
    if (cacheKey === undefined) return;
    this.hashes.delete(apiKeyId);
    this.cache.delete(cacheKey);
  }

  /** Any key may have changed without this process having heard of it. */
  private dropAll(): void {
    this.generation += 1;
    this.pending.clear();
    this.hashes.clear();
    this.cache.clear();
  }
}
