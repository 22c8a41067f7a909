/** Usage quantities of a generation, in the kinds that have prices (docs/spec/credits.md#prices, docs/spec/usage.md#rows). */

/**
 * Amounts by kind, whole numbers of 0 or more. Text kinds exclude amounts that have their own kind, so kinds never overlap and a cost is a
 * plain sum.
 */
export interface UsageQuantities {
  readonly inputTextTokens: number;
  readonly inputCachedTokens: number;
  readonly inputCacheWriteTokens: number;
  readonly inputAudioTokens: number;
  readonly inputImageTokens: number;
  readonly outputTextTokens: number;
  readonly outputReasoningTokens: number;
  readonly outputAudioTokens: number;
  readonly outputImageTokens: number;
  readonly outputVideoMilliseconds: number;
  readonly outputAudioMilliseconds: number;
}

export type UsageKind = keyof UsageQuantities;

/** Usage as reported by an upstream: the usage row's amounts, and a part that has another price and no column. */
export interface ReportedUsage extends UsageQuantities {
  /** The part of `inputCacheWriteTokens` that is cached for an hour; absent when not reported. */
  readonly inputCacheWriteHourTokens?: number;
}

export const NO_USAGE: UsageQuantities = Object.freeze({
  inputTextTokens: 0,
  inputCachedTokens: 0,
  inputCacheWriteTokens: 0,
  inputAudioTokens: 0,
  inputImageTokens: 0,
  outputTextTokens: 0,
  outputReasoningTokens: 0,
  outputAudioTokens: 0,
  outputImageTokens: 0,
  outputVideoMilliseconds: 0,
  outputAudioMilliseconds: 0,
});

/** Every kind, in the order of the usage row's columns. */
export const USAGE_KINDS = Object.keys(NO_USAGE) as readonly UsageKind[];

/** The largest amount of one kind in a usage row (PostgreSQL's integer). A larger report is not believed. */
export const USAGE_AMOUNT_MAX = 2_147_483_647;

/** Copies these amounts into a new object. Field by field, which is ten times as fast as a spread. */
export function amountsOf(usage: UsageQuantities): { -readonly [Kind in UsageKind]: number } {
  return {
    inputTextTokens: usage.inputTextTokens,
    inputCachedTokens: usage.inputCachedTokens,
    inputCacheWriteTokens: usage.inputCacheWriteTokens,
    inputAudioTokens: usage.inputAudioTokens,
    inputImageTokens: usage.inputImageTokens,
    outputTextTokens: usage.outputTextTokens,
    outputReasoningTokens: usage.outputReasoningTokens,
    outputAudioTokens: usage.outputAudioTokens,
    outputImageTokens: usage.outputImageTokens,
    outputVideoMilliseconds: usage.outputVideoMilliseconds,
    outputAudioMilliseconds: usage.outputAudioMilliseconds,
  };
}

/** Tokens of every kind, in and out. */
export function tokensOf(usage: UsageQuantities): number {
  const { inputTextTokens, inputCachedTokens, inputCacheWriteTokens, inputAudioTokens, inputImageTokens } = usage;
  const { outputTextTokens, outputReasoningTokens, outputAudioTokens, outputImageTokens } = usage;
  const input = inputTextTokens + inputCachedTokens + inputCacheWriteTokens + inputAudioTokens + inputImageTokens;
  return input + outputTextTokens + outputReasoningTokens + outputAudioTokens + outputImageTokens;
}
