/** Gemini's `usageMetadata` tells kinds of tokens apart that the package adds up. */
import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import { isRecord } from "../openai/json.js";
import type { UsageDetails } from "./vendor.js";

export function readGoogleUsage(raw: NonNullable<LanguageModelV3Usage["raw"]>): UsageDetails {
  // What came from the cache is told by the total of the cache, whatever its kind.
  const fresh = (kind: string) => Math.max(0, tokensOf(raw.promptTokensDetails, kind) - tokensOf(raw.cacheTokensDetails, kind));
  return {
    // What Google's own tools read is billed as input and is not in the prompt's count.
    extraInput: amount(raw.toolUsePromptTokenCount),
    inputAudio: fresh("AUDIO"),
    inputImage: fresh("IMAGE"),
    outputAudio: tokensOf(raw.candidatesTokensDetails, "AUDIO"),
    outputImage: tokensOf(raw.candidatesTokensDetails, "IMAGE"),
  };
}

function tokensOf(details: unknown, kind: string): number {
  if (!Array.isArray(details)) return 0;
  return details
    .filter(isRecord)
    .filter((detail) => detail.modality === kind)
    .reduce((sum, detail) => sum + amount(detail.tokenCount), 0);
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}
