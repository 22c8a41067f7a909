/**
 * Documents that clients have registered under their digests, of one process or shared through Redis. They may be forgotten: whoever asks
 * for one that is gone sends it again. That a text has the digest that it is kept under is for whoever keeps it to see to.
 */
import { LRUCache } from "lru-cache";

/** Unspecified: how many a process keeps in memory, and how large together. */
const DOCUMENTS_MAX = 10_000;
const DOCUMENTS_BYTES_MAX = 64 * 1024 * 1024;
/** Unspecified: how long Redis keeps each. */
export const DOCUMENT_SECONDS = 24 * 60 * 60;

export interface DocumentStore {
  /** Null when it is not known. Never rejects. */
  find(digest: string): Promise<string | null>;
  /** True without asking anybody else. */
  has(digest: string): boolean;
  /** Never rejects. */
  keep(digest: string, text: string): Promise<void>;
  close(): void;
}

/** The one that was not asked for longest goes first. */
export class MemoryDocuments implements DocumentStore {
  private readonly texts = new LRUCache<string, string>({
    maxSize: DOCUMENTS_BYTES_MAX,
    // Short ones count for more than they have, which bounds their number.
    sizeCalculation: (text) => Math.max(Buffer.byteLength(text), Math.ceil(DOCUMENTS_BYTES_MAX / DOCUMENTS_MAX)),
  });

  async find(digest: string): Promise<string | null> {
    return this.texts.get(digest) ?? null;
  }

  has(digest: string): boolean {
    return this.texts.has(digest);
  }

  async keep(digest: string, text: string): Promise<void> {
    this.texts.set(digest, text);
  }

  close(): void {
    this.texts.clear();
  }
}
