/**
 * Documents that clients registered by digest, of one process or shared through Redis. They may be evicted: clients then send them again.
 * The caller checks that a text has its digest.
 */
import { LRUCache } from "lru-cache";

/** Unspecified: number and total size in a process's memory. */
const DOCUMENTS_MAX = 10_000;
const DOCUMENTS_BYTES_MAX = 64 * 1024 * 1024;
/** Unspecified: lifetime in Redis. */
export const DOCUMENT_SECONDS = 24 * 60 * 60;

export interface DocumentStore {
  /** Null when unknown. Never rejects. */
  find(digest: string): Promise<string | null>;
  /** True if this process has it. */
  has(digest: string): boolean;
  /** Never rejects. */
  keep(digest: string, text: string): Promise<void>;
  close(): void;
}

/** Evicts the least recently used. */
export class MemoryDocuments implements DocumentStore {
  private readonly texts = new LRUCache<string, string>({
    maxSize: DOCUMENTS_BYTES_MAX,
    // Short documents count as longer, which bounds their number.
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
