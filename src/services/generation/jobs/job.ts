import type { ErrorCode } from "../../../errors.js";
import { closedTypeOf, type GeneratedType } from "../../../lib/content-types.js";
import type { LateFailure } from "../../../lib/request-note.js";
import type { GenerationJobModel, UsageRecordModel } from "../../../store/generated/prisma/models.js";
import { vendorKeyIdOf } from "../../catalog/route.js";
import { fromStoredReceipt, type Receipt } from "../receipt.js";
import { attemptsIn } from "../routing/candidate.js";
import type { LateError } from "./late-work.js";

export const JOB_STATUSES = ["running", "succeeded", "failed", "cancelled"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export interface GenerationJob {
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly modality: GenerationJobModel["modality"];
  readonly model: string;
  readonly input: object;
  readonly status: JobStatus;
  /** Percent, 0 to 100: never falls, and is 100 exactly when it has succeeded. */
  readonly progress: number;
  /** Set exactly when it has succeeded. */
  readonly result: JobResult | null;
  /** Set exactly when it was charged, which is when it has succeeded. */
  readonly receipt: Receipt | null;
  /** Set exactly when it has failed, without a charge. */
  readonly error: JobError | null;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
  /** When it is deleted with its result. */
  readonly expiresAt: Date;
}

export type JobError = LateError;

export interface JobResult {
  /** Needs a key of the account. */
  readonly url: string;
  readonly contentType: GeneratedType;
}

export interface StoredRequest {
  readonly input: object;
  /** The generation of the agent that started it; absent: the caller did. */
  readonly parentRequestId?: string | undefined;
  /** The request that started it, for the request log. */
  readonly startedBy?: LateFailure["request"];
  readonly failure?: Pick<JobError, "details">;
  /** Written when the answer is in the blob store and about to be charged: from then on the charge decides the job's state. */
  readonly made?: { readonly contentType: string; readonly storeId: string };
}

export const JOB_BLOB_FOLDER = "generations";

export function blobKeyOf(jobId: string): string {
  return `${JOB_BLOB_FOLDER}/${jobId}`;
}

export function toJob(row: GenerationJobModel, baseUrl: string): GenerationJob {
  const { id, accountId, apiKeyId, modality, model, createdAt, finishedAt, expiresAt } = row;
  return {
    id,
    accountId,
    apiKeyId,
    modality,
    model,
    input: (row.request as unknown as StoredRequest).input,
    status: statusOf(row),
    progress: progressOf(row),
    result: resultOf(row, baseUrl),
    receipt: row.receipt === null ? null : fromStoredReceipt(row.receipt),
    error: errorOf(row),
    createdAt,
    finishedAt,
    expiresAt,
  };
}

export function statusOf({ status }: Pick<GenerationJobModel, "status">): JobStatus {
  return status === "queued" ? "running" : status;
}

/** 100 only when it was charged. */
export function progressOf({ status, progress }: Pick<GenerationJobModel, "status" | "progress">): number {
  return status === "succeeded" ? 100 : Math.min(progress, 99);
}

export function errorOf({
  errorCode,
  errorMessage,
  request,
}: Pick<GenerationJobModel, "errorCode" | "errorMessage" | "request">): JobError | null {
  if (errorCode === null) return null;
  const { details } = (request as unknown as StoredRequest).failure ?? {};
  return { code: errorCode as ErrorCode, message: errorMessage ?? "", ...(details && { details }) };
}

export function resultOf(
  { id, status, resultContentType: said }: Pick<GenerationJobModel, "id" | "status" | "resultContentType">,
  baseUrl: string,
): JobResult | null {
  return status !== "succeeded" || said === null ? null : { url: `${baseUrl}/generations/${id}/content`, contentType: closedTypeOf(said) };
}

/** Rebuilt from the usage record when the process died between charge and answer. */
export function receiptOfRecord(record: UsageRecordModel): Receipt {
  const { id, model, modelUsed, costNanocredits, meterSource, usageSource, status, responseTimeMs, upstream } = record;
  return {
    generationId: id,
    model,
    modelUsed,
    upstream,
    route: record.route,
    vendorKeyId: vendorKeyIdOf(record.route),
    upstreamCostNanocredits: record.upstreamCostNanocredits,
    ...(record.appMarginNanocredits !== null && { marginNanocredits: record.appMarginNanocredits }),
    attempts: attemptsIn(record.attempts),
    usage: {
      inputTextTokens: record.inputTextTokens,
      inputCachedTokens: record.inputCachedTokens,
      inputCacheWriteTokens: record.inputCacheWriteTokens,
      inputAudioTokens: record.inputAudioTokens,
      inputImageTokens: record.inputImageTokens,
      outputTextTokens: record.outputTextTokens,
      outputReasoningTokens: record.outputReasoningTokens,
      outputAudioTokens: record.outputAudioTokens,
      outputImageTokens: record.outputImageTokens,
      outputVideoMilliseconds: record.outputVideoMilliseconds,
      outputAudioMilliseconds: record.outputAudioMilliseconds,
    },
    usageSource,
    status,
    costNanocredits,
    heldNanocredits: costNanocredits,
    meterSource,
    gatewayMs: 0,
    upstreamMs: responseTimeMs,
    responseMs: responseTimeMs,
    firstTokenMs: null,
    warnings: [],
    safety: null,
  };
}
