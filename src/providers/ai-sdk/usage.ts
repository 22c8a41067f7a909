/** The package's token report as OpenAI's `usage` object, each token in one kind. */
import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import { type OnUnknownNames, unknownNames } from "../../formats/openai-chat/usage.js";
import type { ChatTraits, UsageDetails } from "./vendor.js";

const NO_DETAILS: UsageDetails = { extraInput: 0, inputAudio: 0, inputImage: 0, outputAudio: 0, outputImage: 0 };

/** Null when the upstream reported nothing. `onUnknownNames` receives unknown names of the vendor's report. */
export function toUsage(usage: LanguageModelV3Usage, traits: ChatTraits, onUnknownNames?: OnUnknownNames): Record<string, unknown> | null {
  const { inputTokens: input, outputTokens: output, raw } = usage;
  const unknown = raw === undefined || !traits.usageNames ? [] : unknownNames(raw, traits.usageNames);
  if (unknown.length > 0) onUnknownNames?.(unknown);
  const cached = input.cacheRead ?? 0;
  const written = input.cacheWrite ?? 0;
  const inputTotal = input.total ?? (input.noCache === undefined ? undefined : input.noCache + cached + written);
  const outputTotal = output.total ?? (output.text === undefined ? undefined : output.text + (output.reasoning ?? 0));
  if (inputTotal === undefined || outputTotal === undefined) return null;
  const details = raw === undefined ? NO_DETAILS : (traits.usageDetails?.(raw) ?? NO_DETAILS);
  const promptTokens = inputTotal + details.extraInput;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: outputTotal,
    total_tokens: promptTokens + outputTotal,
    prompt_tokens_details: {
      cached_tokens: Math.max(cached, details.cached ?? 0),
      cache_write_tokens: written,
      audio_tokens: details.inputAudio,
      image_tokens: details.inputImage,
    },
    completion_tokens_details: {
      reasoning_tokens: output.reasoning ?? 0,
      audio_tokens: details.outputAudio,
      image_tokens: details.outputImage,
    },
  };
}

// Cohere reports cached tokens, which the package leaves out.

export function readCohereUsage(raw: NonNullable<LanguageModelV3Usage["raw"]>): UsageDetails {
  return { ...NO_DETAILS, cached: amount(raw.cached_tokens) };
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}
