/**
 * Blobs as files below DATA_DIR. A file is written under another name and renamed when all of it is on disk, so that a name never
 * leads to half a file, whenever the process ends. What was being written then is removed at the next start.
 *
 *   blobs/id                      the store's UUID
 *   blobs/.drafts/<uuid>          what is being written
 *   blobs/<folder>/<aa>/<name>    a blob; aa is the beginning of the name's hash, which keeps folders small
 */
import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, opendir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type BlobInfo, type BlobStore, type ByteRange, type PutOptions, splitBlobKey } from "./blobs.js";
import { syncToDisk } from "./sync-to-disk.js";

/** Opens the store of a data directory that this process has to itself, making it when absent. */
export async function openDirectoryBlobs(dataDir: string): Promise<BlobStore> {
  const root = join(dataDir, "blobs");
  const drafts = join(root, ".drafts");
  await rm(drafts, { recursive: true, force: true });
  await mkdir(drafts, { recursive: true, mode: 0o700 });
  return new DirectoryBlobs(root, drafts, await readStoreId(root));
}

class DirectoryBlobs implements BlobStore {
  constructor(
    private readonly root: string,
    private readonly drafts: string,
    readonly id: string,
  ) {}

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, { isDurable = true }: PutOptions = {}): Promise<number> {
    const { folder, path } = this.locate(key);
    const draft = join(this.drafts, randomUUID());
    try {
      const sizeBytes = await writeDraft(draft, content, isDurable);
      if ((await unlessAbsent(rename(draft, path))) === null) {
        await this.makeFolder(folder);
        await rename(draft, path);
      }
      if (isDurable) await syncFolder(folder);
      return sizeBytes;
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  async head(key: string): Promise<BlobInfo | null> {
    const info = await unlessAbsent(stat(this.locate(key).path));
    return info && { key, sizeBytes: info.size, writtenAt: info.mtime };
  }

  async open(key: string, range?: ByteRange): Promise<Readable | null> {
    const file = await unlessAbsent(open(this.locate(key).path, "r"));
    // A file without a byte has no range either.
    return file?.createReadStream(range && range.end >= range.start ? range : {}) ?? null;
  }

  read(key: string): Promise<Buffer | null> {
    return unlessAbsent(readFile(this.locate(key).path));
  }

  async delete(key: string): Promise<void> {
    await rm(this.locate(key).path, { force: true });
  }

  async *list(folder: string): AsyncGenerator<BlobInfo> {
    for await (const { name: fan } of entriesOf(join(this.root, folder))) {
      for await (const { name } of entriesOf(join(this.root, folder, fan))) {
        const info = await this.head(`${folder}/${name}`);
        if (info) yield info;
      }
    }
  }

  private locate(key: string): { readonly folder: string; readonly path: string } {
    const { folder, name } = splitBlobKey(key);
    const fan = createHash("sha256").update(name).digest("hex").slice(0, 2);
    const fullFolder = join(this.root, folder, fan);
    return { folder: fullFolder, path: join(fullFolder, name) };
  }

  private async makeFolder(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await syncFolder(join(folder, ".."));
    await syncFolder(this.root);
  }
}

async function writeDraft(path: string, content: Uint8Array | AsyncIterable<Uint8Array>, isDurable: boolean): Promise<number> {
  const file = await open(path, "wx", 0o600);
  try {
    let size = 0;
    for await (const chunk of content instanceof Uint8Array ? [content] : content) {
      await writeAll(file, chunk);
      size += chunk.byteLength;
    }
    if (isDurable) await file.sync();
    return size;
  } finally {
    await file.close();
  }
}

/** A single write may take less than it is given. */
async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.byteLength) written += (await file.write(bytes, written)).bytesWritten;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function* entriesOf(path: string): AsyncGenerator<{ readonly name: string }> {
  const folder = await unlessAbsent(opendir(path));
  if (folder) yield* folder;
}

async function readStoreId(root: string): Promise<string> {
  const path = join(root, "id");
  const known = await unlessAbsent(readFile(path, "utf8"));
  if (known !== null && /^[0-9a-f-]{36}\n$/.test(known)) return known.trim();
  // Of a new directory, or of one whose id was lost: what the database knows of the old store it then finds missing, and makes anew.
  const id = randomUUID();
  const draft = `${path}.draft`;
  await writeFile(draft, `${id}\n`, { mode: 0o600, flush: true });
  await rename(draft, path);
  syncToDisk(root);
  return id;
}

async function unlessAbsent<Result>(work: Promise<Result>): Promise<Result | null> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
