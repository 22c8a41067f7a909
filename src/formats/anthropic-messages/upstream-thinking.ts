/** The thinking of a Messages request: from a chat's effort or stated options, as far as the model and the other fields allow it. */
import { ownValue } from "../../lib/own-values.js";
import type { ClaudeTraits } from "./upstream-models.js";

type Loose = Readonly<Record<string, unknown>>;

export interface ThinkingRequest {
  readonly effort: string | null;
  /** As stated in the vendor's own options. */
  readonly thinking: Loose | null;
  /** `output_config`, as stated. */
  readonly output: Loose;
  readonly maxTokens: number;
  readonly lacksThoughts: boolean;
  readonly forcesTool: boolean;
}

export interface WrittenThinking {
  /** Null: not sent. */
  readonly thinking: Loose | null;
  readonly output: Loose;
  readonly isThinking: boolean;
  readonly warnings: readonly string[];
}

const TOKENS_OF_EFFORT: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
};
/** Anthropic's minimum. */
const BUDGET_MIN = 1_024;
const OFF: Loose = Object.freeze({ type: "disabled" });
/** Efforts that a model takes only while it thinks. */
const HIGHEST: ReadonlySet<unknown> = new Set(["xhigh", "max"]);
const EFFORT_CHARS_MAX = 50;

export function writeThinking(request: ThinkingRequest, traits: ClaudeTraits): WrittenThinking {
  const warnings: string[] = [];
  const asked = askedThinking(request, traits, warnings);
  let thinking = asked.thinking === null ? null : bounded(asked.thinking, request, traits);
  if (isOn(thinking) && request.lacksThoughts) {
    warnings.push("reasoning: left off for this request, because the signed thoughts before the last tool calls are missing.");
    thinking = OFF;
  } else if (isOn(thinking) && request.forcesTool) {
    warnings.push("reasoning: left off for this request, because this model does not think before a tool call that tool_choice demands.");
    thinking = OFF;
  }
  if (thinking?.type === "disabled" && !traits.canDisableThinking) {
    if (!request.lacksThoughts && !request.forcesTool) warnings.push("reasoning: this model always thinks.");
    thinking = null;
  }
  const { output } = asked;
  const isLowered = thinking?.type === "disabled" && traits.needsThinkingForEffort && HIGHEST.has(output.effort);
  return { thinking, output: isLowered ? { ...output, effort: "high" } : output, isThinking: isOn(thinking), warnings };
}

function isOn(thinking: Loose | null): boolean {
  return thinking !== null && thinking.type !== "disabled";
}

interface AskedThinking {
  readonly thinking: Loose | null;
  readonly output: Loose;
}

/** The stated options outrank the chat's effort. */
function askedThinking({ effort, thinking, output }: ThinkingRequest, traits: ClaudeTraits, warnings: string[]): AskedThinking {
  if (thinking !== null || output.effort !== undefined) return statedThinking(thinking, output, traits, warnings);
  if (effort === null) return { thinking: null, output };
  if (effort === "none") return { thinking: OFF, output };
  const budget = ownValue(TOKENS_OF_EFFORT, effort);
  if (budget === undefined) {
    warnings.push(`reasoning_effort: this upstream has no effort ${JSON.stringify(effort.slice(0, EFFORT_CHARS_MAX))}.`);
    return { thinking: null, output };
  }
  if (!traits.hasEffort) return { thinking: { type: "enabled", budget_tokens: budget }, output };
  return { thinking: { type: "adaptive" }, output: { effort: effort === "minimal" ? "low" : effort, ...output } };
}

/** In the form that the model takes: a budget, or an effort. */
function statedThinking(thinking: Loose | null, output: Loose, traits: ClaudeTraits, warnings: string[]): AskedThinking {
  if (traits.hasEffort) {
    if (thinking?.type !== "enabled" || traits.hasBudgets) return { thinking, output };
    warnings.push("thinking.budget_tokens: this model decides by itself how long it thinks.");
    return { thinking: { type: "adaptive" }, output };
  }
  const { effort, ...others } = output;
  if (effort !== undefined && thinking?.type !== "adaptive") warnings.push("output_config.effort has no effect on this model.");
  if (thinking?.type !== "adaptive") return { thinking, output: others };
  const budget = ownValue(TOKENS_OF_EFFORT, typeof effort === "string" ? effort : "medium") ?? BUDGET_MIN;
  return { thinking: { type: "enabled", budget_tokens: budget }, output: others };
}

/** A budget is part of the answer's limit: half of it is left for the answer, unless the caller divided it otherwise. */
function bounded(thinking: Loose, { maxTokens, thinking: stated }: ThinkingRequest, { hasBudgets }: ClaudeTraits): Loose {
  if (thinking.type !== "enabled" || !hasBudgets) return thinking;
  const { budget_tokens: asked = BUDGET_MIN } = thinking;
  if (typeof asked !== "number") return thinking;
  if (stated?.type === "enabled" && asked >= BUDGET_MIN && asked < maxTokens) return thinking;
  const budget = Math.min(asked, Math.floor(maxTokens / 2));
  return budget < BUDGET_MIN ? OFF : { ...thinking, budget_tokens: budget };
}
