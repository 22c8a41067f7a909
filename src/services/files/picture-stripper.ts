/** `strip=true`: removes an image's metadata such as place, time, device and author. No pixel is re-encoded. */
import { readFile } from "node:fs/promises";
import { invalidInput } from "../../errors.js";
import { isStrippable, PictureDamaged, stripMetadata } from "../../lib/picture-metadata.js";
import type { BlobDraft, BlobStore } from "../../store/blobs.js";

export class PictureStripper {
  /** Images are processed in memory, so one at a time. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly blobs: BlobStore) {}

  /** A new draft, or the same one without metadata. Throws BAD_REQUEST for a file that cannot be stripped. */
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
    throw error instanceof PictureDamaged ? invalidInput("The picture is damaged, so its metadata cannot be removed.", "strip") : error;
  }
}

async function* onePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
