/**
 * What must be known before an upstream is called: who pays, which model, which body, what it may cost
 * (docs/architecture.md#a-generation-end-to-end).
 */
import { randomInt } from "node:crypto";
import type { RequestContext } from "../../../context.js";
import type { ChatBody } from "../../../lib/chat-format.js";
import { countChatTokens } from "../../../lib/tokenizer.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import type { SafetyReport } from "../../safety/safety.js";
import { type GenerationTask, toTask } from "../plan.js";
import { type ChatHold, type ChatLength, promptToHold, sizeHold } from "./chat-hold.js";
import { type ChatCompletionInput, outputCapOf } from "./chat-input.js";

/** Seeds are drawn below 2^31, which every upstream takes. */
const RANDOM_SEED_MAX = 2 ** 31 - 1;

export interface ChatPlan extends GenerationTask {
  readonly body: ChatBody;
  readonly promptTokens: number;
  readonly length: ChatLength;
  /** How many answers were asked for. */
  readonly choices: number;
  /** The caller stated how long the answer may be, so the hold covers all of it. */
  readonly isCapped: boolean;
  readonly hold: ChatHold;
}

export function planChat(
  ctx: RequestContext,
  generationId: string,
  input: ChatCompletionInput,
  { catalog, estimates }: { readonly catalog: Catalog; readonly estimates: OutputEstimates },
  isStreamed: boolean,
  notes: readonly string[],
): ChatPlan {
  const task = toTask(ctx, catalog, { modality: "text", modelName: input.model, fields: input, notes }, generationId);
  const { caller, model, candidates } = task;
  const mean = estimates.meanOf(caller.accountId, model.id);
  const limit = estimates.limitOf(caller.accountId, model.id);
  const length = { model, candidates, isStreamed, statedCap: outputCapOf(input), mean, limit };
  return {
    ...task,
    body: toBody(input),
    ...sizeChat(length, input),
    length,
    choices: input.n ?? 1,
    isCapped: length.statedCap !== null,
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

/** -1 asks for a random seed; one that was not sent is not forwarded (docs/spec/generation.md#seeds). */
function toBody(input: ChatCompletionInput): ChatBody {
  if (input.safe === undefined && input.seed !== -1) return input;
  const { safe: _, ...body } = input;
  return input.seed === -1 ? { ...body, seed: randomInt(RANDOM_SEED_MAX) } : body;
}
