/** The client of an S3 store, loaded when configured, and the classification of its errors. */
import type { S3Client } from "@aws-sdk/client-s3";
import { type AppError, serviceUnavailable } from "../errors.js";
import type { S3Settings } from "../lib/settings.js";
import { PassingStartError, StartError } from "../lib/start-error.js";
import { S3_ATTEMPTS_MAX, S3_CONNECTIONS_MAX, S3_IDLE_TIMEOUT_MS, S3_RETRY_AFTER_SECONDS } from "./limits.js";
import { StoreSilent } from "./store-silence.js";

/** The fields of an SDK error that are read. */
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

/** The SDK is CommonJS: in a bundle its exports are the default export. */
function exportsOf<Module extends object>(loaded: Module): Module {
  return "default" in loaded ? (loaded.default as Module) : loaded;
}

export async function createS3Client({ endpoint, region, credentials }: S3Settings): Promise<S3Client> {
  const { S3Client } = await loadS3();
  const agent = { keepAlive: true, maxSockets: S3_CONNECTIONS_MAX };
  return new S3Client({
    region,
    ...(credentials && { credentials }),
    // Stores other than AWS seldom have a host name per bucket.
    ...(endpoint !== null && { endpoint, forcePathStyle: true }),
    logger: SILENT,
    maxAttempts: S3_ATTEMPTS_MAX,
    // A store that ignores the header would delay each upload.
    expectContinueHeader: false,
    // Trailing checksums are specific to AWS; a presigned upload would be signed for the checksum of an empty body.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      socketTimeout: S3_IDLE_TIMEOUT_MS,
      httpAgent: agent,
      httpsAgent: agent,
      logger: SILENT,
    },
  });
}

/** The object does not exist. A missing bucket is another error. */
export function isMissing(error: unknown): boolean {
  const { name, $metadata } = error as S3Failure;
  return name === "NoSuchKey" || name === "NotFound" || ($metadata?.httpStatusCode === 404 && name !== "NoSuchBucket");
}

/** A write that had to be the first of its name was not. */
export function isTaken(error: unknown): boolean {
  const { name, $metadata } = error as S3Failure;
  return name === "PreconditionFailed" || $metadata?.httpStatusCode === 412;
}

/** The store or the network is at fault, and a retry may succeed. */
export function isTransient(error: unknown): boolean {
  const { name, code, $metadata } = error as S3Failure;
  const status = $metadata?.httpStatusCode;
  if (error instanceof StoreSilent) return true;
  if (status !== undefined && status !== 200) return status >= 500 || status === 429 || status === 408 || status === 409;
  return name === "TimeoutError" || /^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)/.test(code ?? "");
}

/** The error for callers: an unavailable store is not the gateway's fault. */
export function toCallersError(error: unknown): unknown {
  return isTransient(error) ? storeIsAway(error) : error;
}

function storeIsAway(cause: unknown): AppError {
  return serviceUnavailable("The file store does not answer.", { retryAfterSeconds: S3_RETRY_AFTER_SECONDS, cause });
}

/** The operator's error when the first request fails; null when the operator is not at fault. */
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
