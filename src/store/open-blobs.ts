/** The blob store that is configured: a bucket that processes share, or a directory of this one's own. */
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
  /** The addresses at which the gateway itself takes and gives blobs; null when the store has its own. */
  readonly urls: BlobUrls | null;
  /** Where browsers bring and fetch what is in a store that has addresses of its own, as an origin; null where the gateway's are used. */
  readonly origin: string | null;
  close(): void;
}

/** Throws a StartError for a store that cannot be used. */
export async function openBlobs(
  s3: S3Settings | null,
  dataDir: Pick<DataDir, "path" | "workerNumber">,
  urls: BlobUrls,
  log: Logger,
): Promise<OpenedBlobs> {
  const { path, workerNumber } = dataDir;
  // Drafts are one process's own. What a gateway of one process has left goes at the start of the next.
  const drafts = join(path, "blobs", ".drafts", ...(workerNumber === null ? [] : [String(workerNumber)]));
  if (s3 === null) return { blobs: await openDirectoryBlobs(path, urls, drafts), urls, origin: null, close: () => undefined };
  const { openS3Blobs } = await import("./s3-blobs.js");
  const blobs = await openS3Blobs(s3, await BlobDrafts.open(drafts), { log });
  return { blobs, urls: null, origin: bucketOrigin(s3), close: () => blobs.close() };
}

/** As the client addresses it: AWS has a host for each bucket, others have it in the path. */
export function bucketOrigin({ endpoint, bucket, region }: S3Settings): string {
  if (endpoint !== null) return new URL(endpoint).origin;
  // A name with a dot has no certificate of its own.
  return bucket.includes(".") ? `https://s3.${region}.amazonaws.com` : `https://${bucket}.s3.${region}.amazonaws.com`;
}
