/**
 * Content-addressed files of the media host (docs/spec/media.md#content-addressed-files): publicly readable, expired 14 days after the last
 * upload. For uploads of callers, and for outputs of generations as links.
 *
 * 0. The bytes go to a file of this process, are hashed on the way, inspected, and refused or stored.
 * 1. The row is written first and reserves the id for these bytes; other bytes with the same id are refused.
 * 2. The blob follows when it does not exist. Until then, the file does not exist for readers.
 * 3. `sweep` deletes the blob while holding the row's lock, so that bytes uploaded at that moment are written again.
 */
import type { Readable } from "node:stream";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError, conflict, invalidInput, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { MediaFile } from "../../providers/media.js";
import { type BlobDraft, type BlobStore, BlobTooLarge, type ByteRange } from "../../store/blobs.js";
import type { Database } from "../../store/database.js";
import { requireAccount, requireCaller } from "../access/permissions.js";
import { parseInput, storableText } from "../requests/input.js";
import { MEDIA_FILE_DAYS, MEDIA_NAME_CHARS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "./limits.js";
import type { MediaQuotas, MediaTransaction } from "./media-quotas.js";
import { inspectGenerated, inspectUpload, servedAs } from "./media-types.js";
import { PictureStripper } from "./picture-stripper.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const ID_PATTERN = /^[0-9a-f]{16}$/;
const SWEPT_AT_ONCE_MAX = 100;
/** Milliseconds: a bucket may take long for a hundred deletions. */
const SWEEP_TRANSACTION = { maxWait: 10_000, timeout: 60_000 };

export const MEDIA_FOLDER = "media";

const uploadName = z.object({ name: storableText.min(1).max(MEDIA_NAME_CHARS_MAX).nullable() });
/** Default types of clients that were given none. */
const UNTOLD_TYPES = /^application\/(?:octet-stream|x-www-form-urlencoded)\b/i;

export interface MediaLink {
  /** The first 16 hexadecimal digits of the SHA-256. */
  readonly id: string;
  readonly url: string;
}

export interface UploadedMedia extends MediaLink {
  readonly contentType: string;
  readonly size: number;
  /** The bytes were already stored. */
  readonly duplicate: boolean;
}

export interface StoredMedia {
  readonly id: string;
  /** In hexadecimal, whole. */
  readonly sha256: string;
  /** The stored type; `servedAs` decides the served one. */
  readonly contentType: string;
  readonly sizeBytes: number;
  readonly name: string | null;
  /** Time of the first upload. */
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** The bytes, or a range of them; null when they were deleted meanwhile. */
  readonly open: (range?: ByteRange) => Promise<Readable | null>;
}

/** Received bytes of an upload on this process's disk, before they are stored. */
export interface ReceivedMedia {
  readonly draft: BlobDraft;
  /** The form field, for error messages; null when the file is the whole body. */
  readonly field: string | null;
}

export interface MediaUpload extends ReceivedMedia {
  /** Null: not stated. */
  readonly contentType: string | null;
  readonly name: string | null;
  /** Remove metadata such as place, time and device from an image. */
  readonly strip: boolean;
}

interface Incoming {
  readonly accountId: string;
  readonly draft: BlobDraft;
  readonly contentType: string;
  readonly name: string | null;
  /** Counted against the account's quota. */
  readonly isCounted: boolean;
}

interface ClaimedRow {
  readonly sha256: Uint8Array;
  readonly contentType: string;
  readonly isNew: boolean;
}

export interface MediaLinksDependencies {
  readonly database: Database;
  readonly blobs: BlobStore;
  readonly quotas: MediaQuotas;
  readonly clock: Clock;
  /** Address of the media host, without a trailing slash. */
  readonly mediaUrl: () => string;
}

export class MediaLinks {
  private readonly database: Database;
  private readonly blobs: BlobStore;
  private readonly clock: Clock;
  private readonly stripper: PictureStripper;

  constructor(private readonly deps: MediaLinksDependencies) {
    ({ database: this.database, blobs: this.blobs, clock: this.clock } = deps);
    this.stripper = new PictureStripper(this.blobs);
  }

  /** Links to a generated file. Resolves once the link works. */
  async publish(ctx: RequestContext, { bytes, contentType: declared }: MediaFile): Promise<MediaLink> {
    const { accountId } = requireCaller(ctx);
    const contentType = await inspectGenerated(bytes, declared);
    const draft = await this.blobs.receive(onePiece(bytes), { sizeBytesMax: bytes.byteLength });
    try {
      // It was paid for, so no quota applies.
      const { id, url } = await this.store({ accountId, draft, contentType, name: null, isCounted: false });
      return { id, url };
    } finally {
      await draft.discard();
    }
  }

  /**
   * Receives the bytes of an upload, for `upload` or `discard`. Throws SERVICE_UNAVAILABLE when the disk is full, PAYLOAD_TOO_LARGE,
   * BAD_REQUEST for an empty file, and errors of `content`, leaving nothing behind.
   */
  async receive(ctx: RequestContext, content: AsyncIterable<Uint8Array>, field: string | null): Promise<ReceivedMedia> {
    requireAccount(ctx);
    const space = await this.deps.quotas.promiseSpace(MEDIA_UPLOAD_BYTES_MAX);
    const draft = await this.blobs
      .receive(space.watch(content), { sizeBytesMax: MEDIA_UPLOAD_BYTES_MAX })
      .catch((error: unknown) => {
        throw error instanceof BlobTooLarge ? tooLarge(field) : error;
      })
      .finally(() => space.end());
    if (draft.sizeBytes > 0) return { draft, field };
    await draft.discard();
    throw invalidInput("The file is empty.", field ?? undefined);
  }

  /** Deletes received bytes. */
  async discard({ draft }: ReceivedMedia): Promise<void> {
    await draft.discard();
  }

  /**
   * Stores received bytes, or deletes them. Throws BAD_REQUEST, PAYLOAD_TOO_LARGE when the account has no room, or CONFLICT when another
   * file has the id.
   */
  async upload(ctx: RequestContext, { draft, contentType, ...upload }: MediaUpload): Promise<UploadedMedia> {
    const drafts = [draft];
    try {
      const { accountId } = requireAccount(ctx);
      const { name } = parseInput(uploadName, { name: upload.name });
      const declared = contentType === null || UNTOLD_TYPES.test(contentType) ? null : contentType;
      const found = await inspectUpload(draft, declared);
      const kept = upload.strip ? await this.stripper.strip(draft, found) : draft;
      drafts.push(kept);
      return await this.store({ accountId, draft: kept, contentType: found, name, isCounted: true });
    } finally {
      for (const each of drafts) await each.discard();
    }
  }

  /** Both steps for a file in memory. */
  async uploadBytes(ctx: RequestContext, bytes: Uint8Array, about: Omit<MediaUpload, "draft">): Promise<UploadedMedia> {
    return this.upload(ctx, { ...about, ...(await this.receive(ctx, onePiece(bytes), about.field)) });
  }

  /** Public. Throws NOT_FOUND for a missing or expired file. */
  async get(id: string): Promise<StoredMedia> {
    const [file] = await this.getMany([id]);
    if (!file) throw notFound("media file");
    return file;
  }

  /** Public. Returns existing files by id. */
  async getMany(ids: readonly string[]): Promise<StoredMedia[]> {
    const wanted = ids.filter(isMediaFileId);
    if (wanted.length === 0) return [];
    const rows = await this.database.prisma.mediaFile.findMany({ where: { id: { in: wanted }, expiresAt: { gt: this.clock.now() } } });
    const files = await Promise.all(
      rows.map(async ({ id, sha256: digest, contentType, sizeBytes, name, createdAt, expiresAt }) => {
        const sha256 = Buffer.from(digest).toString("hex");
        if (!(await this.blobs.head(keyOf(sha256)))) return null;
        const open = (range?: ByteRange) => this.blobs.open(keyOf(sha256), range);
        return { id, sha256, contentType, sizeBytes, name, createdAt, expiresAt, open };
      }),
    );
    return files.filter((file) => file !== null);
  }

  /** Deletes expired files. Returns their number. */
  async sweep(): Promise<number> {
    let removed = 0;
    for (;;) {
      const swept = await this.sweepSome();
      removed += swept;
      if (swept < SWEPT_AT_ONCE_MAX) return removed;
    }
  }

  /** Which of these blobs belong to a file. */
  async findNamed(keys: readonly string[]): Promise<ReadonlySet<string>> {
    const hashes = keys.map((key) => new Uint8Array(Buffer.from(key.slice(MEDIA_FOLDER.length + 1), "hex")));
    const rows = await this.database.prisma.mediaFile.findMany({ where: { sha256: { in: hashes } }, select: { sha256: true } });
    return new Set(rows.map(({ sha256 }) => keyOf(Buffer.from(sha256).toString("hex"))));
  }

  private async store(file: Incoming): Promise<UploadedMedia> {
    const { sha256, sizeBytes } = file.draft;
    const digest = Buffer.from(sha256, "hex");
    const id = sha256.slice(0, 16);
    const row = await this.claim(id, file);
    if (!digest.equals(row.sha256)) throw conflict("Another file has this id. Change the file, if only by a byte.");
    // A blob beside a new row is left over, and may be about to be deleted.
    const isStored = !row.isNew && (await this.blobs.head(keyOf(sha256))) !== null;
    if (!isStored) await file.draft.save(keyOf(sha256), { contentType: (await servedAs(row.contentType)).contentType });
    return { id, url: `${this.deps.mediaUrl()}/${id}`, contentType: row.contentType, size: sizeBytes, duplicate: isStored };
  }

  /** Only bytes that are not stored yet count against the account's quota. */
  private async claim(id: string, file: Incoming): Promise<ClaimedRow> {
    const known = file.isCounted && (await this.database.prisma.mediaFile.findUnique({ where: { id }, select: { id: true } }));
    if (known || !file.isCounted) return this.claimRow(this.database.prisma, id, file);
    return this.deps.quotas.reserve(file.accountId, file.draft.sizeBytes, (transaction) => this.claimRow(transaction, id, file));
  }

  /** The row of the id: this file's with its time renewed, or another file's unchanged. */
  private async claimRow(client: Pick<MediaTransaction, "$queryRaw">, id: string, file: Incoming): Promise<ClaimedRow> {
    const { sha256: hash, sizeBytes } = file.draft;
    const sha256 = new Uint8Array(Buffer.from(hash, "hex"));
    const now = this.clock.now();
    const expiresAt = new Date(now.getTime() + MEDIA_FILE_DAYS * DAY_MS);
    const rows = await client.$queryRaw<ClaimedRow[]>`
      INSERT INTO media_file AS f (id, sha256, account_id, content_type, size_bytes, name, created_at, expires_at)
      VALUES (${id}, ${sha256}, ${file.accountId}::uuid, ${file.contentType}, ${sizeBytes}, ${file.name}, ${now}, ${expiresAt})
      ON CONFLICT (id) DO UPDATE
      SET expires_at = CASE WHEN f.sha256 = EXCLUDED.sha256 THEN greatest(f.expires_at, EXCLUDED.expires_at) ELSE f.expires_at END
      RETURNING sha256, content_type AS "contentType", xmax = 0 AS "isNew"`;
    return rows[0] as ClaimedRow;
  }

  private sweepSome(): Promise<number> {
    return this.database.prisma.$transaction(async (transaction) => {
      const expired = await transaction.$queryRaw<{ id: string; sha256: Uint8Array }[]>`
        SELECT id, sha256 FROM media_file WHERE expires_at <= ${this.clock.now()} ORDER BY expires_at LIMIT ${SWEPT_AT_ONCE_MAX}
        FOR UPDATE SKIP LOCKED`;
      await Promise.all(expired.map(({ sha256 }) => this.blobs.delete(keyOf(Buffer.from(sha256).toString("hex")))));
      await transaction.mediaFile.deleteMany({ where: { id: { in: expired.map(({ id }) => id) } } });
      return expired.length;
    }, SWEEP_TRANSACTION);
  }
}

export function isMediaFileId(id: string): boolean {
  return ID_PATTERN.test(id);
}

function tooLarge(field: string | null): AppError {
  return new AppError(
    "PAYLOAD_TOO_LARGE",
    `The file is larger than ${MEDIA_UPLOAD_BYTES_MAX} bytes.`,
    field === null ? {} : { param: field },
  );
}

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function keyOf(sha256: string): string {
  return `${MEDIA_FOLDER}/${sha256}`;
}
