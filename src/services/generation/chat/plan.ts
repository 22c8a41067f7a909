/** Plans a chat before an upstream is called: options, body and cost (docs/architecture.md#a-generation-end-to-end). */
import { randomInt } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { ChatCount } from "../../../formats/openai-chat/count.js";
import { readChat } from "../../../formats/openai-chat/prompt.js";
import { chatFields, statesOneCap, TWO_CAPS } from "../../../formats/openai-chat/request.js";
import type { ChatBody } from "../../../formats/openai-chat/schema.js";
import { countInTurns } from "../../../lib/tokenizer.js";
import { amountsOf, NO_USAGE, USAGE_AMOUNT_MAX, type UsageQuantities } from "../../../lib/usage.js";
import { EXTEND_AT_PERCENT } from "../../../limits.js";
import type { Model } from "../../catalog/model.js";
import { holdFor } from "../../catalog/pricing.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import { parsedOften } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { GenerationTask } from "../admission.js";
import type { Candidate } from "../routing/candidate.js";
import { AUDIO_CHARS_PER_TOKEN, type ChatHold, type ChatPlan, dataChars, type OutputKind } from "./planned.js";
import { costsOfChat } from "./quote.js";

/** Random seeds are below 2^31, which every upstream accepts. */
const RANDOM_SEED_MAX = 2 ** 31 - 1;

/** `input` is the chat after redaction. A promise for a long prompt, whose tokens are counted in turns of the event loop. */
export function planChat(
  task: GenerationTask,
  input: ChatCompletionInput,
  estimates: OutputEstimates,
  isStreamed: boolean,
): ChatPlan | Promise<ChatPlan> {
  if (task.request.hasLargeInput) return nextTurn().then(() => planInTurn(task, input, estimates, isStreamed));
  return planInTurn(task, input, estimates, isStreamed);
}

function planInTurn(
  task: GenerationTask,
  input: ChatCompletionInput,
  estimates: OutputEstimates,
  isStreamed: boolean,
): ChatPlan | Promise<ChatPlan> {
  const prompt = new ChatCount();
  readChat(input, prompt);
  const counting = countInTurns(prompt.texts);
  const toPlan = (textTokens: number) => planCounted(task, input, estimates, isStreamed, prompt, textTokens);
  return typeof counting === "number" ? toPlan(counting) : counting.then(toPlan);
}

function planCounted(
  task: GenerationTask,
  input: ChatCompletionInput,
  estimates: OutputEstimates,
  isStreamed: boolean,
  prompt: ChatCount,
  textTokens: number,
): ChatPlan {
  const promptTokens = prompt.tokens + textTokens;
  const { caller, model, candidates } = task;
  const output = estimates.of(caller.accountId, model.id);
  const { mean, limit } = output;
  const statedCap = outputCapOf(input);
  const isHidden = candidates.some((candidate) => hidesOutput(candidate.model, estimates));
  const length = { model, candidates, isReadAsItComes: isStreamed && !isHidden, statedCap, mean, limit };
  // Field by field, because a spread costs several microseconds per request.
  return {
    generationId: task.generationId,
    request: task.request,
    caller,
    limitedAs: task.limitedAs,
    model,
    candidates,
    isFree: task.isFree,
    sharing: task.sharing,
    isChargedAsServed: task.isChargedAsServed,
    notes: task.notes,
    safety: task.safety,
    startedAt: task.startedAt,
    body: toBody(input),
    promptTokens,
    output,
    mean,
    choices: input.n ?? 1,
    statedCap,
    isCapped: statedCap !== null,
    isHidden,
    hold: sizeHold(length, promptToHold(prompt, promptTokens), input, task.request.maxCost !== undefined),
    costs: costsOfChat,
    tokens: tokensOfChat,
  };
}

function tokensOfChat({ promptTokens, hold }: ChatPlan): number {
  return promptTokens + hold.outputTokens;
}

/** -1 requests a random seed; an absent one is not sent (docs/spec/generation.md#seeds). */
function toBody(input: ChatCompletionInput): ChatBody {
  if (input.safe === undefined && input.seed !== -1) return input;
  const { safe: _, ...body } = input;
  return input.seed === -1 ? { ...body, seed: randomInt(RANDOM_SEED_MAX) } : body;
}

// The hold of a chat, and the output that it affords (docs/spec/credits.md#holds). No output is delivered beyond the hold.
//
// 1. An answer with a stated length: all of it is held.
// 2. A stream of visible output: the average output is held. The hold is extended on the way, and the stream is cut when that is refused.
// 3. Output that cannot be metered as it comes (whole answers, hidden reasoning or audio): four average outputs are held, or a tenth of the
//    available credits if that is more, but never more than the longest answer costs. If that is not covered, the upstream gets a limit.
// 4. With `max_cost`, an answer that may cost more is held for as far as that allows, and its upstream gets the limit that it affords.

const MEAN_OUTPUTS_HELD = 4;

interface ChatLength {
  readonly model: Model;
  readonly candidates: readonly Candidate[];
  readonly isReadAsItComes: boolean;
  readonly statedCap: number | null;
  readonly mean: number;
  /** Null: none was refused. */
  readonly limit: number | null;
}

function sizeHold(length: ChatLength, prompt: UsageQuantities, input: ChatCompletionInput, isBounded: boolean): ChatHold {
  const { model, candidates, isReadAsItComes, statedCap, mean, limit } = length;
  const choices = input.n ?? 1;
  const dearestOutput = dearestOutputOf(model, input);
  const costWith = (tokens: number) => {
    const usage = amountsOf(prompt);
    usage[dearestOutput] = tokens * choices;
    return holdFor(usage, model.rates);
  };
  const isExtended = statedCap === null && isReadAsItComes;
  const tokens = statedCap ?? mean;
  if (model.rates.isFree || statedCap !== null || isReadAsItComes) {
    const estimate = model.rates.isFree ? 0n : costWith(tokens);
    const outputTokens = tokens * choices;
    const most = undefined;
    if (!isBounded || model.rates.isFree) return { prompt, dearestOutput, estimate, most, outputTokens, isExtended, capFor: noCap };
    const longest = statedCap ?? longestOutput(candidates, prompt, limit);
    const whole = longest === null ? null : costWith(longest);
    const capFor = (held: bigint, chargeMost: bigint | null) =>
      capWithin(costWith, (isExtended ? chargeMost : null) ?? held, longest, whole);
    return { prompt, dearestOutput, estimate, least: costWith(Math.min(1, tokens)), most, outputTokens, isExtended, capFor };
  }
  return new UnstatedHold(costWith, length, { prompt, dearestOutput, choices, isBounded }, longestOutput(candidates, prompt, limit));
}

function noCap(): null {
  return null;
}

/** Every upstream takes a limit of this many tokens. */
const USUAL_CAP = 1_024;

function capWithin(costWith: (tokens: number) => bigint, nanocredits: bigint, longest: number | null, whole: bigint | null): number | null {
  if (whole !== null && nanocredits >= whole) return null;
  const tokens = affordedBy(costWith, nanocredits);
  if (tokens === null) return null;
  // A larger limit than that of an unknown model would be refused: the stream is cut by the gateway.
  if (longest === null && tokens > USUAL_CAP) return null;
  return Math.max(1, Math.min(tokens, longest ?? USUAL_CAP));
}

/** Output tokens per choice; null when they cost nothing. */
function affordedBy(costWith: (tokens: number) => bigint, nanocredits: bigint): number | null {
  const promptCost = costWith(0);
  const costOfMillion = costWith(1_000_000) - promptCost;
  return costOfMillion === 0n ? null : Number(((nanocredits - promptCost) * 1_000_000n) / costOfMillion);
}

interface UnstatedChat extends Pick<ChatHold, "prompt" | "dearestOutput"> {
  readonly choices: number;
  readonly isBounded: boolean;
}

/** For an answer without a stated length. A class for its getter: see docs/decisions/garbage.md. */
class UnstatedHold implements ChatHold {
  readonly prompt: UsageQuantities;
  readonly dearestOutput: OutputKind;
  readonly estimate: bigint;
  readonly most: bigint;
  readonly outputTokens: number;
  readonly isExtended = false;
  private readonly isBounded: boolean;
  private readonly tokens: number;
  private readonly whole: bigint | undefined;

  constructor(
    /** Nanocredits, for a number of output tokens per choice. */
    private readonly costWith: (tokens: number) => bigint,
    private readonly length: ChatLength,
    chat: UnstatedChat,
    private readonly longest: number | null,
  ) {
    this.prompt = chat.prompt;
    this.dearestOutput = chat.dearestOutput;
    this.isBounded = chat.isBounded;
    this.tokens = Math.min(MEAN_OUTPUTS_HELD * length.mean, longest ?? Number.POSITIVE_INFINITY);
    this.whole = longest === null ? undefined : costWith(longest);
    this.estimate = costWith(this.tokens);
    this.most = this.whole ?? AS_MUCH_AS_IS_FREE;
    this.outputTokens = this.tokens * chat.choices;
  }

  get least(): bigint {
    return this.costWith(Math.min(this.isBounded ? 1 : this.length.mean, this.tokens));
  }

  capFor(held: bigint): number | null {
    const { costWith, length, whole, longest } = this;
    // A limit accepted by the upstream may have been due to another prompt's length.
    if (length.limit === null && whole !== undefined && held >= whole) return null;
    const afforded = affordedBy(costWith, held);
    return afforded === null ? null : Math.max(1, Math.min(afforded, longest ?? USAGE_AMOUNT_MAX, USAGE_AMOUNT_MAX));
  }
}

/** Above any share of available credits. */
const AS_MUCH_AS_IS_FREE = 2n ** 62n;

/** Whether a model has output that is invisible before its report, by its entry or by earlier reports. */
function hidesOutput({ id, capabilities, outputModalities }: Model, { hidden }: OutputEstimates): boolean {
  return capabilities.includes("reasoning") || outputModalities.includes("audio") || hidden.has(id);
}

/** The longest choice of all models; null when unknown for one. */
function longestOutput(candidates: readonly Candidate[], prompt: UsageQuantities, limit: number | null): number | null {
  let longest = 0;
  for (const { model } of candidates) {
    const { maxOutputTokens, contextLength } = model;
    const most = maxOutputTokens ?? (contextLength === null ? limit : Math.max(1, contextLength - prompt.inputTextTokens));
    if (most === null) return null;
    longest = Math.max(longest, most);
  }
  return limit === null ? longest : Math.min(longest, limit);
}

/** The most expensive kind of output that this answer can have. */
function dearestOutputOf({ rates, capabilities, prices, outputModalities }: Model, { modalities }: ChatCompletionInput): OutputKind {
  const kinds: OutputKind[] = ["outputTextTokens"];
  if (capabilities.includes("reasoning") || prices.completionReasoningPrice !== undefined) kinds.push("outputReasoningTokens");
  const isSpoken = !Array.isArray(modalities) || modalities.includes("audio");
  if (outputModalities.includes("audio") && isSpoken) kinds.push("outputAudioTokens");
  if (outputModalities.includes("image")) kinds.push("outputImageTokens");
  return kinds.reduce((dearest, kind) => (rates[kind] > rates[dearest] ? kind : dearest));
}

/** Unspecified: additional tokens of a part beyond its count (`lib/tokenizer`), by kind. */
const IMAGE_TOKENS_MORE = 835;
const UNSEEN_FILE_TOKENS = 30_000;
const UNSEEN_VIDEO_TOKENS = 60_000;
/** Unspecified: base64 characters per token, for texts in documents, and for audio and video of low bitrate. */
const FILE_CHARS_PER_TOKEN = 8;
const VIDEO_CHARS_PER_TOKEN = 32;

/**
 * The hold for a prompt beyond its counted texts: only the upstream knows the tokens of images, audio, videos and documents, so as many are
 * held as their size allows. Unknown fields are passed on and may be read, so their text counts too.
 */
function promptToHold({ parts, unknowns }: ChatCount, promptTokens: number): UsageQuantities {
  const more = amountsOf(NO_USAGE);
  more.inputTextTokens = promptTokens;
  for (const part of parts) addPart(part, more);
  for (const value of unknowns) more.inputTextTokens += unknownTokens(value);
  return more;
}

/** Of text that is not tokenized. */
const UNKNOWN_CHARS_PER_TOKEN = 3;

function unknownTokens(value: unknown): number {
  if (!value || (typeof value !== "string" && typeof value !== "object")) return 0;
  return Math.ceil((typeof value === "string" ? value : JSON.stringify(value)).length / UNKNOWN_CHARS_PER_TOKEN);
}

type ContentPart = Readonly<Record<string, unknown>>;
interface Counted {
  inputTextTokens: number;
  inputAudioTokens: number;
  inputImageTokens: number;
}

function addPart(part: ContentPart, more: Counted): void {
  switch (part.type) {
    case "image_url":
      more.inputImageTokens += IMAGE_TOKENS_MORE;
      break;
    case "input_audio":
      more.inputAudioTokens += Math.ceil(dataChars(part.input_audio) / AUDIO_CHARS_PER_TOKEN);
      break;
    case "file":
      more.inputTextTokens += bounded(dataChars(part.file), FILE_CHARS_PER_TOKEN, UNSEEN_FILE_TOKENS);
      break;
    case "video_url":
      more.inputImageTokens += bounded(dataChars(part.video_url), VIDEO_CHARS_PER_TOKEN, UNSEEN_VIDEO_TOKENS);
      break;
  }
}

function bounded(chars: number, charsPerToken: number, unseen: number): number {
  return chars === 0 ? unseen : Math.ceil(chars / charsPerToken);
}

/**
 * Output tokens at which a running stream's hold is checked next: at 80% of it at the current cost per token. After that at short
 * intervals, but not after the hold is used up, as output beyond it may not be payable.
 */
export function nextCheck(tokens: number, cost: bigint, held: bigint): number {
  const soon = tokens + 16;
  if (cost === 0n) return soon;
  const tokensAt = (percent: bigint) => Math.floor((tokens * Number((held * percent) / cost)) / 100);
  const next = cost * 100n < held * EXTEND_AT_PERCENT ? tokensAt(EXTEND_AT_PERCENT) : Math.min(soon, tokensAt(100n));
  return Math.max(tokens + 1, next);
}

/** A chat-completions request, for REST and GraphQL. */
export const chatCompletionInput = parsedOften(
  z
    .looseObject({
      ...chatFields,
      /** For the gateway: never sent upstream. */
      safe: safeInput,
    })
    .refine(statesOneCap, TWO_CAPS),
);

export type ChatCompletionInput = z.output<typeof chatCompletionInput>;

function outputCapOf(input: ChatCompletionInput): number | null {
  return input.max_completion_tokens ?? input.max_tokens ?? null;
}
