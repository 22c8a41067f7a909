/** Gemini's `usageMetadata` as a chat's usage, each token in one kind. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { type OnUnknownNames, unknownNames } from "../openai-chat/usage.js";
import { GOOGLE_USAGE } from "../openai-chat/usage-dialects.js";

type Loose = Readonly<Record<string, unknown>>;

/** Null without a report. Amounts that are no amounts are passed on, so that the report is not believed. */
export function toChatUsage(usage: unknown, onUnknownNames?: OnUnknownNames): Loose | null {
  if (!isRecord(usage) || usage.promptTokenCount === undefined) return null;
  const unknown = onUnknownNames ? unknownNames(usage, GOOGLE_USAGE) : [];
  if (unknown.length > 0) onUnknownNames?.(unknown);
  // Input of Google's own tools is billed and not part of the prompt's count.
  const prompt = sum(usage.promptTokenCount, usage.toolUsePromptTokenCount);
  const completion = sum(usage.candidatesTokenCount, usage.thoughtsTokenCount);
  // Cached tokens are in the total of the cache, regardless of kind.
  const fresh = (kind: string) => Math.max(0, tokensOf(usage.promptTokensDetails, kind) - tokensOf(usage.cacheTokensDetails, kind));
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: sum(prompt, completion),
    prompt_tokens_details: {
      cached_tokens: usage.cachedContentTokenCount ?? 0,
      audio_tokens: fresh("AUDIO"),
      image_tokens: fresh("IMAGE"),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.thoughtsTokenCount ?? 0,
      audio_tokens: tokensOf(usage.candidatesTokensDetails, "AUDIO"),
      image_tokens: tokensOf(usage.candidatesTokensDetails, "IMAGE"),
    },
  };
}

function sum(one: unknown, other: unknown = 0): unknown {
  if (one === undefined || one === null) return other ?? 0;
  return typeof one === "number" && typeof (other ?? 0) === "number" ? one + Number(other ?? 0) : one;
}

function tokensOf(details: unknown, kind: string): number {
  let tokens = 0;
  for (const { modality, tokenCount } of recordsOf(details)) {
    if (modality === kind && typeof tokenCount === "number" && tokenCount > 0) tokens += tokenCount;
  }
  return tokens;
}
