/**
 * The media host's files (docs/spec/media.md#content-addressed-files): content-addressed, public to read, gone 14 days after they were
 * last brought. What a caller uploads, and what a generation answers as a link.
 *
 * 0. The bytes come to a file of this process's own, which is hashed on the way, looked at, and refused or stored.
 * 1. The row is written first and holds the id for these bytes; other bytes with the same id are refused.
 * 2. The blob follows when it is not there yet. Until it is, the file does not exist for readers.
 * 3. `sweep` removes the blob while it holds the row's lock, so that bytes which are brought again at that moment are written again.
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
/** Milliseconds: a bucket may take its time for a hundred deletions. */
const SWEEP_TRANSACTION = { maxWait: 10_000, timeout: 60_000 };

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
  /** What it is stored as; what it is served as is `servedAs`. */
  readonly contentType: string;
  readonly sizeBytes: number;
  readonly name: string | null;
  /** When it was first brought. */
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** The bytes, or a part of them; null when they were removed meanwhile. */
  readonly open: (range?: ByteRange) => Promise<Readable | null>;
}

/** Bytes of an upload that came, are not stored yet, and are somewhere on this process's disk. */
export interface ReceivedMedia {
  readonly draft: BlobDraft;
  /** The field that it came in, for refusals; null when it was the whole body. */
  readonly field: string | null;
}

export interface MediaUpload extends ReceivedMedia {
  /** Null: not said. */
  readonly contentType: string | null;
  readonly name: string | null;
  /** Take out of a picture what tells where, when and with what it was taken. */
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
  /** Where the media host is reached, without a slash at its end. */
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

  /** A link to a file that was generated for the caller. Resolves once the link works. */
  async publish(ctx: RequestContext, { bytes, contentType: declared }: MediaFile): Promise<MediaLink> {
    const { accountId } = requireCaller(ctx);
    const contentType = await inspectGenerated(bytes, declared);
    const draft = await this.blobs.receive(onePiece(bytes), { sizeBytesMax: bytes.byteLength });
    try {
      // It was paid for: no quota keeps it from whoever paid.
      const { id, url } = await this.store({ accountId, draft, contentType, name: null, isCounted: false });
      return { id, url };
    } finally {
      await draft.discard();
    }
  }

  /**
   * Takes the bytes of an upload in, for `upload` or `discard`. Throws SERVICE_UNAVAILABLE when the disk is full, PAYLOAD_TOO_LARGE,
   * BAD_REQUEST for no byte at all, and whatever `content` throws; nothing is left then.
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

  /** Forgets what was received. */
  async discard({ draft }: ReceivedMedia): Promise<void> {
    await draft.discard();
  }

  /**
   * Stores what was received, or forgets it. Throws BAD_REQUEST, PAYLOAD_TOO_LARGE for an account that has no room, or CONFLICT for
   * bytes whose id another file has.
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

  /** The two steps above, of a file that is in memory. */
  async uploadBytes(ctx: RequestContext, bytes: Uint8Array, about: Omit<MediaUpload, "draft">): Promise<UploadedMedia> {
    return this.upload(ctx, { ...about, ...(await this.receive(ctx, onePiece(bytes), about.field)) });
  }

  /** Open to all. Throws NOT_FOUND for what is not there, or no more. */
  async get(id: string): Promise<StoredMedia> {
    const [file] = await this.getMany([id]);
    if (!file) throw notFound("media file");
    return file;
  }

  /** Those with these ids that are there. Open to all. */
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

  private async store(file: Incoming): Promise<UploadedMedia> {
    const { sha256, sizeBytes } = file.draft;
    const digest = Buffer.from(sha256, "hex");
    const id = sha256.slice(0, 16);
    const row = await this.claim(id, file);
    if (!digest.equals(row.sha256)) throw conflict("Another file has this id. Change the file, if only by a byte.");
    // Beside a new row a blob is what an earlier one left behind, and may be on its way out.
    const isStored = !row.isNew && (await this.blobs.head(keyOf(sha256))) !== null;
    if (!isStored) await file.draft.save(keyOf(sha256), { contentType: (await servedAs(row.contentType)).contentType });
    return { id, url: `${this.deps.mediaUrl()}/${id}`, contentType: row.contentType, size: sizeBytes, duplicate: isStored };
  }

  /** Only a file that nobody has brought yet costs its account anything. */
  private async claim(id: string, file: Incoming): Promise<ClaimedRow> {
    const known = file.isCounted && (await this.database.prisma.mediaFile.findUnique({ where: { id }, select: { id: true } }));
    if (known || !file.isCounted) return this.claimRow(this.database.prisma, id, file);
    return this.deps.quotas.reserve(file.accountId, file.draft.sizeBytes, (transaction) => this.claimRow(transaction, id, file));
  }

  /** The row of the id: this file's, with its time begun anew, or another's as it was. */
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
