/** The blob store that is configured: a bucket that processes share, or a directory of this one's own. */
import { join } from "node:path";
import type { S3Settings } from "../lib/settings.js";
import { BlobDrafts } from "./blob-drafts.js";
import type { BlobUrls } from "./blob-urls.js";
import type { BlobStore } from "./blobs.js";
import type { DataDir } from "./data-dir.js";
import { openDirectoryBlobs } from "./directory-blobs.js";

export interface OpenedBlobs {
  readonly blobs: BlobStore;
  /** The addresses at which the gateway itself takes and gives blobs; null when the store has its own. */
  readonly urls: BlobUrls | null;
  close(): void;
}

/** Throws a StartError for a store that cannot be used. */
export async function openBlobs(
  s3: S3Settings | null,
  dataDir: Pick<DataDir, "path" | "workerNumber">,
  urls: BlobUrls,
): Promise<OpenedBlobs> {
  const { path, workerNumber } = dataDir;
  // Drafts are one process's own. What a gateway of one process has left goes at the start of the next.
  const drafts = join(path, "blobs", ".drafts", ...(workerNumber === null ? [] : [String(workerNumber)]));
  if (s3 === null) return { blobs: await openDirectoryBlobs(path, urls, drafts), urls, close: () => undefined };
  const { openS3Blobs } = await import("./s3-blobs.js");
  const blobs = await openS3Blobs(s3, await BlobDrafts.open(drafts));
  return { blobs, urls: null, close: () => blobs.close() };
}
