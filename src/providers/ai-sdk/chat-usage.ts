/** The package's report of tokens as the `usage` object of OpenAI's format, each token in one kind. */
import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import type { ChatTraits, UsageDetails } from "./vendor.js";

const NO_DETAILS: UsageDetails = { extraInput: 0, inputAudio: 0, inputImage: 0, outputAudio: 0, outputImage: 0 };

/** Null when the upstream reported nothing. */
export function toUsage(usage: LanguageModelV3Usage, traits: ChatTraits): Record<string, unknown> | null {
  const { inputTokens: input, outputTokens: output, raw } = usage;
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
      cached_tokens: cached,
      cache_write_tokens: written,
      ...(details.hourCacheWrite !== undefined && { cache_creation: { ephemeral_1h_input_tokens: details.hourCacheWrite } }),
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
