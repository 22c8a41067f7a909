/**
 * Chat completions (docs/spec/chat.md#chat-completions), whole or streamed, for both faces (docs/architecture.md#a-generation-end-to-end).
 */
import type { RequestContext } from "../../../context.js";
import { readChat } from "../../../formats/openai-chat/prompt.js";
import type { ChatCompletion } from "../../../formats/openai-chat/schema.js";
import type { ChatAnswer } from "../../../providers/provider.js";
import { misspeltChatFields } from "../../catalog/field-names.js";
import { costOf } from "../../catalog/pricing.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import type { Passages } from "../../safety/passages.js";
import { type AdmissionRequest, type AdmittedTask, type Content, takeGenerationId } from "../admission.js";
import { allInCallersWords } from "../failures.js";
import { addressesIn, type NamedAddress } from "../named-addresses.js";
import { chargedRates } from "../planned-charge.js";
import { type CutReason, NO_WARNINGS, type Receipt } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import type { RouteWishes } from "../routing/order.js";
import { GenerationRun, type RunDependencies, type RunOptions, type WholeMetered, type WholeWork } from "../run.js";
import { GenerationStream } from "../stream.js";
import type { Upstreams } from "../upstreams.js";
import { type BoundAnswer, completionOf, cutCompletion, cutWarning, toReportedUsage, withinCap } from "./answer.js";
import { ChatMeter, holdDelivered, learnFrom, type MeteredUsage } from "./meter.js";
import { ChatPassages } from "./passages.js";
import { type ChatCompletionInput, planChat } from "./plan.js";
import type { ChatPlan } from "./planned.js";
import { plausibleFor } from "./plausible.js";
import { withRun } from "./quote.js";
import { type ChatCompletionStream, openChat } from "./stream.js";

export interface ChatDependencies extends RunDependencies {
  readonly estimates: OutputEstimates;
  readonly upstreams: Upstreams;
}

export interface ChatCompletionResult {
  /** The JSON document of the answer. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  readonly receipt: Receipt;
}

export class ChatCompletions {
  constructor(private readonly deps: ChatDependencies) {}

  /**
   * Resolves when the charge is committed, even after a disconnect. `notes` are warnings for requests in another format, and `wishes` say
   * which routes may serve those.
   */
  async create(
    ctx: RequestContext,
    input: ChatCompletionInput,
    notes = misspeltChatFields(input),
    wishes?: RouteWishes,
  ): Promise<ChatCompletionResult> {
    const { admission, upstreams } = this.deps;
    const admitting = admission.admit(ctx, toAdmissionRequest(input, notes, wishes), new ChatContent(input));
    // No asynchronous step without limits and checks, the fast path of secret keys.
    const admitted = admitting instanceof Promise ? await admitting : admitting;
    const planning = this.plan(admitted, input, false);
    const plan = planning instanceof Promise ? await planning : planning;
    let bound: number | null | undefined;
    let cut: CutReason | undefined;
    let passed: ChatAnswer | null = null;
    const work: WholeWork<BoundAnswer> = {
      call: (candidate, { cancellation, heldNanocredits, chargeMost, isAtMaxCost }) => {
        if (bound === undefined) {
          bound = plan.hold.capFor(heldNanocredits, chargeMost);
          if (isAtMaxCost) cut = "max_cost";
        }
        // Field by field here and below, because spreads cost microseconds per request.
        const { body, outputTokensMax } = withinCap(plan, bound);
        const asked = { body, outputTokensMax, cancellation, output: plan.output };
        return completionOf(upstreams.chat(plan, candidate), asked, candidate.route, plan.model.id);
      },
      meter: (served, run) => {
        const { model } = served;
        const { answer, cap } = served.answer;
        const { promptTokens, body, statedCap } = plan;
        const meter = new ChatMeter(promptTokens, body);
        meter.readCompletion(answer.completion, answer.usage);
        const metered = meter.complete(plausibleFor(plan, served, cap ?? bound ?? statedCap));
        learnFrom(plan, model, meter, metered.usage, metered.source);
        const pass = (tokens: number | null) => {
          if (tokens !== null) {
            passed = cutAnswer(answer, tokens);
            if (run.isAtMaxCost) cut = "max_cost";
          }
          return toWhole(passed ?? answer, served, metered, tokens ?? bound ?? null, cut);
        };
        const isCovered = !model.isCommunity && costOf(metered.usage, chargedRates(plan, served)) <= run.heldNanocredits;
        return isCovered || plan.isFree ? pass(null) : holdDelivered(plan, run, served, answer, metered).then(pass);
      },
    };
    const { answer, receipt } = await new GenerationRun(plan, this.deps).answer(work);
    return withUsage(passed ?? answer.answer, receipt);
  }

  /** See ChatCompletionStream. Throws nothing: a refusal rejects `opened`. */
  stream(ctx: RequestContext, input: ChatCompletionInput, notes = misspeltChatFields(input), wishes?: RouteWishes): ChatCompletionStream {
    const { deps } = this;
    const generationId = takeGenerationId(ctx);
    const options: RunOptions = { isStreamed: true };
    let plan: ChatPlan;
    const begin = (planned: ChatPlan) => {
      plan = planned;
      return new GenerationRun(plan, deps, options);
    };
    const prepare = (admitted: AdmittedTask<ChatCompletionInput>) => {
      const planning = this.plan(admitted, input, true);
      return planning instanceof Promise ? planning.then(begin) : begin(planning);
    };
    const stream = new GenerationStream({
      admit: () => {
        const admitting = deps.admission.admit(ctx, toAdmissionRequest(input, notes, wishes, generationId), new ChatContent(input));
        return admitting instanceof Promise ? admitting.then(prepare) : prepare(admitting);
      },
      open: (run) =>
        openChat({
          run,
          plan,
          includesUsage: input.stream_options?.include_usage === true,
          providerOf: (candidate) => deps.upstreams.chat(plan, candidate),
        }),
    });
    const { admitted, opened, events } = stream;
    const [receipt, timing, settled] = [() => stream.receipt(), () => stream.timing(), () => stream.settled()];
    return { generationId, notes, admitted, opened, events, receipt, timing, settled };
  }

  private plan(
    { task, body }: AdmittedTask<ChatCompletionInput>,
    input: ChatCompletionInput,
    isStreamed: boolean,
  ): ChatPlan | Promise<ChatPlan> {
    const { estimates, upstreams } = this.deps;
    const planning = planChat(task, body ?? input, estimates, isStreamed);
    const runCostMost = task.request.quoting ? upstreams.runCostMost(task.request, task.model) : null;
    return runCostMost === null ? planning : Promise.all([planning, runCostMost]).then(([plan, most]) => withRun(plan, most));
  }
}

function toAdmissionRequest(
  input: ChatCompletionInput,
  notes: readonly string[],
  wishes: RouteWishes | undefined,
  generationId?: string,
): AdmissionRequest {
  return { modality: "text", modelName: input.model, fields: input, notes, wishes, generationId };
}

/** `tokens` is its limit or cut, null for neither; `cut` its reason, where that is the request's. */
function toWhole(
  passed: ChatAnswer,
  served: Candidate,
  { usage, source, reported, counted }: MeteredUsage,
  tokens: number | null,
  cut: CutReason | undefined,
): WholeMetered {
  const warnings = passed.warnings ? allInCallersWords(passed.warnings, served) : NO_WARNINGS;
  const isCut = tokens !== null && endsAtLength(passed);
  const told = isCut ? [...warnings, cutWarning(tokens, cut)] : warnings;
  return { quantities: usage, source, reported, counted, warnings: told, isCut, cut: isCut ? cut : undefined };
}

function cutAnswer(answer: ChatAnswer, tokens: number): ChatAnswer {
  const completion = cutCompletion(answer.completion, tokens);
  return { ...answer, completion, bytes: Buffer.from(JSON.stringify(completion)) };
}

function endsAtLength({ completion }: ChatAnswer): boolean {
  return completion.choices?.some((choice) => choice.finish_reason === "length") ?? false;
}

/** Adds `usage` where the upstream sent none that was believed, because clients read it. Otherwise returns the bytes unchanged. */
function withUsage({ bytes, completion }: ChatAnswer, receipt: Receipt): ChatCompletionResult {
  if (receipt.usageSource === "provider" && completion.usage != null) return { bytes, completion, receipt };
  const document = { ...completion, usage: toReportedUsage(receipt.usage) };
  return { bytes: Buffer.from(JSON.stringify(document)), completion: document, receipt };
}

class ChatContent implements Content<ChatCompletionInput> {
  constructor(readonly body: ChatCompletionInput) {}

  get safe(): ChatCompletionInput["safe"] {
    return this.body.safe;
  }

  addresses(): readonly NamedAddress[] {
    return addressesIn(this.body);
  }

  read(body: ChatCompletionInput, into: Passages): void {
    readChat(body, new ChatPassages(into));
  }
}
