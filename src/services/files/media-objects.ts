/**
 * Files that owners upload straight to the blob store (docs/spec/media.md#direct-uploads): up to 100 MiB, publicly readable, and listed in
 * the gallery under their tags.
 *
 * 1. `createUpload` writes a pending row, which counts against the account's quota, and returns an address for one file of that type
 *    and length. Until the file is complete its id is 404.
 * 2. `complete` inspects the bytes. Bytes that differ from the announcement are deleted, and the upload is pending again: its address
 *    works until it expires, so its part of the quota is kept as long.
 * 3. Rows are deleted before bytes, here and in `sweep`: a process that dies in between leaves an orphan, which is swept.
 */
import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { RequestContext } from "../../context.js";
import { conflict, invalidInput, notFound, permissionDenied, unauthenticated } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { toDisposition } from "../../lib/header-text.js";
import type { Page, PageRequest } from "../../lib/pagination.js";
import type { BlobStore } from "../../store/blobs.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { MediaObjectModel } from "../../store/generated/prisma/models.js";
import { requireAccount } from "../access/permissions.js";
import { parseInput } from "../requests/input.js";
import {
  MEDIA_DOWNLOAD_URL_SECONDS,
  MEDIA_HEAD_BYTES,
  MEDIA_UNTAGGED_DAYS,
  MEDIA_UPLOAD_SECONDS,
  MEDIA_UPLOAD_URL_SECONDS,
} from "./limits.js";
import { type ListedMedia, type MediaQuery, mediaFilterInput, readOwnPage, readTaggedPage, toNewestQuery } from "./media-lists.js";
import { assertObjectSize, type CreateUploadInput, listTaggedInput } from "./media-objects-input.js";
import type { MediaQuotas } from "./media-quotas.js";
import { announcedType, arrivedType, servedAs } from "./media-types.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const SWEPT_AT_ONCE_MAX = 100;
/** A UUID of version 4, in lower case, so that addresses of unlisted files cannot be guessed. */
const ID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const MEDIA_OBJECT_FOLDER = "media-objects";

export interface MediaObject {
  readonly id: string;
  readonly url: string;
  /** The stored type; `servedAs` decides the served one. */
  readonly contentType: string;
  readonly size: number;
  readonly name: string | null;
  readonly tags: readonly string[];
  /** Time of completion. */
  readonly createdAt: Date;
  /** Null: kept until it is deleted. */
  readonly expiresAt: Date | null;
}

export interface CreatedUpload {
  readonly id: string;
  readonly uploadUrl: string;
  readonly method: "PUT";
  readonly headers: Readonly<Record<string, string>>;
  /** Until when an upload may begin. */
  readonly expiresAt: Date;
}

export interface MediaObjectsDependencies {
  readonly database: Database;
  readonly blobs: BlobStore;
  readonly quotas: MediaQuotas;
  /** Whether uploads go to this machine's disk. */
  readonly isOnDisk: boolean;
  readonly clock: Clock;
  /** Address of the media host, without a trailing slash. */
  readonly mediaUrl: () => string;
}

type Row = MediaObjectModel;

const IDENTITY = { id: true, createdAt: true } as const;
const WHOLE = {
  ...IDENTITY,
  contentType: true,
  sizeBytes: true,
  name: true,
  tags: true,
  expiresAt: true,
} as const satisfies Prisma.MediaObjectSelect;

type Shown = Pick<Row, keyof typeof WHOLE>;

export type SelectedMediaObject = Pick<Row, keyof typeof IDENTITY>;

export class MediaObjects {
  constructor(private readonly deps: MediaObjectsDependencies) {}

  /** Throws PAYLOAD_TOO_LARGE for a file or an account that is too large, SERVICE_UNAVAILABLE when the disk is full. */
  async createUpload(ctx: RequestContext, { contentType: declared, size, name, tags }: CreateUploadInput): Promise<CreatedUpload> {
    const { accountId } = requireAccount(ctx);
    assertObjectSize(size);
    const { blobs, clock, isOnDisk, quotas } = this.deps;
    if (isOnDisk) await quotas.assertSpace(size);
    const id = randomUUID();
    const contentType = await announcedType(declared);
    const now = clock.now();
    const row = { id, accountId, contentType, sizeBytes: size, name: name ?? null, tags: tags ?? [], createdAt: now };
    await quotas.reserve(accountId, size, (transaction) =>
      transaction.mediaObject.create({ data: { ...row, expiresAt: after(now, MEDIA_UPLOAD_SECONDS) } }),
    );
    const expiresInSeconds = MEDIA_UPLOAD_URL_SECONDS;
    // The blob store gets the served type, as readers may access a bucket directly.
    const sent = { contentType: (await servedAs(contentType)).contentType, sizeBytes: size, expiresInSeconds };
    const { url, method, headers } = await blobs.presignPut(keyOf(id), sent);
    return { id, uploadUrl: url, method, headers, expiresAt: after(now, expiresInSeconds) };
  }

  /**
   * Makes the file readable; idempotent. Throws NOT_FOUND for an upload of another account or an expired one, CONFLICT when nothing has
   * arrived, BAD_REQUEST when it differs from the announcement.
   */
  async complete(ctx: RequestContext, id: string): Promise<MediaObject> {
    const { accountId } = requireAccount(ctx);
    const row = await this.findRow(id, accountId);
    if (!row) throw notFound("upload");
    if (row.status === "complete") return this.toObject(row);
    const completed = await this.publish(row, await this.inspect(row));
    if (completed) return this.toObject(completed);
    // A concurrent call completed it, or it was swept.
    const known = await this.findRow(id, accountId);
    if (known?.status !== "complete") throw notFound("upload");
    return this.toObject(known);
  }

  /** Public. Returns a complete file of any account. */
  async find(id: string): Promise<MediaObject | null> {
    const row = await this.findRow(id);
    return row?.status === "complete" ? this.toObject(row) : null;
  }

  /** The download address of a complete file, good for some minutes. */
  async linkTo({ id, contentType: stored, name }: MediaObject): Promise<string> {
    const { contentType, isInline } = await servedAs(stored);
    return this.deps.blobs.presignGet(keyOf(id), {
      expiresInSeconds: MEDIA_DOWNLOAD_URL_SECONDS,
      contentType: contentType.startsWith("text/") ? `${contentType}; charset=utf-8` : contentType,
      disposition: toDisposition(isInline ? "inline" : "attachment", name ?? id),
      cacheControl: `public, max-age=${MEDIA_DOWNLOAD_URL_SECONDS}, immutable`,
    });
  }

  /** The bytes of a complete file; null when they were deleted meanwhile. */
  open({ id }: MediaObject): Promise<Readable | null> {
    return this.deps.blobs.open(keyOf(id));
  }

  /** Public. Returns a complete file of any account. Throws NOT_FOUND. */
  async getSelected(id: string, select: Prisma.MediaObjectSelect): Promise<SelectedMediaObject> {
    const [row] = await this.getMany([id], select);
    if (!row) throw notFound("media file");
    return row;
  }

  /** Public. Returns complete files of any account by id. */
  async getMany(ids: readonly string[], select: Prisma.MediaObjectSelect): Promise<SelectedMediaObject[]> {
    const isKept = { OR: [{ expiresAt: null }, { expiresAt: { gt: this.deps.clock.now() } }] };
    return this.deps.database.prisma.mediaObject.findMany({
      where: { id: { in: ids.filter(isMediaObjectId) }, status: "complete", ...isKept },
      select: { ...select, ...IDENTITY },
    });
  }

  /** Lists the account's tagged files, newest first. */
  async listOwn(ctx: RequestContext, page: PageRequest): Promise<Page<MediaObject>> {
    return this.toObjects(await this.listSelected(ctx, toNewestQuery(page), WHOLE));
  }

  /** Lists the account's tagged files. They are public, so publishable keys may list them too. */
  async listSelected(ctx: RequestContext, query: MediaQuery, select: Prisma.MediaObjectSelect): Promise<Page<ListedMedia>> {
    if (ctx.caller.kind === "anonymous") throw unauthenticated("Listing your files requires an API key. Public files are listed by `tag`.");
    const { accountId } = requireAccount(ctx);
    const filter = parseInput(mediaFilterInput, query.filter ?? {});
    return readOwnPage(this.deps.database, accountId, { ...query, filter }, select);
  }

  /** Public. Lists files with a tag, newest first. */
  async listTagged(tag: string, page: PageRequest): Promise<Page<MediaObject>> {
    return this.toObjects(await this.listTaggedSelected(tag, page, WHOLE));
  }

  /** As above, with selected columns. */
  async listTaggedSelected(tag: string, page: PageRequest, select: Prisma.MediaObjectSelect): Promise<Page<ListedMedia>> {
    return readTaggedPage(this.deps.database, parseInput(listTaggedInput, { tag }).tag, page, select);
  }

  /** Throws FORBIDDEN for a publishable key and for another account's file, NOT_FOUND for an unlisted file. */
  async delete(ctx: RequestContext, id: string): Promise<{ readonly id: string }> {
    const caller = requireAccount(ctx);
    if (caller.kind === "key" && caller.apiKeyType !== "secret") throw permissionDenied("Deleting files requires a secret key.");
    const row = await this.findRow(id);
    if (row?.status !== "complete" || row.tags.length === 0) throw notFound("media file");
    if (row.accountId !== caller.accountId) throw permissionDenied("This file belongs to another account.");
    await this.remove(row);
    return { id };
  }

  /** Deletes uploads not completed in time, and expired untagged files. Returns their number. */
  async sweep(): Promise<number> {
    const { prisma } = this.deps.database;
    for (let removed = 0; ; ) {
      const now = this.deps.clock.now();
      const expired = await prisma.mediaObject.findMany({
        where: { expiresAt: { lte: now } },
        select: { id: true },
        take: SWEPT_AT_ONCE_MAX,
      });
      for (const { id } of expired) {
        const { count } = await prisma.mediaObject.deleteMany({ where: { id, expiresAt: { lte: now } } });
        if (count > 0) await this.deps.blobs.delete(keyOf(id));
        removed += count;
      }
      if (expired.length < SWEPT_AT_ONCE_MAX) return removed;
    }
  }

  /** Which of these blobs belong to a file or an upload. */
  async findNamed(keys: readonly string[]): Promise<ReadonlySet<string>> {
    const ids = keys.map((key) => key.slice(MEDIA_OBJECT_FOLDER.length + 1));
    const rows = await this.deps.database.prisma.mediaObject.findMany({ where: { id: { in: ids } }, select: { id: true } });
    return new Set(rows.map(({ id }) => keyOf(id)));
  }

  /** Null for a missing or expired row. */
  private async findRow(id: string, accountId?: string): Promise<Row | null> {
    if (!isMediaObjectId(id)) return null;
    const row = await this.deps.database.prisma.mediaObject.findUnique({ where: { id, ...(accountId !== undefined && { accountId }) } });
    return row && (row.expiresAt === null || row.expiresAt > this.deps.clock.now()) ? row : null;
  }

  /** Returns the type to store. Throws unless the bytes are there and match the announcement. */
  private async inspect({ id, sizeBytes, contentType }: Row): Promise<string> {
    const { blobs } = this.deps;
    const blob = await blobs.head(keyOf(id));
    if (!blob) throw conflict("The file has not been uploaded yet: send it to the upload's URL first.");
    if (blob.sizeBytes !== sizeBytes) {
      await blobs.delete(keyOf(id));
      throw invalidInput(`The file that was uploaded has ${blob.sizeBytes} bytes, not ${sizeBytes}. It was removed.`, "size");
    }
    const head = await blobs.open(keyOf(id), { start: 0, end: Math.min(sizeBytes, MEDIA_HEAD_BYTES) - 1 });
    const arrived = head && (await arrivedType(await buffer(head), contentType));
    if (arrived) return arrived;
    await blobs.delete(keyOf(id));
    throw invalidInput(`The file that was uploaded is not ${contentType}. It was removed.`, "contentType");
  }

  /**
   * Completes the row and lists it in the gallery in one step; null when it is no longer pending. Its time is that of completion, so that
   * lists grow at one end.
   */
  private async publish({ id, tags }: Row, contentType: string): Promise<Row | null> {
    const now = this.deps.clock.now();
    const expiresAt = tags.length > 0 ? null : new Date(now.getTime() + MEDIA_UNTAGGED_DAYS * DAY_MS);
    return this.deps.database.prisma.$transaction(async (transaction) => {
      const { count } = await transaction.mediaObject.updateMany({
        where: { id, status: "pending", expiresAt: { gt: now } },
        data: { status: "complete", contentType, createdAt: now, completedAt: now, expiresAt },
      });
      if (count === 0) return null;
      await transaction.mediaTag.createMany({ data: tags.map((tag) => ({ tag, mediaId: id, createdAt: now })) });
      return transaction.mediaObject.findUniqueOrThrow({ where: { id } });
    });
  }

  /** Keeps the row as a pending upload while its address may still work, so that another upload there counts against the quota. */
  private async remove({ id, createdAt }: Row): Promise<void> {
    const { database, blobs, clock } = this.deps;
    const addressEnds = after(createdAt, MEDIA_UPLOAD_URL_SECONDS);
    await database.prisma.$transaction(async (transaction) => {
      if (addressEnds <= clock.now()) {
        await transaction.mediaObject.deleteMany({ where: { id, status: "complete" } });
        return;
      }
      await transaction.mediaTag.deleteMany({ where: { mediaId: id } });
      await transaction.mediaObject.updateMany({
        where: { id, status: "complete" },
        data: { status: "pending", tags: [], completedAt: null, expiresAt: addressEnds },
      });
    });
    await blobs.delete(keyOf(id));
  }

  private toObjects(page: Page<ListedMedia>): Page<MediaObject> {
    return { ...page, items: page.items.map((row) => this.toObject(row as Shown)) };
  }

  private toObject({ id, contentType, sizeBytes, name, tags, createdAt, expiresAt }: Shown): MediaObject {
    return { id, url: `${this.deps.mediaUrl()}/${id}`, contentType, size: sizeBytes, name, tags, createdAt, expiresAt };
  }
}

export function isMediaObjectId(id: string): boolean {
  return ID_PATTERN.test(id);
}

function keyOf(id: string): string {
  return `${MEDIA_OBJECT_FOLDER}/${id}`;
}

function after(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000);
}
