/** What is known of a generation before anybody is asked for it: who pays, which model, what is set aside, and its usage row. */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord } from "../../store/ledger.js";
import { requireCaller } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { isFree } from "../catalog/pricing.js";
import type { ChargeRequest } from "../credits/credits.js";
import type { SafetyReport } from "../safety/safety.js";
import { type AskedFields, toAskedModel } from "./asked-model.js";
import { takeGenerationId } from "./generation-id.js";
import type { UsageSource, UsageStatus } from "./receipt.js";

/** Whom a generation is for and who may give it. */
export interface GenerationTask {
  readonly generationId: string;
  readonly caller: KeyCaller | SessionCaller;
  /** The one that was asked for, whose prices apply. */
  readonly model: Model;
  /** The model itself, then its fallbacks, in the order in which they are tried. */
  readonly candidates: readonly Model[];
  readonly isFree: boolean;
  /** What the request itself is warned of, before anybody has answered it. */
  readonly notes: readonly string[];
  /** Null when no safety feature applies, or none has been applied yet. */
  readonly safety: SafetyReport | null;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
}

export interface GenerationPlan extends GenerationTask {
  /** In nanocredits; see ChargeRequest. */
  readonly hold: Pick<ChargeRequest, "estimate" | "least" | "most">;
}

export interface Asked {
  readonly modality: Modality;
  /** An id or alias; nothing asks for the modality's default. */
  readonly modelName: string | null | undefined;
  /** Those of the request that reach the upstream as they are, and those that may have prices of their own. */
  readonly fields: AskedFields;
  readonly notes: readonly string[];
}

/** Throws UNAUTHORIZED, BAD_REQUEST, NOT_FOUND or FORBIDDEN. */
export function toTask(
  ctx: RequestContext,
  catalog: Catalog,
  { modality, modelName, fields, notes }: Asked,
  generationId = takeGenerationId(ctx),
): GenerationTask {
  const startedAt = performance.now();
  const caller = requireCaller(ctx);
  const model = toAskedModel(catalog.resolve(caller, modelName ?? undefined, modality), fields);
  ctx.note?.began(generationId, model.id);
  // A key that may not use a model is not served by it either.
  const candidates = [model, ...catalog.fallbacksOf(model).filter((fallback) => catalog.isAllowed(caller, fallback))];
  return { generationId, caller, model, candidates, isFree: isFree(model.rates), notes, safety: null, startedAt };
}

/** How far a generation has come, as its usage row tells it. */
export interface Progress {
  readonly modelUsed: string;
  readonly usage: UsageQuantities;
  readonly usageSource: UsageSource;
  readonly status: UsageStatus;
  /** From the request to the first byte; null when there was none, or the answer came whole. */
  readonly firstByteMs: number | null;
}

export const NOTHING_YET: Omit<Progress, "modelUsed"> = {
  usage: NO_USAGE,
  usageSource: "partial",
  status: "cancelled",
  firstByteMs: null,
};

/** The usage row; `credit_flush` adds what was charged and by which bucket. */
export function toLedgerRecord({ caller, model, startedAt }: GenerationTask, progress: Progress): LedgerRecord {
  const isKey = caller.kind === "key";
  const { modelUsed, usage, usageSource, status, firstByteMs } = progress;
  return {
    timestamp: new Date().toISOString(),
    apiKeyName: isKey ? caller.apiKeyName : null,
    apiKeyType: isKey ? caller.apiKeyType : null,
    // Usage knows no kind for it: a moderation model reads text (docs/spec/usage.md#rows).
    modality: model.modality === "moderation" ? "text" : model.modality,
    model: model.id,
    modelUsed,
    usage: toColumns(usage),
    responseTimeMs: Math.round(performance.now() - startedAt),
    timeToFirstTokenMs: firstByteMs === null ? null : Math.round(firstByteMs),
    status,
    usageSource,
    parentRequestId: caller.run?.parentRequestId ?? null,
  };
}

/** What of it the usage row has columns for. */
function toColumns(usage: UsageQuantities): UsageQuantities {
  return {
    inputTextTokens: usage.inputTextTokens,
    inputCachedTokens: usage.inputCachedTokens,
    inputCacheWriteTokens: usage.inputCacheWriteTokens,
    inputAudioTokens: usage.inputAudioTokens,
    inputImageTokens: usage.inputImageTokens,
    outputTextTokens: usage.outputTextTokens,
    outputReasoningTokens: usage.outputReasoningTokens,
    outputAudioTokens: usage.outputAudioTokens,
    outputImageTokens: usage.outputImageTokens,
    outputVideoMilliseconds: usage.outputVideoMilliseconds,
    outputAudioMilliseconds: usage.outputAudioMilliseconds,
  };
}
