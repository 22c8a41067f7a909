/** The ledger's record of a generation, under way or finished. */

import { amountsOf, NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord, RecordedCourse } from "../../store/ledger.js";
import { usageModalityOf } from "../catalog/modality.js";
import type { GenerationTask } from "./admission.js";
import type { UsageSource, UsageStatus } from "./receipt.js";

/** The course of a generation in its usage row. */
export interface Progress {
  readonly modelUsed: string;
  readonly usage: UsageQuantities;
  readonly usageSource: UsageSource;
  readonly status: UsageStatus;
  /** From the request to the first byte; null without one, or for a whole answer. */
  readonly firstByteMs: number | null;
  /** Of a finished one. */
  readonly course?: RecordedCourse | undefined;
}

/** Of one under way: the charge if its process dies. */
export function underWay(modelUsed: string, usage: UsageQuantities = NO_USAGE, firstByteMs: number | null = null): Progress {
  return { modelUsed, usage, usageSource: "partial", status: "cancelled", firstByteMs };
}

/** The usage row; `credit_flush` adds the charge and the bucket. */
export function toLedgerRecord({ caller, model, startedAt }: GenerationTask, progress: Progress): LedgerRecord {
  const isKey = caller.kind === "key";
  const { modelUsed, usage, usageSource, status, firstByteMs, course } = progress;
  return {
    timestamp: new Date().toISOString(),
    apiKeyName: isKey ? caller.apiKeyName : null,
    apiKeyType: isKey ? caller.apiKeyType : null,
    modality: usageModalityOf(model.modality),
    model: model.id,
    modelUsed,
    usage: usage === NO_USAGE ? usage : amountsOf(usage),
    responseTimeMs: Math.round(performance.now() - startedAt),
    timeToFirstTokenMs: firstByteMs === null ? null : Math.round(firstByteMs),
    status,
    usageSource,
    parentRequestId: caller.run?.parentRequestId ?? null,
    course,
  };
}

export function toCourse(heldNanocredits: bigint, upstreamMs: number, wholeMs: number): RecordedCourse {
  return {
    heldNanocredits: heldNanocredits.toString(),
    upstreamUs: Math.round(upstreamMs * 1000),
    gatewayUs: Math.round(Math.max(0, wholeMs - upstreamMs) * 1000),
  };
}
