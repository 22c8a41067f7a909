/** Anthropic tells what it keeps for five minutes from what it keeps for an hour, which the package adds up. */
import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import { isRecord } from "../openai/json.js";
import type { UsageDetails } from "./vendor.js";

export function readAnthropicUsage(raw: NonNullable<LanguageModelV3Usage["raw"]>): UsageDetails {
  const kinds = isRecord(raw.cache_creation) ? raw.cache_creation : {};
  const hour = kinds.ephemeral_1h_input_tokens;
  const none = { extraInput: 0, inputAudio: 0, inputImage: 0, outputAudio: 0, outputImage: 0 };
  return typeof hour === "number" && hour >= 0 ? { ...none, hourCacheWrite: hour } : none;
}
