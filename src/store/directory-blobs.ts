/**
 * Blobs as files below DATA_DIR. A file is written under another name and renamed when it is synced, so that a name never leads to a
 * truncated file. Unfinished files are deleted at the next start.
 *
 *   blobs/id the store's UUID
 *   blobs/.drafts/<uuid> unfinished files; of a worker, in a folder of its number
 *   blobs/<folder>/<aa>/<name> a blob; aa is the start of the name's hash, which keeps folders small
 */
import { createHash, randomUUID } from "node:crypto";
import { link, mkdir, open, opendir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { BlobDrafts, readableRange } from "./blob-drafts.js";
import type { BlobUrls } from "./blob-urls.js";
import {
  type BlobDraft,
  BlobExists,
  type BlobInfo,
  type BlobStore,
  type ByteRange,
  type PresignedUpload,
  type PresignGetOptions,
  type PresignPutOptions,
  type PutOptions,
  splitBlobKey,
} from "./blobs.js";
import { syncToDisk } from "./sync-to-disk.js";

/**
 * Opens the store of a data directory locked by this gateway, making it when absent. `urls` signs the gateway's own addresses of blobs;
 * without it there are none. `draftsFolder` belongs to this process, on the same disk.
 */
export async function openDirectoryBlobs(
  dataDir: string,
  urls: BlobUrls | null = null,
  draftsFolder = join(dataDir, "blobs", ".drafts"),
): Promise<BlobStore> {
  const root = join(dataDir, "blobs");
  const drafts = await BlobDrafts.open(draftsFolder);
  return new DirectoryBlobs(root, drafts, await readStoreId(root), urls);
}

class DirectoryBlobs implements BlobStore {
  constructor(
    private readonly root: string,
    private readonly drafts: BlobDrafts,
    readonly id: string,
    private readonly urls: BlobUrls | null,
  ) {}

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, { isDurable = true }: PutOptions = {}): Promise<number> {
    splitBlobKey(key);
    const { path, sizeBytes } = await this.drafts.write(content, isDurable);
    await this.moveIn(path, key, { isDurable, isNew: false });
    return sizeBytes;
  }

  async receive(content: AsyncIterable<Uint8Array>, { sizeBytesMax }: { readonly sizeBytesMax: number }): Promise<BlobDraft> {
    const draft = await this.drafts.receive(content, sizeBytesMax);
    return {
      ...draft,
      save: async (key, { isDurable = true, isNew = false } = {}) => {
        if (isDurable) await syncPath(draft.path);
        await this.moveIn(draft.path, key, { isDurable, isNew });
      },
    };
  }

  async head(key: string): Promise<BlobInfo | null> {
    const info = await unlessAbsent(stat(this.locate(key).path));
    return info && { key, sizeBytes: info.size, writtenAt: info.mtime, contentType: null };
  }

  async open(key: string, range?: ByteRange): Promise<Readable | null> {
    const file = await unlessAbsent(open(this.locate(key).path, "r"));
    return file?.createReadStream(readableRange(range)) ?? null;
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

  async presignPut(key: string, options: PresignPutOptions): Promise<PresignedUpload> {
    return this.ownUrls().upload(key, options);
  }

  async presignGet(key: string, options: PresignGetOptions): Promise<string> {
    return this.ownUrls().download(key, options);
  }

  private ownUrls(): BlobUrls {
    if (!this.urls) throw new Error("These blobs have no addresses.");
    return this.urls;
  }

  /** Moves the draft to its name; the draft is gone afterwards in any case. */
  private async moveIn(draft: string, key: string, { isDurable, isNew }: { isDurable: boolean; isNew: boolean }): Promise<void> {
    const { folder, path } = this.locate(key);
    try {
      // Unlike a rename, a link fails for an existing name, also with concurrent writers.
      const name = () => (isNew ? link(draft, path) : rename(draft, path));
      if ((await unlessAbsent(name().then(() => true))) === null) {
        await this.makeFolder(folder);
        await name();
      }
      if (isDurable) await syncPath(folder);
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === "EEXIST" ? new BlobExists(`There is a blob ${key} already.`) : error;
    } finally {
      await rm(draft, { force: true });
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
    await syncPath(join(folder, ".."));
    await syncPath(this.root);
  }
}

/** Syncs a file or a directory asynchronously. */
async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
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
  // For a new directory, or one whose id was lost: blobs of the old store are then missing, and cached ones are generated again.
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
