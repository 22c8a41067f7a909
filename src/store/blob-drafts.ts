/**
 * Drafts of blobs: files of this process that are complete before they get a name. Both kinds of store use them, so that refused bytes
 * never reach a store.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type BlobDraft, BlobTooLarge, type ByteRange } from "./blobs.js";

export interface Draft {
  readonly path: string;
  readonly sizeBytes: number;
}

/** A draft without its `save`. */
export type ReceivedDraft = Omit<BlobDraft, "save">;

export class BlobDrafts {
  private constructor(private readonly folder: string) {}

  /** The folder belongs to this process only: files of an earlier one are deleted. */
  static async open(folder: string): Promise<BlobDrafts> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new BlobDrafts(folder);
  }

  /** Writes `content` to a file; none remains after a failure. It is synced to disk when `isDurable`. */
  async write(content: Uint8Array | AsyncIterable<Uint8Array>, isDurable: boolean): Promise<Draft> {
    return this.writeFile(async (file) => {
      let sizeBytes = 0;
      for await (const chunk of content instanceof Uint8Array ? [content] : content) {
        await writeAll(file, chunk);
        sizeBytes += chunk.byteLength;
      }
      if (isDurable) await file.sync();
      return { sizeBytes };
    });
  }

  /** As `BlobStore.receive`. */
  async receive(content: AsyncIterable<Uint8Array>, sizeBytesMax: number): Promise<ReceivedDraft> {
    const { path, sizeBytes, sha256 } = await this.writeFile(async (file) => {
      const hash = createHash("sha256");
      let size = 0;
      for await (const chunk of content) {
        size += chunk.byteLength;
        if (size > sizeBytesMax) throw new BlobTooLarge(sizeBytesMax);
        hash.update(chunk);
        await writeAll(file, chunk);
      }
      return { sizeBytes: size, sha256: hash.digest("hex") };
    });
    return {
      path,
      sizeBytes,
      sha256,
      open: (range) => createReadStream(path, readableRange(range)),
      discard: () => rm(path, { force: true }),
    };
  }

  private async writeFile<Result extends object>(write: (file: FileHandle) => Promise<Result>): Promise<Result & { path: string }> {
    const path = join(this.folder, randomUUID());
    const file = await open(path, "wx", 0o600);
    try {
      return { path, ...(await write(file)) };
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
  }
}

/** An empty file has no range. */
export function readableRange(range: ByteRange | undefined): ByteRange | Record<string, never> {
  return range && range.end >= range.start ? range : {};
}

/** A single write may take only a part. */
async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.byteLength) written += (await file.write(bytes, written)).bytesWritten;
}
