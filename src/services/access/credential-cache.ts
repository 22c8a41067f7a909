/**
 * A bounded cache of credentials, by digest, or by id where only that is known. Unknown credentials are cached too. A change drops its
 * entry at once.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";

/** An entry may outlive its time by this much: the cache reads the clock no more often, as each read takes a timer. */
const CLOCK_MS = 50;

interface CredentialCacheOptions<Entry> {
  readonly entriesMax: number;
  readonly ttlMs: (entry: Entry) => number;
  /** The credential's id; null for an unknown one. */
  readonly idOf: (entry: Entry) => string | null;
}

export class CredentialCache<Entry extends object | symbol> {
  private readonly entries: LRUCache<string, Entry>;
  /** Cache key by id, so that a change finds the entry. */
  private readonly cacheKeys: LRUCache<string, string>;
  /** Look-ups under way, so that a burst with one uncached credential makes one query. */
  private readonly pending = new Map<string, Promise<Entry>>();
  /** Counts drops: a look-up that began before a drop must not be cached after it. */
  private generation = 0;

  constructor(private readonly options: CredentialCacheOptions<Entry>) {
    this.entries = new LRUCache({ ...entriesMax(options.entriesMax), ttlResolution: CLOCK_MS });
    this.cacheKeys = new LRUCache(entriesMax(options.entriesMax));
  }

  get(digest: string): Entry | undefined {
    return this.entries.get(digest);
  }

  getById(id: string): Entry | undefined {
    return this.entries.get(this.cacheKeys.get(id) ?? id) ?? this.entries.get(id);
  }

  /** `cacheKey` is a digest or an id. */
  lookUp(cacheKey: string, load: () => Promise<Entry>): Promise<Entry> {
    const running = this.pending.get(cacheKey);
    if (running) return running;
    const { generation } = this;
    const started = load()
      .then((entry) => {
        if (generation === this.generation) this.put(cacheKey, entry);
        return entry;
      })
      .finally(() => {
        if (this.pending.get(cacheKey) === started) this.pending.delete(cacheKey);
      });
    this.pending.set(cacheKey, started);
    return started;
  }

  drop(id: string): void {
    this.forgetPending();
    this.entries.delete(id);
    const cacheKey = this.cacheKeys.get(id);
    if (cacheKey === undefined) return;
    this.cacheKeys.delete(id);
    this.entries.delete(cacheKey);
  }

  /** Drops the entries that match, in a time that grows with all entries. */
  dropWhere(matches: (entry: Entry) => boolean): void {
    this.forgetPending();
    for (const [cacheKey, entry] of this.entries.entries()) if (matches(entry)) this.entries.delete(cacheKey);
  }

  /** Drops all entries, because a change may have been missed. */
  dropAll(): void {
    this.forgetPending();
    this.cacheKeys.clear();
    this.entries.clear();
  }

  private put(cacheKey: string, entry: Entry): void {
    this.entries.set(cacheKey, entry, { ttl: this.options.ttlMs(entry) });
    const id = this.options.idOf(entry);
    if (id !== null && id !== cacheKey) this.cacheKeys.set(id, cacheKey);
  }

  /** Detaches look-ups under way, so that later callers do not get their results. */
  private forgetPending(): void {
    this.generation += 1;
    this.pending.clear();
  }
}
