/**
 * What must be known before an upstream is called: who pays, which model, which body, what it may cost
 * (docs/architecture.md#a-generation-end-to-end).
 */
import { randomInt } from "node:crypto";
import type { KeyCaller, RequestContext, SessionCaller } from "../../../context.js";
import type { ChatBody } from "../../../lib/chat-format.js";
import { countChatTokens } from "../../../lib/tokenizer.js";
import type { UsageQuantities } from "../../../lib/usage.js";
import type { LedgerRecord } from "../../../store/ledger.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Model } from "../../catalog/model.js";
import { isFree } from "../../catalog/pricing.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import type { SafetyReport } from "../../safety/safety.js";
import { toAskedModel } from "../asked-model.js";
import type { UsageSource, UsageStatus } from "../receipt.js";
import { type ChatHold, type ChatLength, promptToHold, sizeHold } from "./chat-hold.js";
import { type ChatCompletionInput, outputCapOf } from "./chat-input.js";

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
  readonly length: ChatLength;
  /** How many answers were asked for. */
  readonly choices: number;
  /** The caller stated how long the answer may be, so the hold covers all of it. */
  readonly isCapped: boolean;
  readonly hold: ChatHold;
  readonly isFree: boolean;
  /** What the request itself is warned of, before anybody has answered it. */
  readonly notes: readonly string[];
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
  isStreamed: boolean,
  notes: readonly string[],
): ChatPlan {
  const startedAt = performance.now();
  const caller = requireCaller(ctx);
  const model = toAskedModel(catalog.resolve(caller, input.model ?? undefined, "text"), input);
  ctx.note?.began(generationId, model.id);
  // A key that may not use a model is not served by it either.
  const candidates = [model, ...catalog.fallbacksOf(model).filter((fallback) => catalog.isAllowed(caller, fallback))];
  const mean = estimates.meanOf(caller.accountId, model.id);
  const limit = estimates.limitOf(caller.accountId, model.id);
  const length = { model, candidates, isStreamed, statedCap: outputCapOf(input), mean, limit };
  return {
    generationId,
    caller,
    model,
    candidates,
    body: toBody(input),
    ...sizeChat(length, input),
    length,
    choices: input.n ?? 1,
    isCapped: length.statedCap !== null,
    isFree: isFree(model.rates),
    notes,
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
  return { ...plan, body: { ...plan.body, messages }, ...sizeChat(plan.length, { ...input, messages }), safety };
}

function sizeChat(length: ChatLength, input: ChatCompletionInput): Pick<ChatPlan, "promptTokens" | "hold"> {
  const promptTokens = countChatTokens(input.messages, input);
  return { promptTokens, hold: sizeHold(length, promptToHold(input, promptTokens), input) };
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

/** -1 asks for a random seed; one that was not sent is not forwarded (docs/spec/generation.md#seeds). */
function toBody(input: ChatCompletionInput): ChatBody {
  if (input.safe === undefined && input.seed !== -1) return input;
  const { safe: _, ...body } = input;
  return input.seed === -1 ? { ...body, seed: randomInt(RANDOM_SEED_MAX) } : body;
}
