/**
 * The features of Claude models, by their names: Anthropic's "Models overview", "Extended thinking", "Effort" and "Structured outputs", November
 * 2026. An unknown name counts as a new model, which accepts least.
 */

export interface ClaudeTraits {
  /** Most output tokens; sent where a request states no limit, because the format demands one. */
  readonly outputTokensMax: number;
  /** Takes `temperature`, `top_p` and `top_k`. */
  readonly hasSampling: boolean;
  /** Takes `output_config.format` and strict tools. */
  readonly hasStructuredOutput: boolean;
  /** Thinks within a stated budget. */
  readonly hasBudgets: boolean;
  /** Thinks as far as a stated effort. */
  readonly hasEffort: boolean;
  readonly canDisableThinking: boolean;
  /** Without thinking, no effort above `high`. */
  readonly needsThinkingForEffort: boolean;
  readonly canForceTools: boolean;
}

const NEWEST: ClaudeTraits = {
  outputTokensMax: 128_000,
  hasSampling: false,
  hasStructuredOutput: true,
  hasBudgets: false,
  hasEffort: true,
  canDisableThinking: true,
  needsThinkingForEffort: true,
  canForceTools: true,
};
const ALWAYS_THINKING: ClaudeTraits = { ...NEWEST, canDisableThinking: false };
const FIFTH: ClaudeTraits = { ...NEWEST, needsThinkingForEffort: false };
const BUDGETED: ClaudeTraits = { ...FIFTH, outputTokensMax: 64_000, hasSampling: true, hasBudgets: true, hasEffort: false };
const UNSTRUCTURED: ClaudeTraits = { ...BUDGETED, hasStructuredOutput: false };

/** The first match counts. */
const TRAITS: readonly (readonly [RegExp, ClaudeTraits])[] = [
  [/claude-(?:sonnet|opus)-5-5/, { ...ALWAYS_THINKING, canForceTools: false }],
  [/claude-haiku-5-5/, NEWEST],
  [/claude-fable-5-1/, { ...ALWAYS_THINKING, needsThinkingForEffort: false, canForceTools: false }],
  [/claude-fable-5/, { ...ALWAYS_THINKING, needsThinkingForEffort: false }],
  [/claude-opus-5/, NEWEST],
  [/claude-opus-4-[78]|claude-sonnet-5/, FIFTH],
  [/claude-(?:opus|sonnet)-4-6/, { ...FIFTH, hasSampling: true, hasBudgets: true }],
  [/claude-(?:sonnet|opus|haiku)-4-5/, BUDGETED],
  [/claude-opus-4-1/, { ...BUDGETED, outputTokensMax: 32_000 }],
  [/claude-sonnet-4/, UNSTRUCTURED],
  [/claude-opus-4/, { ...UNSTRUCTURED, outputTokensMax: 32_000 }],
  [/claude-3-7/, UNSTRUCTURED],
  [/claude-3-5/, { ...UNSTRUCTURED, outputTokensMax: 8_192 }],
  [/claude-(?:3|2|instant)/, { ...UNSTRUCTURED, outputTokensMax: 4_096 }],
  [/claude-/, NEWEST],
];
/** Of another vendor that speaks the format. */
const OTHER: ClaudeTraits = { ...BUDGETED, outputTokensMax: 4_096, hasStructuredOutput: false };

export function traitsOf(model: string): ClaudeTraits {
  return TRAITS.find(([name]) => name.test(model))?.[1] ?? OTHER;
}
