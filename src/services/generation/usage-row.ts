/** The ledger's record of a generation, under way or finished. */

import { amountsOf, NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord, RecordedCourse, RecordedRoute } from "../../store/ledger.js";
import { usageModalityOf } from "../catalog/modality.js";
import type { GenerationTask } from "./admission.js";
import { earnersOf } from "./earners.js";
import type { UsageSource, UsageStatus } from "./receipt.js";
import type { Attempt, Candidate } from "./routing/candidate.js";

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
  /** Once an upstream answers. */
  readonly route?: RecordedRoute | undefined;
  /** The price of the amounts that the gateway counted, in nanocredits, where the upstream reported other amounts. */
  readonly countedNanocredits?: bigint | undefined;
}

/** Of one under way: the charge if its process dies. */
export function underWay(
  modelUsed: string,
  usage: UsageQuantities = NO_USAGE,
  firstByteMs: number | null = null,
  route?: RecordedRoute,
): Progress {
  return { modelUsed, usage, usageSource: "partial", status: "cancelled", firstByteMs, route };
}

/** The usage row; `credit_flush` adds the charge and the bucket. */
export function toLedgerRecord({ caller, model, startedAt, sharing }: GenerationTask, progress: Progress): LedgerRecord {
  const isKey = caller.kind === "key";
  const { modelUsed, usage, usageSource, status, firstByteMs, course, route, countedNanocredits = null } = progress;
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
    route,
    ...(sharing && { earners: earnersOf(sharing, modelUsed, countedNanocredits) }),
  };
}

export function toRecordedRoute({ route }: Candidate, upstreamCostNanocredits: bigint | null, attempts: readonly Attempt[]): RecordedRoute {
  const cost = upstreamCostNanocredits === null ? null : upstreamCostNanocredits.toString();
  return { upstream: route.upstreamName, route: route.id, costNanocredits: cost, attempts: attempts.length === 0 ? null : attempts };
}

export function toCourse(heldNanocredits: bigint, upstreamMs: number, wholeMs: number): RecordedCourse {
  return {
    heldNanocredits: heldNanocredits.toString(),
    upstreamUs: Math.round(upstreamMs * 1000),
    gatewayUs: Math.round(Math.max(0, wholeMs - upstreamMs) * 1000),
  };
}
