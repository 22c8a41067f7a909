/** A planned chat: its request, its amounts and its hold. */
import type { ChatBody } from "../../../formats/openai-chat/schema.js";
import type { UsageQuantities } from "../../../lib/usage.js";
import type { OutputEstimate } from "../../credits/output-estimates.js";
import type { GenerationTask } from "../admission.js";
import type { PlannedCosts } from "../quote.js";

export interface ChatPlan extends GenerationTask {
  readonly body: ChatBody;
  readonly promptTokens: number;
  readonly output: OutputEstimate;
  /** Expected output tokens of one choice. */
  readonly mean: number;
  readonly choices: number;
  /** Null: no limit. */
  readonly statedCap: number | null;
  /** The request limits the answer's length, so the hold covers all of it. */
  readonly isCapped: boolean;
  /** A candidate has output that is invisible before its usage report. */
  readonly isHidden: boolean;
  readonly hold: ChatHold;
  costs(plan: ChatPlan): PlannedCosts;
  tokens(plan: ChatPlan): number;
}

export interface ChatHold {
  /** The prompt, with the media and unknown fields that it is held for. */
  readonly prompt: UsageQuantities;
  /** The most expensive kind of output that the answer can have. */
  readonly dearestOutput: OutputKind;
  /** Nanocredits. */
  readonly estimate: bigint;
  /** Nanocredits: the hold of an agent run or a request with less left; undefined: the estimate. */
  readonly least?: bigint | undefined;
  /** Nanocredits: the largest hold of available credits; undefined: the estimate. */
  readonly most: bigint | undefined;
  /** Output tokens that the estimate covers. */
  readonly outputTokens: number;
  /** It is extended on the way. */
  readonly isExtended: boolean;
  /** Output tokens of one choice that are affordable; null when the upstream needs no limit. `chargeMost`: that of the run. */
  capFor(heldNanocredits: bigint, chargeMost: bigint | null): number | null;
}

export type OutputKind = "outputTextTokens" | "outputReasoningTokens" | "outputAudioTokens" | "outputImageTokens";

/** Unspecified: base64 characters per token of audio of low bitrate. */
export const AUDIO_CHARS_PER_TOKEN = 40;

/** Characters of data within the request; 0 for references. */
export function dataChars(holder: unknown): number {
  if (typeof holder !== "object" || holder === null) return 0;
  const { data, file_data: fileData, url } = holder as Record<string, unknown>;
  for (const value of [data, fileData, url]) {
    if (typeof value === "string" && (value !== url || value.startsWith("data:"))) return value.length;
  }
  return 0;
}
