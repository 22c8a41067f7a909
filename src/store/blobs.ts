/**
 * Blobs: bytes that are too large for the database, by key (architecture, "Stores"). What a blob is and how long it is wanted, the
 * database knows; a blob that it does not know of is an orphan, and swept.
 */
import type { Readable } from "node:stream";

export interface BlobInfo {
  readonly key: string;
  readonly sizeBytes: number;
  readonly writtenAt: Date;
}

/** Bytes `start` to `end`, both included, counted from 0. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface PutOptions {
  /** False: losing it in a crash is no harm. It is never read in half all the same. */
  readonly isDurable?: boolean;
}

export interface BlobStore {
  /** A UUID that outlives the process: what is in another store is not in this one. */
  readonly id: string;
  /**
   * Resolves with the size once all of it can be read, also after a crash. What the key named before is replaced at once, never
   * mixed; readers of the old bytes read on. When the content fails on the way, nothing has changed.
   */
  put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, options?: PutOptions): Promise<number>;
  /** Null when there is none. */
  head(key: string): Promise<BlobInfo | null>;
  /** The bytes, or a part of them; null when there is no such blob. Destroy the stream when it is not read to its end. */
  open(key: string, range?: ByteRange): Promise<Readable | null>;
  /** The whole of a small one. */
  read(key: string): Promise<Buffer | null>;
  /** One that is not there is no failure. */
  delete(key: string): Promise<void>;
  /** Every blob whose key begins with `<folder>/`. */
  list(folder: string): AsyncIterable<BlobInfo>;
}

/** `<folder>/<name>`: the same on every kind of store, and never a way out of a directory. */
const KEY_PATTERN = /^([a-z][a-z0-9-]{0,31})\/([A-Za-z0-9][A-Za-z0-9._-]{0,199})$/;

/** Throws a plain Error: keys are made by the gateway, so a bad one is a fault of its own. */
export function splitBlobKey(key: string): { readonly folder: string; readonly name: string } {
  const match = KEY_PATTERN.exec(key);
  if (!match) throw new Error(`Not the key of a blob: ${JSON.stringify(key)}`);
  return { folder: match[1] as string, name: match[2] as string };
}
