/** Usage quantities: what a generation consumed and made, in the kinds that are priced (docs/spec/credits.md#prices, docs/spec/usage.md#rows). */

/**
 * Amounts by kind, all whole numbers of 0 or more. The text kinds leave out what is counted in a kind of its own, so the
 * kinds never overlap and a cost is a plain sum.
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

/** What an upstream reports: beside what a usage row counts, a part of it that is priced otherwise and has no column. */
export interface ReportedUsage extends UsageQuantities {
  /** Of `inputCacheWriteTokens`, those that are kept for an hour; absent when the upstream does not tell. */
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

/** The largest amount of one kind that a usage row can hold (PostgreSQL's integer). A report above it is not believed. */
export const USAGE_AMOUNT_MAX = 2_147_483_647;

/** These amounts alone, in an object of their own. Field by field, which is ten times as fast as to spread it. */
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
