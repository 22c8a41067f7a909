/**
 * The media host's files (Spec 4.8, variant A; decisions "Media"): content-addressed, public to read, gone 14 days after they were
 * last brought. What a caller uploads, and what a generation answers as a link.
 *
 * 1. The row is written first and holds the id for these bytes; other bytes with the same id are refused.
 * 2. The blob follows when it is not there yet. Until it is, the file does not exist for readers.
 * 3. `sweep` removes the blob while it holds the row's lock, so that bytes which are brought again at that moment are written again.
 */
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import * as z from "zod";
import type { RequestContext } from "../context.js";
import { AppError, conflict, invalidInput, notFound } from "../errors.js";
import type { Clock } from "../lib/clock.js";
import { MEDIA_FILE_DAYS, MEDIA_NAME_CHARS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../limits-disk.js";
import type { MediaFile } from "../providers/media.js";
import type { BlobStore, ByteRange } from "../store/blobs.js";
import type { Database } from "../store/database.js";
import { parseInput, storableText } from "./input.js";
import { inspectGenerated, inspectUpload } from "./media-types.js";
import { requireCaller } from "./permissions.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const ID_PATTERN = /^[0-9a-f]{16}$/;
const SWEPT_AT_ONCE_MAX = 100;

export const MEDIA_FOLDER = "media";

const uploadName = z.object({ name: storableText.min(1).max(MEDIA_NAME_CHARS_MAX).nullable() });
/** What clients send of themselves when nobody told them what the bytes are. */
const UNTOLD_TYPES = /^application\/(?:octet-stream|x-www-form-urlencoded)\b/i;

export interface MediaLink {
  /** The first 16 hexadecimal digits of the SHA-256. */
  readonly id: string;
  readonly url: string;
}

export interface UploadedMedia extends MediaLink {
  readonly contentType: string;
  readonly size: number;
  /** The same bytes were there already. */
  readonly duplicate: boolean;
}

export interface StoredMedia {
  readonly id: string;
  /** In hexadecimal, whole. */
  readonly sha256: string;
  readonly contentType: string;
  readonly sizeBytes: number;
  readonly name: string | null;
  /** When it was first brought. */
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** The bytes, or a part of them; null when they were removed meanwhile. */
  readonly open: (range?: ByteRange) => Promise<Readable | null>;
}

export interface MediaUpload {
  readonly bytes: Uint8Array;
  /** The field that it came in, for refusals; null when it was the whole body. */
  readonly field: string | null;
  /** Null: not said. */
  readonly contentType: string | null;
  readonly name: string | null;
}

interface Incoming {
  readonly accountId: string;
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly name: string | null;
}

interface ClaimedRow {
  readonly sha256: Uint8Array;
  readonly contentType: string;
  readonly isNew: boolean;
}

export class MediaLinks {
  constructor(
    private readonly database: Database,
    private readonly blobs: BlobStore,
    private readonly clock: Clock,
    /** Where the media host is reached, without a slash at its end. */
    private readonly mediaUrl: () => string,
  ) {}

  /** A link to a file that was generated for the caller. Resolves once the link works. */
  async publish(ctx: RequestContext, { bytes, contentType }: MediaFile): Promise<MediaLink> {
    const { accountId } = requireCaller(ctx);
    const { id, url } = await this.store({ accountId, bytes, contentType: await inspectGenerated(bytes, contentType), name: null });
    return { id, url };
  }

  /** Throws BAD_REQUEST, PAYLOAD_TOO_LARGE, or CONFLICT for bytes whose id another file has. */
  async upload(ctx: RequestContext, upload: MediaUpload): Promise<UploadedMedia> {
    const { accountId } = requireCaller(ctx);
    const { bytes, contentType } = upload;
    assertSize(upload);
    const { name } = parseInput(uploadName, { name: upload.name });
    const declared = contentType === null || UNTOLD_TYPES.test(contentType) ? null : contentType;
    return this.store({ accountId, bytes, contentType: await inspectUpload(bytes, declared), name });
  }

  /** Open to all. Throws NOT_FOUND for what is not there, or no more. */
  async get(id: string): Promise<StoredMedia> {
    const row = isMediaFileId(id) ? await this.database.prisma.mediaFile.findUnique({ where: { id } }) : null;
    if (!row || row.expiresAt <= this.clock.now()) throw notFound("media file");
    const sha256 = Buffer.from(row.sha256).toString("hex");
    if (!(await this.blobs.head(keyOf(sha256)))) throw notFound("media file");
    const { contentType, sizeBytes, name, createdAt, expiresAt } = row;
    return { id, sha256, contentType, sizeBytes, name, createdAt, expiresAt, open: (range) => this.blobs.open(keyOf(sha256), range) };
  }

  /** Removes what has expired. Returns how many files. */
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

  private async store({ accountId, bytes, contentType, name }: Incoming): Promise<UploadedMedia> {
    const digest = createHash("sha256").update(bytes).digest();
    const sha256 = digest.toString("hex");
    const id = sha256.slice(0, 16);
    const row = await this.claim(id, new Uint8Array(digest), { accountId, bytes, contentType, name });
    if (!digest.equals(row.sha256)) throw conflict("Another file has this id. Change the file, if only by a byte.");
    // Beside a new row a blob is what an earlier one left behind, and may be on its way out.
    const isStored = !row.isNew && (await this.blobs.head(keyOf(sha256))) !== null;
    if (!isStored) await this.blobs.put(keyOf(sha256), bytes);
    return { id, url: `${this.mediaUrl()}/${id}`, contentType: row.contentType, size: bytes.byteLength, duplicate: isStored };
  }

  /** The row of the id: this file's, with its time begun anew, or another's as it was. */
  private async claim(id: string, sha256: Uint8Array<ArrayBuffer>, file: Incoming): Promise<ClaimedRow> {
    const now = this.clock.now();
    const expiresAt = new Date(now.getTime() + MEDIA_FILE_DAYS * DAY_MS);
    const rows = await this.database.prisma.$queryRaw<ClaimedRow[]>`
      INSERT INTO media_file AS f (id, sha256, account_id, content_type, size_bytes, name, created_at, expires_at)
      VALUES (${id}, ${sha256}, ${file.accountId}::uuid, ${file.contentType}, ${file.bytes.byteLength}, ${file.name}, ${now}, ${expiresAt})
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
      for (const { sha256 } of expired) await this.blobs.delete(keyOf(Buffer.from(sha256).toString("hex")));
      await transaction.mediaFile.deleteMany({ where: { id: { in: expired.map(({ id }) => id) } } });
      return expired.length;
    });
  }
}

function assertSize({ bytes, field }: MediaUpload): void {
  if (bytes.byteLength === 0) throw invalidInput("The file is empty.", field ?? undefined);
  if (bytes.byteLength <= MEDIA_UPLOAD_BYTES_MAX) return;
  throw new AppError(
    "PAYLOAD_TOO_LARGE",
    `The file is larger than ${MEDIA_UPLOAD_BYTES_MAX} bytes.`,
    field === null ? {} : { param: field },
  );
}

export function isMediaFileId(id: string): boolean {
  return ID_PATTERN.test(id);
}

function keyOf(sha256: string): string {
  return `${MEDIA_FOLDER}/${sha256}`;
}
