/**
 * What must be known before an upstream is called: who pays, which model, which body, what it may cost
 * (architecture, steps 2 and 3).
 */
import { randomInt } from "node:crypto";
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import type { ChatBody } from "../../lib/chat-format.js";
import { countChatTokens } from "../../lib/tokenizer.js";
import { NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord } from "../../store/ledger.js";
import type { Model } from "../catalog/model.js";
import type { Catalog } from "../catalog.js";
import type { OutputEstimates } from "../credits/output-estimates.js";
import { requireCaller } from "../permissions.js";
import { holdFor, isFree } from "../pricing.js";
import type { SafetyReport } from "../safety/safety.js";
import { toAskedModel } from "./asked-model.js";
import { type ChatCompletionInput, outputCapOf } from "./chat-input.js";
import type { UsageSource, UsageStatus } from "./receipt.js";

/** Seeds are drawn below 2^31, which every upstream takes. */
const RANDOM_SEED_MAX = 2 ** 31 - 1;

export interface ChatPlan {
  readonly generationId: string;
  readonly caller: KeyCaller | SessionCaller;
  readonly model: Model;
  /** The model itself, then its fallbacks, in the order in which they are tried. */
  readonly candidates: readonly Model[];
  readonly body: ChatBody;
  readonly promptTokens: number;
  /** Output tokens that the hold covers. */
  readonly outputTokensHeld: number;
  /** The caller stated how long the answer may be, so the hold covers all of it. */
  readonly isCapped: boolean;
  /** Nanocredits. */
  readonly estimate: bigint;
  readonly isFree: boolean;
  /** Null when no safety feature applies, or none has been applied yet. */
  readonly safety: SafetyReport | null;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
}

export function planChat(
  ctx: RequestContext,
  generationId: string,
  input: ChatCompletionInput,
  catalog: Catalog,
  estimates: OutputEstimates,
): ChatPlan {
  const startedAt = performance.now();
  const caller = requireCaller(ctx);
  const model = toAskedModel(catalog.resolve(caller, input.model ?? undefined, "text"), input);
  const promptTokens = countChatTokens(input.messages, input.tools);
  const outputTokensHeld = (outputCapOf(input) ?? estimates.meanOf(model.id)) * (input.n ?? 1);
  const free = isFree(model.rates);
  return {
    generationId,
    caller,
    model,
    // A key that may not use a model is not served by it either.
    candidates: [model, ...catalog.fallbacksOf(model).filter((fallback) => catalog.isAllowed(caller, fallback))],
    body: toBody(input),
    promptTokens,
    outputTokensHeld,
    isCapped: outputCapOf(input) !== null,
    estimate: free ? 0n : estimateCost(model, promptTokens, outputTokensHeld),
    isFree: free,
    safety: null,
    startedAt,
  };
}

/** The same chat with the messages that its safety features made of it. */
export function withMessages(
  plan: ChatPlan,
  input: ChatCompletionInput,
  messages: ChatCompletionInput["messages"],
  safety: SafetyReport | null,
): ChatPlan {
  const promptTokens = countChatTokens(messages, input.tools);
  return {
    ...plan,
    body: { ...plan.body, messages },
    promptTokens,
    estimate: plan.isFree ? 0n : estimateCost(plan.model, promptTokens, plan.outputTokensHeld),
    safety,
  };
}

/** The row as it stands; `credit_flush` adds what was charged and by which bucket. */
export function toLedgerRecord(
  plan: ChatPlan,
  progress: {
    readonly modelUsed: string;
    readonly usage: UsageQuantities;
    readonly usageSource: UsageSource;
    readonly status: UsageStatus;
    readonly firstTokenMs: number | null;
  },
): LedgerRecord {
  const { caller, model, startedAt } = plan;
  const isKey = caller.kind === "key";
  return {
    timestamp: new Date().toISOString(),
    apiKeyName: isKey ? caller.apiKeyName : null,
    apiKeyType: isKey ? caller.apiKeyType : null,
    modality: "text",
    model: model.id,
    modelUsed: progress.modelUsed,
    usage: progress.usage,
    responseTimeMs: Math.round(performance.now() - startedAt),
    timeToFirstTokenMs: progress.firstTokenMs === null ? null : Math.round(progress.firstTokenMs),
    status: progress.status,
    usageSource: progress.usageSource,
    parentRequestId: caller.run?.parentRequestId ?? null,
  };
}

function estimateCost(model: Model, inputTextTokens: number, outputTextTokens: number): bigint {
  return holdFor({ ...NO_USAGE, inputTextTokens, outputTextTokens }, model.rates);
}

/** -1 asks for a random seed; one that was not sent is not forwarded (decisions "Generation"). */
function toBody(input: ChatCompletionInput): ChatBody {
  if (input.safe === undefined && input.seed !== -1) return input;
  const { safe: _, ...body } = input;
  return input.seed === -1 ? { ...body, seed: randomInt(RANDOM_SEED_MAX) } : body;
}
