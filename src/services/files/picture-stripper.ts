/** `strip=true`: a picture without what tells where, when, with what and by whom it was taken. Not a pixel of it is made anew. */
import { readFile } from "node:fs/promises";
import { invalidInput } from "../../errors.js";
import { isStrippable, PictureDamaged, stripMetadata } from "../../lib/picture-metadata.js";
import type { BlobDraft, BlobStore } from "../../store/blobs.js";

export class PictureStripper {
  /** Pictures are taken apart in memory, so one at a time, however many are uploaded. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly blobs: BlobStore) {}

  /** A new draft, or the same one when there was nothing to take out. Throws BAD_REQUEST for what cannot be stripped. */
  strip(draft: BlobDraft, contentType: string): Promise<BlobDraft> {
    if (!isStrippable(contentType)) {
      throw invalidInput(`Only JPEG, PNG, WebP and GIF pictures can be stripped; this file is ${contentType}.`, "strip");
    }
    const work = this.last.then(() => this.stripNow(draft, contentType));
    this.last = work.catch(() => undefined);
    return work;
  }

  private async stripNow(draft: BlobDraft, contentType: string): Promise<BlobDraft> {
    const bytes = await readFile(draft.path);
    const kept = stripped(bytes, contentType);
    if (kept.equals(bytes)) return draft;
    return this.blobs.receive(onePiece(kept), { sizeBytesMax: kept.length });
  }
}

function stripped(bytes: Buffer, contentType: string): Buffer {
  try {
    return Buffer.concat(stripMetadata(bytes, contentType));
  } catch (error) {
    throw error instanceof PictureDamaged ? invalidInput("The picture is damaged, so that it cannot be stripped.", "strip") : error;
  }
}

async function* onePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
