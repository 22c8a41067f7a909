/**
 * Chat completions (docs/spec/chat.md#chat-completions): one answer, or a stream. Both faces enter here
 * (docs/architecture.md#a-generation-end-to-end).
 */
import type { RequestContext } from "../../../context.js";
import type { ChatCompletion } from "../../../lib/chat-format.js";
import type { ChatAnswer } from "../../../providers/provider.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import type { AgentProviders } from "../agent-providers.js";
import type { Answered } from "../attempts.js";
import { takeGenerationId } from "../generation-id.js";
import { misspeltChatFields } from "../misspelt-fields.js";
import type { Receipt } from "../receipt.js";
import { GenerationRun, type RunDependencies, type RunOptions, type WholeMetered } from "../run.js";
import { GenerationStream } from "../stream.js";
import { allInCallersWords } from "../upstream-words.js";
import type { Upstreams } from "../upstreams.js";
import { admitChat } from "./chat-admission.js";
import { type ChatAttempt, completionOf, type ProviderOf } from "./chat-attempts.js";
import { cutCompletion, cutWarning } from "./chat-cut.js";
import type { ChatCompletionInput } from "./chat-input.js";
import { ChatMeter } from "./chat-meter.js";
import { type ChatPlan, planChat } from "./chat-plan.js";
import { type ChatCompletionStream, openChat } from "./chat-stream.js";
import { toReportedUsage } from "./chat-usage.js";
import { holdDelivered, outputTokensOf } from "./usage-cap.js";

export interface ChatDependencies extends RunDependencies {
  readonly catalog: Catalog;
  readonly estimates: OutputEstimates;
  readonly upstreams: Upstreams;
  readonly agents: AgentProviders;
}

export interface ChatCompletionResult {
  /** The JSON document to answer. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  readonly receipt: Receipt;
}

export class ChatCompletions {
  constructor(private readonly deps: ChatDependencies) {}

  /**
   * Resolves when the charge is committed, whether or not its caller is still there. `notes` are what the caller of a request in another
   * format is warned of.
   */
  async create(ctx: RequestContext, input: ChatCompletionInput, notes = misspeltChatFields(input)): Promise<ChatCompletionResult> {
    const planned = planChat(ctx, takeGenerationId(ctx), input, this.deps, false, notes);
    // No asynchronous step where nothing limits and nothing is checked: callers with secret keys are on the fast path.
    const admitted = admitChat(ctx, planned, input, this.deps.admission);
    const plan = admitted ? await admitted : planned;
    const run = new GenerationRun(ctx, plan, this.deps);
    const capOf = () => plan.hold.capFor(run.heldNanocredits);
    let passed: ChatAnswer | null = null;
    const { answer, receipt } = await run.answer({
      call: (model) => completionOf({ ...this.attemptOf(ctx, plan, run), outputTokensMax: capOf() }, model),
      meter: async (answered) => {
        const metered = await this.meter(plan, run, answered, capOf());
        passed = metered.passed;
        return metered;
      },
    });
    return { ...withUsage(passed ?? answer, receipt), receipt };
  }

  /** See ChatCompletionStream. Nothing is thrown here: a refusal is the rejection of `opened`. */
  stream(ctx: RequestContext, input: ChatCompletionInput, notes = misspeltChatFields(input)): ChatCompletionStream {
    const { deps } = this;
    const generationId = takeGenerationId(ctx);
    let plan: ChatPlan;
    const begin = (admitted: ChatPlan, options: RunOptions) => {
      plan = admitted;
      return new GenerationRun(ctx, admitted, deps, options);
    };
    const stream = new GenerationStream({
      admit: () => {
        const planned = planChat(ctx, generationId, input, deps, true, notes);
        const admitting = admitChat(ctx, planned, input, deps.admission);
        const options = { isStreamed: true };
        return admitting ? admitting.then((admitted) => begin(admitted, options)) : begin(planned, options);
      },
      open: (run) =>
        openChat({
          ...{ run, plan },
          includesUsage: input.stream_options?.include_usage === true,
          attempt: this.attemptOf(ctx, plan, run),
          learn: (outputTokens) => deps.estimates.learn(plan.caller.accountId, plan.model.id, outputTokens),
        }),
    });
    const { admitted, opened, events } = stream;
    return { generationId, notes, admitted, opened, events, receipt: () => stream.receipt(), timing: () => stream.timing() };
  }

  private attemptOf(ctx: RequestContext, plan: ChatPlan, { cancellation }: GenerationRun): Omit<ChatAttempt, "outputTokensMax"> {
    return {
      plan,
      providerOf: this.chatProviderFor(ctx, plan.generationId),
      signal: cancellation.signal,
      onLimit: (limit) => this.deps.estimates.learnLimit(plan.caller.accountId, plan.model.id, limit),
    };
  }

  /** An agent that the gateway runs answers by itself; every other model has an upstream. */
  private chatProviderFor(ctx: RequestContext, generationId: string): ProviderOf {
    const { agents, upstreams } = this.deps;
    return (model) => {
      const isRunHere = model.agentType === "prompt_agent" || model.agentType === "code_agent";
      return isRunHere ? agents.chat(model, { ctx, generationId }) : upstreams.chat(ctx, model);
    };
  }

  /** What a whole answer is charged for, and what of it may be passed on for that. */
  private async meter(
    plan: ChatPlan,
    run: GenerationRun,
    { model, answer }: Answered<ChatAnswer>,
    outputTokensMax: number | null,
  ): Promise<WholeMetered & { readonly passed: ChatAnswer }> {
    const meter = new ChatMeter(plan.promptTokens, plan.body);
    meter.readCompletion(answer.completion, answer.usage, model.isCommunity);
    const metered = meter.complete();
    this.deps.estimates.learn(plan.caller.accountId, plan.model.id, outputTokensOf(model, meter, metered.usage));
    const tokensPassed = await holdDelivered(plan, run, model, answer, metered);
    const passed = tokensPassed === null ? answer : cutAnswer(answer, tokensPassed);
    const cutAt = endsAtLength(passed) ? (tokensPassed ?? outputTokensMax) : null;
    const warnings = allInCallersWords(answer.warnings ?? [], model);
    return {
      ...{ quantities: metered.usage, source: metered.source, passed },
      warnings: cutAt === null ? warnings : [...warnings, cutWarning(cutAt)],
      isCut: cutAt !== null,
    };
  }
}

function cutAnswer(answer: ChatAnswer, tokens: number): ChatAnswer {
  const completion = cutCompletion(answer.completion, tokens);
  return { ...answer, completion, bytes: Buffer.from(JSON.stringify(completion)) };
}

function endsAtLength({ completion }: ChatAnswer): boolean {
  return completion.choices?.some((choice) => choice.finish_reason === "length") ?? false;
}

/** Clients read `usage`: where none was reported that was believed, it is what was charged for. Otherwise the bytes pass as they came. */
function withUsage(answer: ChatAnswer, { usage, usageSource }: Receipt): { bytes: Uint8Array; completion: ChatCompletion } {
  if (usageSource === "provider") return { bytes: answer.bytes, completion: answer.completion };
  const completion = { ...answer.completion, usage: toReportedUsage(usage) };
  return { bytes: Buffer.from(JSON.stringify(completion)), completion };
}
