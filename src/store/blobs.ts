/**
 * Blobs: bytes too large for the database, by key (docs/architecture.md#stores). The database decides meaning and lifetime of a blob; one
 * that it does not know is an orphan, and swept.
 */
import type { Readable } from "node:stream";

export interface BlobInfo {
  readonly key: string;
  readonly sizeBytes: number;
  readonly writtenAt: Date;
  /**
   * The type given at the upload; null in stores without types, such as directories, and in lists. The database decides the served type: a
   * presigned upload accepts only the signed one.
   */
  readonly contentType: string | null;
}

/** Bytes `start` to `end`, inclusive, counted from 0. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface PutOptions {
  /** False: may be lost in a crash, but is never truncated. */
  readonly isDurable?: boolean;
  /** For stores with types. */
  readonly contentType?: string;
}

/**
 * Received bytes that are not stored yet: a file of this process, readable any number of times. Save or discard it; drafts of an ended
 * process are deleted at its next start.
 */
export interface BlobDraft {
  readonly sizeBytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Path of the file, for libraries that need one. */
  readonly path: string;
  open(range?: ByteRange): Readable;
  /** Ends the draft. Throws BlobExists for an existing key with `isNew`. */
  save(key: string, options?: PutOptions & { readonly isNew?: boolean }): Promise<void>;
  /** Ends the draft; after `save` it does nothing. */
  discard(): Promise<void>;
}

export class BlobExists extends Error {
  override readonly name = "BlobExists";
}

/** More bytes than allowed; none were kept. */
export class BlobTooLarge extends Error {
  override readonly name = "BlobTooLarge";

  constructor(readonly sizeBytesMax: number) {
    super(`More than ${sizeBytesMax} bytes.`);
  }
}

/** A request that its holder may send once, without a key of the gateway. */
export interface PresignedUpload {
  readonly url: string;
  readonly method: "PUT";
  /** Headers that must be sent unchanged. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface PresignPutOptions {
  /** The exact type to send. */
  readonly contentType: string;
  /** The exact length to send. */
  readonly sizeBytes: number;
  readonly expiresInSeconds: number;
}

export interface PresignGetOptions {
  readonly expiresInSeconds: number;
  /** The served type, independent of the stored one. */
  readonly contentType: string;
  /** The whole header Content-Disposition, in ASCII. */
  readonly disposition: string;
  /** The whole header Cache-Control; absent: none. */
  readonly cacheControl?: string;
}

export interface BlobStore {
  /** A UUID of the store that outlives the process. */
  readonly id: string;
  /**
   * Resolves with the size once the blob is readable and durable. An existing blob is replaced atomically; readers of the old bytes
   * continue. When the content fails, nothing changes.
   */
  put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, options?: PutOptions): Promise<number>;
  /**
   * Receives bytes whose key is known only afterwards, hashing them on the way without keeping them in memory. Throws BlobTooLarge at the
   * first byte too many, and errors of `content`, leaving nothing behind.
   */
  receive(content: AsyncIterable<Uint8Array>, options: { readonly sizeBytesMax: number }): Promise<BlobDraft>;
  /** Null when there is none. */
  head(key: string): Promise<BlobInfo | null>;
  /** The bytes, or a range; null for a missing blob. Destroy the stream when it is not read to its end. */
  open(key: string, range?: ByteRange): Promise<Readable | null>;
  /** All bytes of a small blob. */
  read(key: string): Promise<Buffer | null>;
  /** A missing blob is no error. */
  delete(key: string): Promise<void>;
  /** All blobs whose key begins with `<folder>/`. */
  list(folder: string): AsyncIterable<BlobInfo>;
  /** Presigns an upload straight to the store. Refused when the key exists by then: one URL, one upload. */
  presignPut(key: string, options: PresignPutOptions): Promise<PresignedUpload>;
  /** Presigns a download straight from the store, with ranges. Does not check that the blob exists. */
  presignGet(key: string, options: PresignGetOptions): Promise<string>;
}

/** `<folder>/<name>`: valid in every kind of store, and without path traversal. */
const KEY_PATTERN = /^([a-z][a-z0-9-]{0,31})\/([A-Za-z0-9][A-Za-z0-9._-]{0,199})$/;

/** Throws a plain Error: keys are made by the gateway, so a bad one is its own fault. */
export function splitBlobKey(key: string): { readonly folder: string; readonly name: string } {
  const match = KEY_PATTERN.exec(key);
  if (!match) throw new Error(`Not the key of a blob: ${JSON.stringify(key)}`);
  return { folder: match[1] as string, name: match[2] as string };
}
