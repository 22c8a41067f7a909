/** The media host as its readers see it: one address for files of both variants, told apart by their ids (docs/spec/media.md). */
import type { Readable } from "node:stream";
import { notFound } from "../../errors.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import { isMediaFileId, type MediaLinks, type StoredMedia } from "./media-links.js";
import { isMediaObjectId, type MediaObject, type MediaObjects, type SelectedMediaObject } from "./media-objects.js";

/** A file that is known by its content, and one that went straight to the blob store. */
export type MediaItem =
  | { readonly kind: "file"; readonly file: StoredMedia; readonly url: string }
  | { readonly kind: "object"; readonly object: MediaObject };

/** What is known of a file, whichever it is. */
export interface MediaMetadata extends MediaObject {
  readonly kind: MediaItem["kind"];
}

export interface ReadableMedia {
  readonly sizeBytes: number;
  /** Null when it was removed meanwhile. */
  readonly open: () => Promise<Readable | null>;
}

export class Media {
  constructor(
    private readonly files: MediaLinks,
    private readonly objects: MediaObjects,
    /** Where the media host is reached, without a slash at its end. */
    private readonly mediaUrl: () => string,
  ) {}

  /** Open to all. Throws NOT_FOUND for what is not there, not complete, or no more. */
  async get(id: string): Promise<MediaItem> {
    if (isMediaFileId(id)) return { kind: "file", file: await this.files.get(id), url: this.urlOf(id) };
    const object = await this.objects.find(id);
    if (!object) throw notFound("media file");
    return { kind: "object", object };
  }

  /** Open to all, as above. */
  async describe(id: string): Promise<MediaMetadata> {
    const item = await this.get(id);
    if (item.kind === "object") return { kind: "object", ...item.object };
    const { contentType, sizeBytes, name, createdAt, expiresAt } = item.file;
    return { kind: "file", id, url: item.url, contentType, size: sizeBytes, name, tags: [], createdAt, expiresAt };
  }

  /** Open to all, as above: a file that is known by its content, or of one that went to the blob store what is selected. */
  async getSelected(id: string, select: Prisma.MediaObjectSelect): Promise<StoredMedia | SelectedMediaObject> {
    return isMediaFileId(id) ? this.files.get(id) : this.objects.getSelected(id, select);
  }

  /** Where anybody fetches it. */
  urlOf(id: string): string {
    return `${this.mediaUrl()}/${id}`;
  }

  /** The bytes, for the gateway itself. Throws NOT_FOUND. */
  async read(id: string): Promise<ReadableMedia> {
    const item = await this.get(id);
    if (item.kind === "file") return { sizeBytes: item.file.sizeBytes, open: () => item.file.open() };
    return { sizeBytes: item.object.size, open: () => this.objects.open(item.object) };
  }

  /** The id in an address of the media host; null for any other address. */
  idOf(url: string): string | null {
    const base = `${this.mediaUrl()}/`;
    const id = url.startsWith(base) ? url.slice(base.length) : "";
    return isMediaFileId(id) || isMediaObjectId(id) ? id : null;
  }
}
