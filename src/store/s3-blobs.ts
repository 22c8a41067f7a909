/**
 * Blobs as objects of a bucket, shared by any number of processes. A blob's key is its object's; `store-id` beside them has the store's
 * UUID. An object appears whole or not at all, so drafts are on this process's disk.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { PutObjectCommand, PutObjectCommandInput, S3Client } from "@aws-sdk/client-s3";
import type { Logger } from "pino";
import type { S3Settings } from "../lib/settings.js";
import { type BlobDrafts, readableRange } from "./blob-drafts.js";
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
import { S3_ATTEMPTS_MAX, S3_PROBE_MS, S3_RETRY_DELAY_MS, S3_SILENCE_MS, S3_SILENT_ATTEMPTS, S3_START_SILENCE_MS } from "./limits.js";
import {
  createS3Client,
  isMissing,
  isTaken,
  isTransient,
  loadPresigner,
  loadS3,
  type S3Module,
  toCallersError,
  toStartError,
} from "./s3-client.js";
import { StoreSilence, StoreSilent } from "./store-silence.js";

const ID_KEY = "store-id";
const ID_PATTERN = /^[0-9a-f-]{36}$/;
/** A condition to send: the object must be the first of its name. */
const NEW_ONLY = { IfNoneMatch: "*" } as const;

/** Bytes in memory are sent in pieces of this size, so that progress is noticed. */
const PIECE_BYTES = 256 * 1024;

interface Upload extends PutOptions {
  readonly isNew?: boolean;
}

/** Content that can be read from its start repeatedly. */
interface Content {
  readonly sizeBytes: number;
  /** In hexadecimal, if known: the store then refuses corrupted bytes. */
  readonly sha256?: string;
  open(): Readable;
}

export interface S3Options {
  readonly log?: Logger;
  /** Milliseconds of silence before the store counts as unresponsive. */
  readonly silenceMs?: number;
}

/** Opens the store. Throws a StartError when the bucket is missing, forbidden or does not answer. */
export async function openS3Blobs(
  settings: S3Settings,
  drafts: BlobDrafts,
  options: S3Options = {},
): Promise<BlobStore & { close(): void }> {
  const { log, silenceMs = S3_SILENCE_MS } = options;
  const s3 = await loadS3();
  const client = await createS3Client(settings);
  const probe = (abortSignal: AbortSignal) => client.send(new s3.HeadBucketCommand({ Bucket: settings.bucket }), { abortSignal });
  const start = new StoreSilence({ probe, silenceMs: S3_START_SILENCE_MS, probeMs: S3_PROBE_MS });
  try {
    await start.call(probe);
    const id = await start.call((signal) => readStoreId(s3, client, settings.bucket, signal));
    const silence = new StoreSilence({ probe, silenceMs, probeMs: S3_PROBE_MS, onChange: (isAway) => warnOfSilence(log, isAway) });
    // Separate connections, so that downloads with slow readers delay nothing else.
    return new S3Blobs(s3, client, await createS3Client(settings), settings.bucket, drafts, id, silence);
  } catch (error) {
    client.destroy();
    throw toStartError(error, settings) ?? error;
  } finally {
    start.close();
  }
}

function warnOfSilence(log: Logger | undefined, isAway: boolean): void {
  if (isAway) log?.error("the bucket does not answer: what needs it is refused");
  else log?.info("the bucket answers again");
}

class S3Blobs implements BlobStore {
  constructor(
    private readonly s3: S3Module,
    private readonly client: S3Client,
    private readonly downloads: S3Client,
    private readonly bucket: string,
    private readonly drafts: BlobDrafts,
    readonly id: string,
    private readonly silence: StoreSilence,
  ) {}

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<number> {
    splitBlobKey(key);
    if (content instanceof Uint8Array) {
      const sha256 = createHash("sha256").update(content).digest("hex");
      await this.send(key, { sizeBytes: content.byteLength, sha256, open: () => Readable.from(piecesOf(content)) }, options);
      return content.byteLength;
    }
    const { path, sizeBytes } = await this.drafts.write(content, false);
    try {
      await this.send(key, { sizeBytes, open: () => createReadStream(path) }, options);
      return sizeBytes;
    } finally {
      await rm(path, { force: true });
    }
  }

  async receive(content: AsyncIterable<Uint8Array>, { sizeBytesMax }: { readonly sizeBytesMax: number }): Promise<BlobDraft> {
    const draft = await this.drafts.receive(content, sizeBytesMax);
    return {
      ...draft,
      save: async (key, options = {}) => {
        splitBlobKey(key);
        try {
          await this.send(key, draft, options);
        } finally {
          await draft.discard();
        }
      },
    };
  }

  async head(key: string): Promise<BlobInfo | null> {
    const command = () => new this.s3.HeadObjectCommand(this.named(key));
    const found = await this.find((abortSignal) => this.client.send(command(), { abortSignal }));
    if (!found) return null;
    const { ContentLength, LastModified, ContentType } = found;
    return { key, sizeBytes: ContentLength ?? 0, writtenAt: LastModified ?? new Date(0), contentType: ContentType ?? null };
  }

  async open(key: string, range?: ByteRange): Promise<Readable | null> {
    const { start, end } = readableRange(range);
    const part = start === undefined ? {} : { Range: `bytes=${start}-${end}` };
    const command = () => new this.s3.GetObjectCommand({ ...this.named(key), ...part });
    // Ending the call must not end the body that it returned.
    const found = await this.find((abortSignal) => this.downloads.send(command(), { abortSignal }));
    return found?.Body ? this.silence.watch(found.Body as Readable) : null;
  }

  async read(key: string): Promise<Buffer | null> {
    const body = await this.open(key);
    if (!body) return null;
    const chunks: Uint8Array[] = [];
    const collected = (async () => {
      for await (const chunk of body) chunks.push(chunk);
    })();
    await this.withCallersErrors(collected);
    return Buffer.concat(chunks);
  }

  async delete(key: string): Promise<void> {
    const command = () => new this.s3.DeleteObjectCommand(this.named(key));
    await this.find((abortSignal) => this.client.send(command(), { abortSignal }));
  }

  async *list(folder: string): AsyncGenerator<BlobInfo> {
    const { ListObjectsV2Command } = this.s3;
    for (let token: string | undefined, isLast = false; !isLast; ) {
      const page = { Bucket: this.bucket, Prefix: `${folder}/`, ContinuationToken: token };
      const {
        Contents: objects = [],
        IsTruncated,
        NextContinuationToken,
      } = await this.ask((abortSignal) => this.client.send(new ListObjectsV2Command(page), { abortSignal }));
      for (const { Key: key, Size: sizeBytes = 0, LastModified: writtenAt = new Date(0) } of objects) {
        if (key !== undefined) yield { key, sizeBytes, writtenAt, contentType: null };
      }
      token = NextContinuationToken;
      isLast = !IsTruncated || token === undefined;
    }
  }

  async presignPut(key: string, { contentType, sizeBytes, expiresInSeconds }: PresignPutOptions): Promise<PresignedUpload> {
    const { getSignedUrl } = await loadPresigner();
    const { PutObjectCommand } = this.s3;
    const object = { ...this.named(key), ...NEW_ONLY, ContentType: contentType, ContentLength: sizeBytes };
    const url = await getSignedUrl(this.client, new PutObjectCommand(object), {
      expiresIn: expiresInSeconds,
      // By default the presigner does not sign the type.
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
    this.silence.close();
    this.client.destroy();
    this.downloads.destroy();
  }

  /** The SDK cannot retry a stream, so retries are made here, from the content's start. */
  private async send(key: string, content: Content, upload: Upload): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.silence.call((signal, noteProgress) => this.sendOnce(key, content, upload, signal, noteProgress));
        return;
      } catch (error) {
        if (upload.isNew && isTaken(error)) throw new BlobExists(`There is a blob ${key} already.`);
        if (attempt === S3_ATTEMPTS_MAX || error instanceof StoreSilent || !isTransient(error)) throw toCallersError(error);
        await delay(S3_RETRY_DELAY_MS * 2 ** (attempt - 1));
      }
    }
  }

  private async sendOnce(key: string, content: Content, upload: Upload, abortSignal: AbortSignal, noteProgress: () => void): Promise<void> {
    const body = Readable.from(noting(content.open(), noteProgress), { objectMode: false });
    const failed = new Promise<never>((_, reject) => body.once("error", reject));
    const sent = this.client.send(this.putCommand(key, body, content, upload), { abortSignal });
    await Promise.race([sent, failed]).finally(() => body.destroy());
  }

  private putCommand(
    key: string,
    body: NonNullable<PutObjectCommandInput["Body"]>,
    { sizeBytes, sha256 }: Content,
    upload: Upload,
  ): PutObjectCommand {
    const command = new this.s3.PutObjectCommand({
      ...this.named(key),
      Body: body,
      ContentLength: sizeBytes,
      ...(upload.contentType !== undefined && { ContentType: upload.contentType }),
      ...(upload.isNew && NEW_ONLY),
    });
    if (sha256 !== undefined) {
      // The SDK need not hash them again.
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

  /** Null for a missing object. */
  private find<Result>(send: (signal: AbortSignal) => Promise<Result>): Promise<Result | null> {
    return this.ask((signal) => send(signal).catch((error: unknown) => (isMissing(error) ? null : Promise.reject(error))));
  }

  private ask<Result>(send: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return this.withCallersErrors(this.silence.call(send, S3_SILENT_ATTEMPTS));
  }

  private withCallersErrors<Result>(work: Promise<Result>): Promise<Result> {
    return work.catch((error: unknown) => Promise.reject(toCallersError(error)));
  }
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.byteLength; start += PIECE_BYTES) yield bytes.subarray(start, start + PIECE_BYTES);
}

async function* noting(chunks: AsyncIterable<Uint8Array>, note: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    note();
    yield chunk;
  }
}

/** Of processes that open an empty bucket at once, one writes the id; all read the written one. */
async function readStoreId(s3: S3Module, client: S3Client, bucket: string, abortSignal: AbortSignal): Promise<string> {
  const read = async () => {
    try {
      const { Body: body } = await client.send(new s3.GetObjectCommand({ Bucket: bucket, Key: ID_KEY }), { abortSignal });
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
    .send(new s3.PutObjectCommand({ Bucket: bucket, Key: ID_KEY, Body: body, ContentType: "text/plain", ...condition }), { abortSignal })
    .catch((error: unknown) => (isTaken(error) ? null : Promise.reject(error)));
  return (await read()) ?? body.trim();
}
