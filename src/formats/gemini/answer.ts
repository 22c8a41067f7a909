/** The parts of a generateContent answer (docs/spec/gemini.md). */
import { isRecord } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import type { ReportedUsage } from "../../lib/usage.js";
import { JSON_BOUNDS } from "../../limits.js";

type Loose = Readonly<Record<string, unknown>>;

export interface AnswerPart {
  readonly text?: string;
  readonly thought?: true;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: Loose };
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
}

export type FinishReason = "STOP" | "MAX_TOKENS" | "SAFETY";

export interface Candidate {
  readonly content: { readonly parts: readonly AnswerPart[]; readonly role: "model" };
  readonly finishReason?: FinishReason;
  readonly index: number;
  readonly groundingMetadata?: Loose;
  readonly logprobsResult?: Loose;
}

export interface UsageMetadata {
  readonly promptTokenCount: number;
  readonly cachedContentTokenCount?: number;
  readonly candidatesTokenCount: number;
  readonly thoughtsTokenCount?: number;
  readonly totalTokenCount: number;
  /** Credits. */
  readonly cost?: number;
  readonly [field: string]: unknown;
}

/** A whole answer, or one of a stream's. */
export interface GenerateContentAnswer {
  readonly candidates: readonly Candidate[];
  readonly usageMetadata?: UsageMetadata;
  readonly modelVersion: string;
  readonly responseId: string;
  readonly receipt?: unknown;
}

/** As Google counts: cached tokens are part of the prompt's, thoughts are not part of the candidates'. */
export function toUsageMetadata(usage: Omit<ReportedUsage, "inputCacheWriteHourTokens">, cost: number): UsageMetadata {
  const text = usage.inputTextTokens + usage.inputCachedTokens + usage.inputCacheWriteTokens;
  const prompt = text + usage.inputAudioTokens + usage.inputImageTokens;
  const said = usage.outputTextTokens + usage.outputAudioTokens + usage.outputImageTokens;
  return {
    promptTokenCount: prompt,
    ...(usage.inputCachedTokens > 0 && { cachedContentTokenCount: usage.inputCachedTokens }),
    candidatesTokenCount: said,
    ...(usage.outputReasoningTokens > 0 && { thoughtsTokenCount: usage.outputReasoningTokens }),
    totalTokenCount: prompt + said + usage.outputReasoningTokens,
    promptTokensDetails: toDetails(text, usage.inputAudioTokens, usage.inputImageTokens),
    candidatesTokensDetails: toDetails(usage.outputTextTokens, usage.outputAudioTokens, usage.outputImageTokens),
    cost,
  };
}

function toDetails(text: number, audio: number, image: number): readonly Loose[] {
  const amounts = [
    ["TEXT", text],
    ["AUDIO", audio],
    ["IMAGE", image],
  ] as const;
  return amounts.flatMap(([modality, tokenCount]) => (tokenCount > 0 ? [{ modality, tokenCount }] : []));
}

export function finishReasonOf(reason: string): FinishReason {
  if (reason === "length") return "MAX_TOKENS";
  return reason === "content_filter" ? "SAFETY" : "STOP";
}

/** The arguments of a call, which are an object in this format. Others are kept under `arguments`, because they were paid for. */
export function argsOf(text: string): Loose {
  if (text.trim() === "") return {};
  try {
    const args = new BoundedJson(JSON_BOUNDS).parse(text);
    return isRecord(args) ? args : { arguments: args };
  } catch {
    return { arguments: text };
  }
}

/** A chat's citation of a web page; null for other annotations. */
export function toGroundingChunk(annotation: unknown): Loose | null {
  const cited = isRecord(annotation) && isRecord(annotation.url_citation) ? annotation.url_citation : annotation;
  if (!isRecord(cited) || typeof cited.url !== "string") return null;
  return { web: { uri: cited.url, title: typeof cited.title === "string" ? cited.title : cited.url } };
}

/** A choice's `logprobs`, whole or of one chunk; null without any. */
export function toLogprobsResult(logprobs: unknown): Loose | null {
  if (!isRecord(logprobs) || !Array.isArray(logprobs.content) || logprobs.content.length === 0) return null;
  const tokens = logprobs.content.filter(isRecord);
  return {
    topCandidates: tokens.map(({ top_logprobs: top }) => ({ candidates: Array.isArray(top) ? top.filter(isRecord).map(toLogprob) : [] })),
    chosenCandidates: tokens.map(toLogprob),
  };
}

function toLogprob({ token, logprob }: Loose): Loose {
  return { token, logProbability: logprob };
}
