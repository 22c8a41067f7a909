/** The media host for readers: one address for files of both variants, distinguished by their ids (docs/spec/media.md). */
import type { Readable } from "node:stream";
import { notFound } from "../../errors.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import { isMediaFileId, type MediaLinks, type StoredMedia } from "./media-links.js";
import { isMediaObjectId, type MediaObject, type MediaObjects, type SelectedMediaObject } from "./media-objects.js";

/** A content-addressed file, or a direct upload. */
export type MediaItem =
  | { readonly kind: "file"; readonly file: StoredMedia; readonly url: string }
  | { readonly kind: "object"; readonly object: MediaObject };

export interface MediaMetadata extends MediaObject {
  readonly kind: MediaItem["kind"];
}

export interface ReadableMedia {
  readonly sizeBytes: number;
  /** Null when it was deleted meanwhile. */
  readonly open: () => Promise<Readable | null>;
}

export class Media {
  constructor(
    private readonly files: MediaLinks,
    private readonly objects: MediaObjects,
    /** Address of the media host, without a trailing slash. */
    private readonly mediaUrl: () => string,
  ) {}

  /** Public. Throws NOT_FOUND for a missing, incomplete or expired file. */
  async get(id: string): Promise<MediaItem> {
    if (isMediaFileId(id)) return { kind: "file", file: await this.files.get(id), url: this.urlOf(id) };
    const object = await this.objects.find(id);
    if (!object) throw notFound("media file");
    return { kind: "object", object };
  }

  /** Public, as above. */
  async describe(id: string): Promise<MediaMetadata> {
    const item = await this.get(id);
    if (item.kind === "object") return { kind: "object", ...item.object };
    const { contentType, sizeBytes, name, createdAt, expiresAt } = item.file;
    return { kind: "file", id, url: item.url, contentType, size: sizeBytes, name, tags: [], createdAt, expiresAt };
  }

  /** Public, as above: a content-addressed file, or the selected columns of a direct upload. */
  async getSelected(id: string, select: Prisma.MediaObjectSelect): Promise<StoredMedia | SelectedMediaObject> {
    return isMediaFileId(id) ? this.files.get(id) : this.objects.getSelected(id, select);
  }

  /** The public address. */
  urlOf(id: string): string {
    return `${this.mediaUrl()}/${id}`;
  }

  /** The bytes, for the gateway itself. Throws NOT_FOUND. */
  async read(id: string): Promise<ReadableMedia> {
    const item = await this.get(id);
    if (item.kind === "file") return { sizeBytes: item.file.sizeBytes, open: () => item.file.open() };
    return { sizeBytes: item.object.size, open: () => this.objects.open(item.object) };
  }

  /** The id in an address of the media host; null for other addresses. */
  idOf(url: string): string | null {
    const base = `${this.mediaUrl()}/`;
    const id = url.startsWith(base) ? url.slice(base.length) : "";
    return isMediaFileId(id) || isMediaObjectId(id) ? id : null;
  }
}
