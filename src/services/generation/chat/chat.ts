/**
 * Chat completions (docs/spec/chat.md#chat-completions): one answer, or a stream. Both faces enter here
 * (docs/architecture.md#a-generation-end-to-end).
 */
import type { RequestContext } from "../../../context.js";
import type { ChatCompletion } from "../../../lib/chat-format.js";
import { ownValue } from "../../../lib/own-values.js";
import type { ChatAnswer, ChatProvider } from "../../../providers/provider.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Model } from "../../catalog/model.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import { isChecked, toSafeText } from "../../safety/features.js";
import { quoteMarksInJson } from "../../safety/redaction.js";
import { type Admission, addressesIn, fetchesNothing } from "../admission.js";
import { type Answered, allInCallersWords } from "../attempts.js";
import { takeGenerationId } from "../plan.js";
import type { Receipt } from "../receipt.js";
import { GenerationRun, type RunDependencies, type RunOptions, type WholeMetered } from "../run.js";
import { GenerationStream } from "../stream.js";
import type { Upstreams } from "../upstreams.js";
import { misspeltChatFields } from "../warnings.js";
import { type ChatAttempt, completionOf, cutCompletion, cutWarning, type ProviderOf, toReportedUsage } from "./answer.js";
import { ChatMeter, holdDelivered, outputTokensOf } from "./meter.js";
import { type ChatCompletionInput, type ChatPlan, planChat, withMessages } from "./plan.js";
import { type ChatCompletionStream, openChat } from "./stream.js";

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
    let cap: number | null | undefined;
    const capOf = () => {
      if (cap === undefined) cap = plan.hold.capFor(run.heldNanocredits);
      return cap;
    };
    let passed: ChatAnswer | null = null;
    const { answer, receipt } = await run.answer({
      call: (model) => completionOf(this.attemptOf(ctx, plan, run, capOf()), model),
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
          attempt: (outputTokensMax) => this.attemptOf(ctx, plan, run, outputTokensMax),
          learn: (outputTokens) => deps.estimates.learn(plan.caller.accountId, plan.model.id, outputTokens),
        }),
    });
    const { admitted, opened, events } = stream;
    return { generationId, notes, admitted, opened, events, receipt: () => stream.receipt(), timing: () => stream.timing() };
  }

  private attemptOf(ctx: RequestContext, plan: ChatPlan, { cancellation }: GenerationRun, outputTokensMax: number | null): ChatAttempt {
    return {
      plan,
      providerOf: this.chatProviderFor(ctx, plan.generationId),
      signal: cancellation.signal,
      outputTokensMax,
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
      quantities: metered.usage,
      source: metered.source,
      passed,
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

/** The generation that the agent answers. */
export interface AgentCall {
  readonly ctx: RequestContext;
  readonly generationId: string;
}

/**
 * What answers a chat when its model is an agent that the gateway runs: in the place of an upstream, so that an agent's answer is
 * held, streamed, metered and recorded like any other. Only the models that the agent asks cost something.
 */
export interface AgentProviders {
  /** The agent `model` at work on this call. Its `complete` and `stream` throw AppErrors and ProviderErrors. */
  chat(model: Model, call: AgentCall): ChatProvider;
}

// What a chat must pass before anything is held: limits, the outbound guard with every address that an upstream would fetch, and the
// safety features, which read and may rewrite every text that the caller wrote in its messages.

type Message = ChatCompletionInput["messages"][number];
type Rewrite = (text: string) => string;

/** The plan as it may go on; null when nothing stands in its way: callers with secret keys are on the fast path. */
export function admitChat(ctx: RequestContext, plan: ChatPlan, input: ChatCompletionInput, admission: Admission): Promise<ChatPlan> | null {
  const limited = admission.limit(ctx, plan.caller, plan.model);
  const addresses = plan.candidates.every(fetchesNothing) ? [] : addressesIn(input.messages, "messages");
  const isRead = isChecked(plan.model, input.safe);
  if (!isRead && addresses.length === 0) return limited?.then(() => plan) ?? null;
  return (async () => {
    if (limited) await limited;
    if (addresses.length > 0) await admission.addresses.check(addresses, ctx.signal);
    return isRead ? screen(ctx, plan, input, admission) : plan;
  })();
}

async function screen(ctx: RequestContext, plan: ChatPlan, input: ChatCompletionInput, admission: Admission): Promise<ChatPlan> {
  const written: string[] = [];
  const note: Rewrite = (text) => {
    written.push(text);
    return text;
  };
  for (const message of input.messages) rewriteMessage(message, note);
  const { texts, safety } = await admission.check(ctx, { model: plan.model, texts: written, safe: toSafeText(input.safe) });
  if (texts.every((text, index) => text === written[index])) return { ...plan, safety };
  let next = 0;
  const replace: Rewrite = () => {
    const text = texts[next] ?? "";
    next += 1;
    return text;
  };
  const messages = input.messages.map((message) => rewriteMessage(message, replace));
  return withMessages(plan, input, messages, safety);
}

/** Fields of a message, and of a part of its content, that are text; an assistant's thoughts have two names. */
const MESSAGE_TEXTS = ["content", "refusal", "reasoning_content", "reasoning"];
const PART_TEXTS = ["text", "refusal"];

/** The message with each of its texts rewritten, always in the same order. */
function rewriteMessage(message: Message, rewrite: Rewrite): Message {
  const { content, tool_calls: calls, function_call: called } = message;
  return {
    ...rewriteFields(message, MESSAGE_TEXTS, rewrite),
    ...(Array.isArray(content) && { content: content.map((part) => rewriteFields(part, PART_TEXTS, rewrite)) }),
    ...(Array.isArray(calls) && { tool_calls: calls.map((call) => rewriteCall(call, rewrite)) }),
    // What tool calls were called before.
    ...(called !== undefined && { function_call: rewriteArguments(called, rewrite) }),
  };
}

function rewriteFields<Fields extends Readonly<Record<string, unknown>>>(
  fields: Fields,
  names: readonly string[],
  rewrite: Rewrite,
): Fields {
  const texts = names
    .map((name) => [name, ownValue(fields, name)] as const)
    .filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return { ...fields, ...Object.fromEntries(texts.map(([name, text]) => [name, rewrite(text)])) };
}

/** Of a function, or of a tool of the caller's own form, whose input is plain text. */
function rewriteCall(call: Readonly<Record<string, unknown>>, rewrite: Rewrite): Record<string, unknown> {
  const { function: called, custom } = call;
  return {
    ...call,
    ...(called !== undefined && { function: rewriteArguments(called, rewrite) }),
    ...(typeof custom === "object" && custom !== null && { custom: rewriteFields({ ...custom }, ["input"], rewrite) }),
  };
}

/** Arguments are JSON, and stay so. */
function rewriteArguments(called: unknown, rewrite: Rewrite): unknown {
  if (typeof called !== "object" || called === null || !("arguments" in called)) return called;
  const { arguments: before } = called;
  if (typeof before !== "string") return called;
  const after = rewrite(before);
  return { ...called, arguments: after === before ? before : quoteMarksInJson(before, after) };
}
