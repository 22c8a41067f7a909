/**
 * Blobs: bytes that are too large for the database, by key (docs/architecture.md#stores). What a blob is and how long it is wanted, the
 * database knows; a blob that it does not know of is an orphan, and swept.
 */
import type { Readable } from "node:stream";

export interface BlobInfo {
  readonly key: string;
  readonly sizeBytes: number;
  readonly writtenAt: Date;
  /**
   * What the store was told when the bytes came; null when it keeps no types, as a directory does, and in lists. What a blob is served
   * as, the database knows: a presigned upload takes the type that it was signed for and no other.
   */
  readonly contentType: string | null;
}

/** Bytes `start` to `end`, both included, counted from 0. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface PutOptions {
  /** False: losing it in a crash is no harm. It is never read in half all the same. */
  readonly isDurable?: boolean;
  /** For stores that keep types. */
  readonly contentType?: string;
}

/**
 * Bytes that came and are not in the store yet: a file of this process's own, which may be read as often as one likes. Save it or
 * discard it; what is left of a process that ended is removed at its next start.
 */
export interface BlobDraft {
  readonly sizeBytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Of the file, for libraries that read one. */
  readonly path: string;
  open(range?: ByteRange): Readable;
  /** Afterwards the draft is gone. Throws BlobExists when `isNew` is asked for and the key names something already. */
  save(key: string, options?: PutOptions & { readonly isNew?: boolean }): Promise<void>;
  /** Afterwards the draft is gone; also after `save`, of which it undoes nothing. */
  discard(): Promise<void>;
}

/** The key of an upload that must be new names something. */
export class BlobExists extends Error {
  override readonly name = "BlobExists";
}

/** More bytes than the reader may send; nothing of them was kept. */
export class BlobTooLarge extends Error {
  override readonly name = "BlobTooLarge";

  constructor(readonly sizeBytesMax: number) {
    super(`More than ${sizeBytesMax} bytes.`);
  }
}

/** A request that whoever has it may send once, without a key of the gateway's. */
export interface PresignedUpload {
  readonly url: string;
  readonly method: "PUT";
  /** All of them must be sent as they are. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface PresignPutOptions {
  /** The type to be sent, without a byte of it changed. */
  readonly contentType: string;
  /** The exact length to be sent. */
  readonly sizeBytes: number;
  readonly expiresInSeconds: number;
}

export interface PresignGetOptions {
  readonly expiresInSeconds: number;
  /** What the bytes are served as, whatever the store was told. */
  readonly contentType: string;
  /** The whole header Content-Disposition, in ASCII. */
  readonly disposition: string;
  /** The whole header Cache-Control; without it nothing is said. */
  readonly cacheControl?: string;
}

export interface BlobStore {
  /** A UUID that outlives the process: what is in another store is not in this one. */
  readonly id: string;
  /**
   * Resolves with the size once all of it can be read, also after a crash. What the key named before is replaced at once, never
   * mixed; readers of the old bytes read on. When the content fails on the way, nothing has changed.
   */
  put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, options?: PutOptions): Promise<number>;
  /**
   * Takes in bytes whose key is not known before all of them are there, hashing them on the way and holding none of them in memory.
   * Throws BlobTooLarge at the first byte too many, and whatever `content` throws; nothing is left of them then.
   */
  receive(content: AsyncIterable<Uint8Array>, options: { readonly sizeBytesMax: number }): Promise<BlobDraft>;
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
  /** An upload straight to the store. It is refused when the key names something by then: one URL, one upload. */
  presignPut(key: string, options: PresignPutOptions): Promise<PresignedUpload>;
  /** The address of a download straight from the store. Ranges work. Whether the blob is there is not looked at. */
  presignGet(key: string, options: PresignGetOptions): Promise<string>;
}

/** `<folder>/<name>`: the same on every kind of store, and never a way out of a directory. */
const KEY_PATTERN = /^([a-z][a-z0-9-]{0,31})\/([A-Za-z0-9][A-Za-z0-9._-]{0,199})$/;

/** Throws a plain Error: keys are made by the gateway, so a bad one is a fault of its own. */
export function splitBlobKey(key: string): { readonly folder: string; readonly name: string } {
  const match = KEY_PATTERN.exec(key);
  if (!match) throw new Error(`Not the key of a blob: ${JSON.stringify(key)}`);
  return { folder: match[1] as string, name: match[2] as string };
}
