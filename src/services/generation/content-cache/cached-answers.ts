/**
 * Answers of the content cache: an index in the database, bytes as blobs. Bounded in size and age; the least recently used are evicted. A
 * lost answer is generated again.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { Clock } from "../../../lib/clock.js";
import { closedTypeOf, type GeneratedType } from "../../../lib/content-types.js";
import type { BlobStore } from "../../../store/blobs.js";
import type { Database } from "../../../store/database.js";
import type { ContentCacheEntryModel } from "../../../store/generated/prisma/models.js";
import { fromStoredReceipt, type Receipt, type StoredReceipt, toStoredReceipt } from "../receipt.js";
import {
  type AnswerStore,
  type CacheableAnswer,
  CONTENT_CACHE_BYTES_MAX,
  CONTENT_CACHE_HOURS,
  CONTENT_CACHE_NOTE_MS,
  type KeptAnswer,
} from "./content-cache.js";

const HOUR_MS = 60 * 60 * 1000;
/** A full cache is emptied to this percentage, so that not every new answer evicts. */
const EMPTIED_TO_PERCENT = 90;
const REMOVED_AT_ONCE_MAX = 100;

export const CONTENT_CACHE_FOLDER = "content-cache";

interface StoredAnswer {
  readonly contentType: string;
  readonly receipt: StoredReceipt;
}

interface Removed {
  readonly blob_key: string;
  readonly size_bytes: number;
}

type Key = Uint8Array<ArrayBuffer>;

export class CachedAnswers implements AnswerStore {
  /** Null until counted. */
  private bytes: number | null = null;
  private making: Promise<void> | null = null;
  /** Uses since the last write. */
  private used = new Map<string, Key>();
  private noteTimer: NodeJS.Timeout | null = null;

  constructor(
    private readonly database: Database,
    private readonly blobs: BlobStore,
    private readonly clock: Clock,
    private readonly log: Logger,
    private readonly bytesMax = CONTENT_CACHE_BYTES_MAX,
  ) {}

  async find(key: Key): Promise<CacheableAnswer | null> {
    const entry = await this.findEntry(key);
    const bytes = entry && (await this.blobs.read(entry.blobKey));
    if (!entry || !(await this.isWhole(key, entry, bytes?.byteLength)) || !bytes) return null;
    const { contentType, receipt } = toAnswer(entry);
    return { file: { bytes, contentType }, receipt };
  }

  async open(key: Key): Promise<Omit<KeptAnswer, "version"> | null> {
    const entry = await this.findEntry(key);
    const blob = entry && (await this.blobs.head(entry.blobKey));
    if (!entry || !(await this.isWhole(key, entry, blob?.sizeBytes))) return null;
    const { blobKey, sizeBytes } = entry;
    return { ...toAnswer(entry), sizeBytes, open: (range) => this.blobs.open(blobKey, range) };
  }

  async store(key: Key, { file, receipt }: CacheableAnswer): Promise<void> {
    const sizeBytes = file.bytes.byteLength;
    const blobKey = `${CONTENT_CACHE_FOLDER}/${Buffer.from(key).toString("hex").slice(0, 16)}-${randomUUID()}`;
    await this.blobs.put(blobKey, file.bytes, { isDurable: false });
    const answer: StoredAnswer = { contentType: file.contentType, receipt: toStoredReceipt(receipt) };
    const now = this.clock.now();
    const expiresAt = new Date(now.getTime() + CONTENT_CACHE_HOURS * HOUR_MS);
    const replaced = await this.database.prisma.$queryRaw<Removed[]>`
      WITH old AS (SELECT blob_key, size_bytes FROM content_cache_entry WHERE store_id = ${this.blobs.id}::uuid AND key = ${key}),
      written AS (
        INSERT INTO content_cache_entry (store_id, key, blob_key, size_bytes, answer, created_at, used_at, expires_at)
        VALUES (${this.blobs.id}::uuid, ${key}, ${blobKey}, ${sizeBytes}, ${JSON.stringify(answer)}::jsonb, ${now}, ${now}, ${expiresAt})
        ON CONFLICT (store_id, key) DO UPDATE SET (blob_key, size_bytes, answer, created_at, used_at, expires_at)
          = (EXCLUDED.blob_key, EXCLUDED.size_bytes, EXCLUDED.answer, EXCLUDED.created_at, EXCLUDED.used_at, EXCLUDED.expires_at))
      SELECT * FROM old`;
    await this.dropBlobs(replaced);
    if (this.bytes !== null) this.bytes += sizeBytes - sizeOf(replaced);
    this.makeRoom();
  }

  async sweep(): Promise<number> {
    const { prisma } = this.database;
    let removed = 0;
    for (;;) {
      const some = await prisma.$queryRaw<Removed[]>`
        DELETE FROM content_cache_entry WHERE store_id = ${this.blobs.id}::uuid AND key IN (
          SELECT key FROM content_cache_entry WHERE store_id = ${this.blobs.id}::uuid AND expires_at <= ${this.clock.now()}
          LIMIT ${REMOVED_AT_ONCE_MAX}) RETURNING blob_key, size_bytes`;
      await this.dropBlobs(some);
      removed += some.length;
      if (some.length < REMOVED_AT_ONCE_MAX) break;
    }
    // Counted again, as other processes with the same store add to it. Also deletes entries of stores that no longer exist.
    this.bytes = null;
    await prisma.contentCacheEntry.deleteMany({ where: { expiresAt: { lte: new Date(this.clock.now().getTime() - HOUR_MS) } } });
    this.makeRoom();
    await this.making;
    return removed;
  }

  async findNamed(keys: readonly string[]): Promise<ReadonlySet<string>> {
    const entries = await this.database.prisma.contentCacheEntry.findMany({
      where: { storeId: this.blobs.id, blobKey: { in: [...keys] } },
      select: { blobKey: true },
    });
    return new Set(entries.map(({ blobKey }) => blobKey));
  }

  async close(): Promise<void> {
    if (this.noteTimer) clearTimeout(this.noteTimer);
    await this.making;
    await this.writeUses();
  }

  private async findEntry(key: Key): Promise<ContentCacheEntryModel | null> {
    const entry = await this.database.prisma.contentCacheEntry.findUnique({ where: { storeId_key: { storeId: this.blobs.id, key } } });
    return entry && entry.expiresAt > this.clock.now() ? entry : null;
  }

  /** The cache's blobs are not synced to disk, so one may be truncated after a power failure. Such a one is deleted. */
  private async isWhole(key: Key, { blobKey, sizeBytes }: ContentCacheEntryModel, foundBytes: number | undefined): Promise<boolean> {
    if (foundBytes === sizeBytes) this.noteUse(key);
    else await this.removeIfUnchanged(key, blobKey);
    return foundBytes === sizeBytes;
  }

  private noteUse(key: Key): void {
    this.used.set(Buffer.from(key).toString("hex"), key);
    this.noteTimer ??= setTimeout(() => {
      this.noteTimer = null;
      this.writeUses().catch((error: unknown) => this.log.warn({ err: error }, "could not note which cached answers were used"));
    }, CONTENT_CACHE_NOTE_MS).unref();
  }

  private async writeUses(): Promise<void> {
    const keys = [...this.used.values()];
    if (keys.length === 0) return;
    this.used = new Map();
    await this.database.prisma.contentCacheEntry.updateMany({
      where: { storeId: this.blobs.id, key: { in: keys } },
      data: { usedAt: this.clock.now() },
    });
  }

  /** In the background, one run at a time; later additions are counted by the next run. */
  private makeRoom(): void {
    if (this.bytes !== null && this.bytes <= this.bytesMax) return;
    this.making ??= this.removeLeastUsed()
      .catch((error: unknown) => this.log.warn({ err: error }, "could not make room in the content cache"))
      .finally(() => {
        this.making = null;
      });
  }

  private async removeLeastUsed(): Promise<void> {
    const { prisma } = this.database;
    const counted = await prisma.contentCacheEntry.aggregate({ where: { storeId: this.blobs.id }, _sum: { sizeBytes: true } });
    this.bytes = counted._sum.sizeBytes ?? 0;
    if (this.bytes <= this.bytesMax) return;
    await this.writeUses();
    const target = (this.bytesMax / 100) * EMPTIED_TO_PERCENT;
    while (this.bytes > target) {
      const removed = await prisma.$queryRaw<Removed[]>`
        WITH oldest AS (
          SELECT key, sum(size_bytes) OVER (ORDER BY used_at, key) - size_bytes AS before FROM content_cache_entry
          WHERE store_id = ${this.blobs.id}::uuid ORDER BY used_at, key LIMIT ${REMOVED_AT_ONCE_MAX})
        DELETE FROM content_cache_entry e USING oldest o
        WHERE e.store_id = ${this.blobs.id}::uuid AND e.key = o.key AND o.before < ${Math.ceil(this.bytes - target)}
        RETURNING e.blob_key, e.size_bytes`;
      if (removed.length === 0) return;
      await this.dropBlobs(removed);
      this.bytes -= sizeOf(removed);
    }
  }

  private async removeIfUnchanged(key: Key, blobKey: string): Promise<void> {
    await this.database.prisma.contentCacheEntry.deleteMany({ where: { storeId: this.blobs.id, key, blobKey } });
    await this.blobs.delete(blobKey);
  }

  private async dropBlobs(removed: readonly Removed[]): Promise<void> {
    for (const { blob_key } of removed) await this.blobs.delete(blob_key);
  }
}

function toAnswer({ answer }: ContentCacheEntryModel): { readonly contentType: GeneratedType; readonly receipt: Receipt } {
  const { contentType, receipt } = answer as unknown as StoredAnswer;
  return { contentType: closedTypeOf(contentType), receipt: fromStoredReceipt(receipt) };
}

function sizeOf(removed: readonly Removed[]): number {
  return removed.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
}
