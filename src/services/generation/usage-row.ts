/** A generation as the ledger writes it down: while it is under way, and when it is over. */
import { amountsOf, NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord, RecordedCourse } from "../../store/ledger.js";
import type { GenerationTask } from "./admission.js";
import type { UsageSource, UsageStatus } from "./receipt.js";

/** How far a generation has come, as its usage row tells it. */
export interface Progress {
  readonly modelUsed: string;
  readonly usage: UsageQuantities;
  readonly usageSource: UsageSource;
  readonly status: UsageStatus;
  /** From the request to the first byte; null when there was none, or the answer came whole. */
  readonly firstByteMs: number | null;
  /** Of one that is over. */
  readonly course?: RecordedCourse | undefined;
}

/** Of a generation that is under way: what is charged should nobody be there to finish it. */
export function underWay(modelUsed: string, usage: UsageQuantities = NO_USAGE, firstByteMs: number | null = null): Progress {
  return { modelUsed, usage, usageSource: "partial", status: "cancelled", firstByteMs };
}

/** The usage row; `credit_flush` adds what was charged and by which bucket. */
export function toLedgerRecord({ caller, model, startedAt }: GenerationTask, progress: Progress): LedgerRecord {
  const isKey = caller.kind === "key";
  const { modelUsed, usage, usageSource, status, firstByteMs, course } = progress;
  return {
    timestamp: new Date().toISOString(),
    apiKeyName: isKey ? caller.apiKeyName : null,
    apiKeyType: isKey ? caller.apiKeyType : null,
    // Usage knows no kind for it: a moderation model reads text (docs/spec/usage.md#rows).
    modality: model.modality === "moderation" ? "text" : model.modality,
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
