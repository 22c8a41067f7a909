/**
 * What is on its way into a blob store: files of this process's own, each whole before it is given a name. Both kinds of store take
 * bytes in this way, so that nothing of what is refused ever reaches them.
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

/** A draft without where it is saved to. */
export type ReceivedDraft = Omit<BlobDraft, "save">;

export class BlobDrafts {
  private constructor(private readonly folder: string) {}

  /** The folder is this process's alone: what an earlier one left there is removed. */
  static async open(folder: string): Promise<BlobDrafts> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new BlobDrafts(folder);
  }

  /** A file with all of `content`; none when that fails on the way. It is on disk when `isDurable`. */
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

  /** As `BlobStore.receive` takes bytes in. */
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

/** A file without a byte has no range either. */
export function readableRange(range: ByteRange | undefined): ByteRange | Record<string, never> {
  return range && range.end >= range.start ? range : {};
}

/** A single write may take less than it is given. */
async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.byteLength) written += (await file.write(bytes, written)).bytesWritten;
}
