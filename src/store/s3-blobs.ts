/**
 * Blobs as objects of a bucket, which any number of processes share. The key of a blob is that of its object; `store-id` beside them
 * holds the store's UUID. An object is there whole or not at all, so what is on its way in waits on this process's disk.
 */
import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { PutObjectCommand, PutObjectCommandInput, S3Client } from "@aws-sdk/client-s3";
import { type AppError, serviceUnavailable } from "../errors.js";
import type { S3Settings } from "../lib/settings.js";
import { PassingStartError, StartError } from "../lib/start-error.js";
import { type BlobDrafts, type Draft, readableRange } from "./blob-drafts.js";
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
import {
  S3_ATTEMPTS_MAX,
  S3_CONNECT_TIMEOUT_MS,
  S3_CONNECTIONS_MAX,
  S3_IDLE_TIMEOUT_MS,
  S3_RETRY_AFTER_SECONDS,
  S3_RETRY_DELAY_MS,
} from "./limits.js";

const ID_KEY = "store-id";
const ID_PATTERN = /^[0-9a-f-]{36}$/;
/** A condition that must be met, and sent: the object is the first of its name. */
const NEW_ONLY = { IfNoneMatch: "*" } as const;

interface Upload extends PutOptions {
  readonly isNew?: boolean;
  readonly sha256?: string;
}

/** Opens the store. Throws a StartError when the bucket is not there, not ours, or not answering. */
export async function openS3Blobs(settings: S3Settings, drafts: BlobDrafts): Promise<BlobStore & { close(): void }> {
  const s3 = await loadS3();
  const client = await createS3Client(settings);
  try {
    await client.send(new s3.HeadBucketCommand({ Bucket: settings.bucket }));
    return new S3Blobs(s3, client, settings.bucket, drafts, await readStoreId(s3, client, settings.bucket));
  } catch (error) {
    client.destroy();
    throw toStartError(error, settings) ?? error;
  }
}

class S3Blobs implements BlobStore {
  constructor(
    private readonly s3: S3Module,
    private readonly client: S3Client,
    private readonly bucket: string,
    private readonly drafts: BlobDrafts,
    readonly id: string,
  ) {}

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<number> {
    splitBlobKey(key);
    if (content instanceof Uint8Array) {
      await this.asked(this.client.send(this.putCommand(key, content, content.byteLength, options)));
      return content.byteLength;
    }
    const draft = await this.drafts.write(content, false);
    try {
      await this.send(key, draft, options);
      return draft.sizeBytes;
    } finally {
      await rm(draft.path, { force: true });
    }
  }

  async receive(content: AsyncIterable<Uint8Array>, { sizeBytesMax }: { readonly sizeBytesMax: number }): Promise<BlobDraft> {
    const draft = await this.drafts.receive(content, sizeBytesMax);
    return {
      ...draft,
      save: async (key, options = {}) => {
        splitBlobKey(key);
        try {
          await this.send(key, draft, { ...options, sha256: draft.sha256 });
        } finally {
          await draft.discard();
        }
      },
    };
  }

  async head(key: string): Promise<BlobInfo | null> {
    const found = await this.find(this.client.send(new this.s3.HeadObjectCommand(this.named(key))));
    if (!found) return null;
    const { ContentLength, LastModified, ContentType } = found;
    return { key, sizeBytes: ContentLength ?? 0, writtenAt: LastModified ?? new Date(0), contentType: ContentType ?? null };
  }

  async open(key: string, range?: ByteRange): Promise<Readable | null> {
    const { start, end } = readableRange(range);
    const part = start === undefined ? {} : { Range: `bytes=${start}-${end}` };
    const found = await this.find(this.client.send(new this.s3.GetObjectCommand({ ...this.named(key), ...part })));
    return (found?.Body as Readable | undefined) ?? null;
  }

  async read(key: string): Promise<Buffer | null> {
    const found = await this.find(this.client.send(new this.s3.GetObjectCommand(this.named(key))));
    return found?.Body ? Buffer.from(await this.asked(found.Body.transformToByteArray())) : null;
  }

  async delete(key: string): Promise<void> {
    await this.find(this.client.send(new this.s3.DeleteObjectCommand(this.named(key))));
  }

  async *list(folder: string): AsyncGenerator<BlobInfo> {
    const pages = this.s3.paginateListObjectsV2({ client: this.client }, { Bucket: this.bucket, Prefix: `${folder}/` });
    for await (const { Contents: objects = [] } of pages) {
      for (const { Key: key, Size: sizeBytes = 0, LastModified: writtenAt = new Date(0) } of objects) {
        if (key !== undefined) yield { key, sizeBytes, writtenAt, contentType: null };
      }
    }
  }

  async presignPut(key: string, { contentType, sizeBytes, expiresInSeconds }: PresignPutOptions): Promise<PresignedUpload> {
    const { getSignedUrl } = await loadPresigner();
    const { PutObjectCommand } = this.s3;
    const object = { ...this.named(key), ...NEW_ONLY, ContentType: contentType, ContentLength: sizeBytes };
    const url = await getSignedUrl(this.client, new PutObjectCommand(object), {
      expiresIn: expiresInSeconds,
      // Left to itself the presigner does not sign the type.
      signableHeaders: new Set(["host", "content-type", "content-length", "if-none-match"]),
    });
    return { url, method: "PUT", headers: { "Content-Type": contentType, "If-None-Match": NEW_ONLY.IfNoneMatch } };
  }

  async presignGet(key: string, { expiresInSeconds, contentType, disposition, cacheControl }: PresignGetOptions): Promise<string> {
    const { getSignedUrl } = await loadPresigner();
    const command = new this.s3.GetObjectCommand({
      ...this.named(key),
      ResponseContentType: contentType,
      ResponseContentDisposition: disposition,
      ...(cacheControl !== undefined && { ResponseCacheControl: cacheControl }),
    });
    return getSignedUrl(this.client, command, { expiresIn: expiresInSeconds });
  }

  close(): void {
    this.client.destroy();
  }

  /** A file to an object. The SDK cannot repeat what it reads from a stream, so that is done here, from the file's beginning. */
  private async send(key: string, draft: Draft, upload: Upload): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const body = createReadStream(draft.path);
      try {
        await this.client.send(this.putCommand(key, body, draft.sizeBytes, upload));
        return;
      } catch (error) {
        if (upload.isNew && isTaken(error)) throw new BlobExists(`There is a blob ${key} already.`);
        if (attempt === S3_ATTEMPTS_MAX || !isTransient(error)) throw toCallersError(error);
        await delay(S3_RETRY_DELAY_MS * 2 ** (attempt - 1));
      } finally {
        body.destroy();
      }
    }
  }

  private putCommand(key: string, body: NonNullable<PutObjectCommandInput["Body"]>, sizeBytes: number, upload: Upload): PutObjectCommand {
    const command = new this.s3.PutObjectCommand({
      ...this.named(key),
      Body: body,
      ContentLength: sizeBytes,
      ...(upload.contentType !== undefined && { ContentType: upload.contentType }),
      ...(upload.isNew && NEW_ONLY),
    });
    const { sha256 } = upload;
    if (sha256 !== undefined) {
      // The store then refuses bytes that changed on the way, and the SDK need not hash them again.
      command.middlewareStack.add(
        (next) => (args) => {
          (args.request as { headers: Record<string, string> }).headers["x-amz-content-sha256"] = sha256;
          return next(args);
        },
        { step: "build" },
      );
    }
    return command;
  }

  private named(key: string): { readonly Bucket: string; readonly Key: string } {
    splitBlobKey(key);
    return { Bucket: this.bucket, Key: key };
  }

  /** Null for an object that is not there. */
  private find<Result>(work: Promise<Result>): Promise<Result | null> {
    return this.asked(work.catch((error: unknown) => (isMissing(error) ? null : Promise.reject(error))));
  }

  private asked<Result>(work: Promise<Result>): Promise<Result> {
    return work.catch((error: unknown) => Promise.reject(toCallersError(error)));
  }
}

/** Of processes that open an empty bucket at once, one writes the id; every one reads what was written. */
async function readStoreId(s3: S3Module, client: S3Client, bucket: string): Promise<string> {
  const read = async () => {
    try {
      const { Body: body } = await client.send(new s3.GetObjectCommand({ Bucket: bucket, Key: ID_KEY }));
      return (await body?.transformToString())?.trim() ?? "";
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  };
  const known = await read();
  if (known !== null && ID_PATTERN.test(known)) return known;
  const condition = known === null ? NEW_ONLY : {};
  const body = `${randomUUID()}\n`;
  await client
    .send(new s3.PutObjectCommand({ Bucket: bucket, Key: ID_KEY, Body: body, ContentType: "text/plain", ...condition }))
    .catch((error: unknown) => (isTaken(error) ? null : Promise.reject(error)));
  return (await read()) ?? body.trim();
}

// The client of an S3 store, loaded when one is configured, and what its errors mean.

/** As much of an SDK's error as is looked at. */
interface S3Failure {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

const SILENT = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

export type S3Module = typeof import("@aws-sdk/client-s3");

export async function loadS3(): Promise<S3Module> {
  return exportsOf(await import("@aws-sdk/client-s3"));
}

export async function loadPresigner(): Promise<typeof import("@aws-sdk/s3-request-presigner")> {
  return exportsOf(await import("@aws-sdk/s3-request-presigner"));
}

/** The SDK is CommonJS: inside of a bundle all that it exports is its default. */
function exportsOf<Module extends object>(loaded: Module): Module {
  return "default" in loaded ? (loaded.default as Module) : loaded;
}

export async function createS3Client({ endpoint, region, credentials }: S3Settings): Promise<S3Client> {
  const { S3Client } = await loadS3();
  const agent = { keepAlive: true, maxSockets: S3_CONNECTIONS_MAX };
  return new S3Client({
    region,
    ...(credentials && { credentials }),
    // Stores other than AWS are seldom reached by a host name for each bucket.
    ...(endpoint !== null && { endpoint, forcePathStyle: true }),
    maxAttempts: S3_ATTEMPTS_MAX,
    // Trailing checksums are AWS's own; a presigned upload would be signed for the checksum of nothing.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: S3_CONNECT_TIMEOUT_MS,
      socketTimeout: S3_IDLE_TIMEOUT_MS,
      httpAgent: agent,
      httpsAgent: agent,
      logger: SILENT,
    },
  });
}

/** The object is not there. A bucket that is gone is a failure of another kind. */
export function isMissing(error: unknown): boolean {
  const { name, $metadata } = error as S3Failure;
  return name === "NoSuchKey" || name === "NotFound" || ($metadata?.httpStatusCode === 404 && name !== "NoSuchBucket");
}

/** A write that must be the first under its name was not. */
export function isTaken(error: unknown): boolean {
  const { name, $metadata } = error as S3Failure;
  return name === "PreconditionFailed" || $metadata?.httpStatusCode === 412;
}

/** The store, or the way to it, is at fault, and may do better the next time. */
export function isTransient(error: unknown): boolean {
  const { name, code, $metadata } = error as S3Failure;
  const status = $metadata?.httpStatusCode;
  if (status !== undefined && status !== 200) return status >= 500 || status === 429 || status === 408 || status === 409;
  return name === "TimeoutError" || /^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)/.test(code ?? "");
}

/** What a caller of the gateway is told: a store that is away is no fault of the gateway's. */
export function toCallersError(error: unknown): unknown {
  return isTransient(error) ? storeIsAway(error) : error;
}

function storeIsAway(cause: unknown): AppError {
  return serviceUnavailable("The file store does not answer.", { retryAfterSeconds: S3_RETRY_AFTER_SECONDS, cause });
}

/** What the operator is told when the first request fails; null when it is none of the operator's doing. */
export function toStartError(error: unknown, { bucket, endpoint, region }: S3Settings): StartError | null {
  const { name, code, $metadata } = error as S3Failure;
  const where = endpoint ?? `AWS in ${region}`;
  const status = $metadata?.httpStatusCode;
  if (name === "CredentialsProviderError") {
    return new StartError("S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are not set, and the environment has no other credentials for S3.");
  }
  if (status === 404) return new StartError(`S3_BUCKET: there is no bucket ${bucket} at ${where}. Make it first.`);
  if (status === 403 || status === 401) {
    return new StartError(`S3_BUCKET: ${where} refuses access to ${bucket}. Check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY and S3_REGION.`);
  }
  if (status === 301 || status === 400)
    return new StartError(`S3_BUCKET: ${bucket} cannot be reached at ${where}. Check S3_REGION and S3_ENDPOINT.`);
  return isTransient(error)
    ? new PassingStartError(`S3_ENDPOINT: the store at ${where} does not answer (${code ?? status ?? name}).`)
    : null;
}

function ignore(): void {}
