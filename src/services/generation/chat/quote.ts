/** The costs of a chat for its quote, from the amounts that size its hold and bound its report. */
import { larger } from "../../../lib/money.js";
import { amountsOf, NO_USAGE } from "../../../lib/usage.js";
import type { Model } from "../../catalog/model.js";
import { costOf } from "../../catalog/pricing.js";
import { promptTokensLeast, VOCABULARY_NOTE } from "../plausible.js";
import type { PlannedCosts } from "../quote.js";
import type { ChatPlan } from "./planned.js";
import { boundsOf } from "./plausible.js";

/** Unspecified: assumed of a model that states neither its longest answer nor its context. */
const UNSTATED_TOKENS = 1_000_000;
const PROMPT_KINDS = ["inputTextTokens", "inputCachedTokens", "inputCacheWriteTokens", "inputAudioTokens", "inputImageTokens"] as const;

export function costsOfChat(plan: ChatPlan): PlannedCosts {
  const { model, hold, mean, choices, statedCap, isFree } = plan;
  if (isFree) return { least: 0n, expected: 0n, most: 0n, notes: notesOf(plan, false) };
  const { rates } = model;
  const usual = amountsOf(hold.prompt);
  usual.outputTextTokens = Math.min(mean, statedCap ?? mean) * choices;
  const { prompt, output, isAssumed } = mostTokens(plan);
  let most = larger(hold.estimate, costOf(usual, rates));
  for (const kind of kindsOf(plan)) {
    const usage = amountsOf(NO_USAGE);
    usage[kind] = prompt;
    usage[hold.dearestOutput] = output;
    most = larger(most, costOf(usage, rates));
  }
  return { least: costOfLeast(plan), expected: costOf(usual, rates), most, notes: notesOf(plan, isAssumed) };
}

/** With the generations of the agent's run. */
export function withRun(plan: ChatPlan, runCostMost: bigint): ChatPlan {
  const costs = () => {
    const own = costsOfChat(plan);
    return { ...own, most: own.most + runCostMost };
  };
  return { ...plan, costs };
}

/** A prompt of few tokens of the cheapest kind, such as cached ones, and an empty answer. */
function costOfLeast({ model: { rates }, promptTokens }: ChatPlan): bigint {
  const tokens = promptTokensLeast(promptTokens);
  const costs = PROMPT_KINDS.map((kind) => costOf({ ...NO_USAGE, [kind]: tokens }, rates));
  return costs.reduce((least, cost) => (cost < least ? cost : least));
}

/** The kinds that the prompt's tokens may be charged as. */
function kindsOf({ hold: { prompt } }: ChatPlan): readonly (typeof PROMPT_KINDS)[number][] {
  return PROMPT_KINDS.filter((kind) => {
    if (kind === "inputAudioTokens" || kind === "inputImageTokens") return prompt[kind] > 0;
    return true;
  });
}

/** The largest plausible amounts of all candidates. */
function mostTokens(plan: ChatPlan): { readonly prompt: number; readonly output: number; readonly isAssumed: boolean } {
  let prompt = 0;
  let output = 0;
  for (const { model } of plan.candidates) {
    const { promptMost, outputMost } = boundsFor(plan, model);
    prompt = Math.max(prompt, promptMost);
    output = Math.max(output, outputMost);
  }
  const isAssumed = prompt === Number.POSITIVE_INFINITY || output === Number.POSITIVE_INFINITY;
  return { prompt: Math.min(prompt, UNSTATED_TOKENS), output: Math.min(output, UNSTATED_TOKENS * plan.choices), isAssumed };
}

function boundsFor(plan: ChatPlan, candidate: Model): { readonly promptMost: number; readonly outputMost: number } {
  const bounds = boundsOf(plan, candidate, plan.statedCap);
  return { promptMost: bounds.promptMost(), outputMost: bounds.outputMost };
}

function notesOf({ model, hold: { prompt }, statedCap, isHidden }: ChatPlan, isAssumed: boolean): readonly string[] {
  const notes: string[] = [];
  if (model.agentType === "prompt_agent" || model.agentType === "code_agent")
    notes.push(
      "The agent's own generations are charged beside its answer. They are bounded by max_cost, or else by a tenth of the available credits.",
    );
  if (statedCap === null) notes.push("No max_tokens is stated: most is the price of the longest answer of the model.");
  if (isAssumed) notes.push(`The model does not state its longest prompt or answer: ${UNSTATED_TOKENS} tokens are assumed.`);
  if (isHidden) notes.push("The model may write reasoning that is charged and not shown.");
  if (prompt.inputImageTokens > 0) notes.push("The tokens of images and videos are known to the upstream only.");
  if (prompt.inputAudioTokens > 0) notes.push("The tokens of audio are estimated by its size.");
  if (!model.rates.isFree) notes.push(VOCABULARY_NOTE);
  return notes;
}
