/**
 * Uploads and downloads at addresses signed by the gateway, for blobs on its own disk; object stores sign their own. The signature is the
 * credential, checked first. An address takes one upload at a time, so that no more arrives than its part of the quota.
 */
import type { Readable } from "node:stream";
import { AppError, conflict, invalidInput, notFound, permissionDenied } from "../../errors.js";
import type { BadBlobUrl, BlobUrls, SignedUpload } from "../../store/blob-urls.js";
import { BlobExists, type BlobStore, BlobTooLarge, type ByteRange } from "../../store/blobs.js";
import type { MediaQuotas } from "./media-quotas.js";

const IN_USE_RETRY_SECONDS = 5;

export interface BlobAddress {
  readonly key: string;
  readonly query: URLSearchParams;
}

export interface BlobUpload {
  /** The whole header; null without one. */
  readonly contentType: string | null;
  /** As declared; null when unknown. */
  readonly sizeBytes: number | null;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface BlobDownload {
  readonly contentType: string;
  readonly disposition: string;
  readonly cacheControl: string | null;
  readonly sizeBytes: number;
  readonly writtenAt: Date;
  /** Null when it was deleted meanwhile. */
  readonly open: (range?: ByteRange) => Promise<Readable | null>;
}

export class BlobTransfers {
  /** Keys of uploads under way: blobs with such addresses belong to this process only. */
  private readonly arriving = new Set<string>();

  constructor(
    private readonly blobs: BlobStore,
    private readonly urls: BlobUrls | null,
    private readonly quotas: Pick<MediaQuotas, "promiseSpace">,
  ) {}

  /**
   * Resolves once the blob can be read. Throws FORBIDDEN for an invalid or expired address, BAD_REQUEST for another type or too few bytes,
   * PAYLOAD_TOO_LARGE for too many, CONFLICT when the address was used or is in use, SERVICE_UNAVAILABLE when the disk is full or fills up.
   */
  async upload({ key, query }: BlobAddress, { contentType, sizeBytes, content }: BlobUpload): Promise<{ readonly sizeBytes: number }> {
    const allowed = assertGood(this.ownUrls().readUpload(key, query));
    if (contentType !== allowed.contentType) throw invalidInput(`This address takes the type ${allowed.contentType}.`, "Content-Type");
    if (sizeBytes !== null) assertLength(sizeBytes, allowed.sizeBytes);
    if (this.arriving.has(key)) throw inUse();
    this.arriving.add(key);
    try {
      await this.store(key, allowed, content);
    } finally {
      this.arriving.delete(key);
    }
    return { sizeBytes: allowed.sizeBytes };
  }

  /** Throws FORBIDDEN as above, or NOT_FOUND. */
  async get({ key, query }: BlobAddress): Promise<BlobDownload> {
    const allowed = assertGood(this.ownUrls().readDownload(key, query));
    const blob = await this.blobs.head(key);
    if (!blob) throw notFound("file");
    const { sizeBytes, writtenAt } = blob;
    return { ...allowed, sizeBytes, writtenAt, open: (range) => this.blobs.open(key, range) };
  }

  private async store(key: string, { contentType, sizeBytes }: SignedUpload, content: AsyncIterable<Uint8Array>): Promise<void> {
    if (await this.blobs.head(key)) throw alreadyUsed();
    const space = await this.quotas.promiseSpace(sizeBytes);
    const draft = await this.blobs
      .receive(space.watch(content), { sizeBytesMax: sizeBytes })
      .catch((error: unknown) => {
        throw error instanceof BlobTooLarge ? tooLong(sizeBytes) : error;
      })
      .finally(() => space.end());
    try {
      assertLength(draft.sizeBytes, sizeBytes);
      await draft.save(key, { isNew: true, contentType });
    } catch (error) {
      throw error instanceof BlobExists ? alreadyUsed() : error;
    } finally {
      await draft.discard();
    }
  }

  private ownUrls(): BlobUrls {
    if (!this.urls) throw notFound("path");
    return this.urls;
  }
}

function assertGood<Allowed extends object>(allowed: Allowed | BadBlobUrl): Allowed {
  if (typeof allowed === "object") return allowed;
  throw permissionDenied(allowed === "expired" ? "This address has expired." : "The signature of this upload address is invalid.");
}

function assertLength(given: number, signed: number): void {
  if (given > signed) throw tooLong(signed);
  if (given < signed) throw invalidInput(`This address takes exactly ${signed} bytes; there are ${given}.`, "Content-Length");
}

function tooLong(signed: number): AppError {
  return new AppError("PAYLOAD_TOO_LARGE", `This address takes exactly ${signed} bytes.`);
}

function alreadyUsed(): AppError {
  return conflict("This upload address has been used.");
}

/** A retry after a broken connection succeeds once this process has noticed the break. */
function inUse(): AppError {
  return new AppError("CONFLICT", "An upload to this address is under way.", { retryAfterSeconds: IN_USE_RETRY_SECONDS });
}
