/** Opens the configured blob store: a shared bucket, or a directory of this process. */
import { join } from "node:path";
import type { Logger } from "pino";
import type { S3Settings } from "../lib/settings.js";
import { BlobDrafts } from "./blob-drafts.js";
import type { BlobUrls } from "./blob-urls.js";
import type { BlobStore } from "./blobs.js";
import type { DataDir } from "./data-dir.js";
import { openDirectoryBlobs } from "./directory-blobs.js";

export interface OpenedBlobs {
  readonly blobs: BlobStore;
  /** Signs the gateway's own addresses of blobs; null when the store has its own. */
  readonly urls: BlobUrls | null;
  /** Origin of a store with its own addresses, for browsers; null where the gateway's are used. */
  readonly origin: string | null;
  close(): void;
}

/** Throws a StartError for an unusable store. */
export async function openBlobs(
  s3: S3Settings | null,
  dataDir: Pick<DataDir, "path" | "workerNumber">,
  urls: BlobUrls,
  log: Logger,
): Promise<OpenedBlobs> {
  const { path, workerNumber } = dataDir;
  // Drafts belong to one process. Those of a gateway of one process are deleted at its next start.
  const drafts = join(path, "blobs", ".drafts", ...(workerNumber === null ? [] : [String(workerNumber)]));
  if (s3 === null) return { blobs: await openDirectoryBlobs(path, urls, drafts), urls, origin: null, close: () => undefined };
  const { openS3Blobs } = await import("./s3-blobs.js");
  const blobs = await openS3Blobs(s3, await BlobDrafts.open(drafts), { log });
  return { blobs, urls: null, origin: bucketOrigin(s3), close: () => blobs.close() };
}

/** As the client addresses it: AWS has a host per bucket, others have it in the path. */
export function bucketOrigin({ endpoint, bucket, region }: S3Settings): string {
  if (endpoint !== null) return new URL(endpoint).origin;
  // A name with a dot has no certificate of its own.
  return bucket.includes(".") ? `https://s3.${region}.amazonaws.com` : `https://${bucket}.s3.${region}.amazonaws.com`;
}
