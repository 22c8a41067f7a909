/**
 * Allowed options `provider_options.<vendor>.<option>`. Vendors often add options that cost something (more images, another resolution, a
 * faster tier, another model), so the free ones are listed: any other option is refused unless the model's entry prices it. A new vendor,
 * or an option found to be free, gets a line here.
 */

import { areFreeEdits, isFreeBeta, isFreeOutput } from "../../formats/anthropic-messages/native-options.js";
import type { Model } from "./model.js";

/** Whether a value of the option leaves the price of the model unchanged. */
type IsHarmless = (value: unknown, model: Pick<Model, "longContext">) => boolean;

const free: IsHarmless = () => true;

function only(...values: readonly unknown[]): IsHarmless {
  return (value) => values.includes(value);
}

function options(names: string, more: Readonly<Record<string, IsHarmless>> = {}): ReadonlyMap<string, IsHarmless> {
  return new Map([...names.split(" ").map((name): [string, IsHarmless] => [name, free]), ...Object.entries(more)]);
}

/** The size of Gemini's images decides their price; the rest of the configuration does not. */
function isDefaultPicture(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { imageSize } = value as { readonly imageSize?: unknown };
  return imageSize === undefined || imageSize === "1K" || imageSize === "512";
}

/** By the vendor's name for options in its package (providers/ai-sdk/vendors.ts, `optionsName`). */
export const HARMLESS_OPTIONS: ReadonlyMap<string, ReadonlyMap<string, IsHarmless>> = new Map([
  [
    "anthropic",
    // Lifetimes of caches are checked wherever they are stated.
    options("sendReasoning structuredOutputMode thinking disableParallelToolUse metadata toolStreaming effort taskBudget cacheControl", {
      speed: only("standard"),
      inferenceGeo: only("global"),
      cache_control: free,
      output_config: isFreeOutput,
      outputConfig: isFreeOutput,
      context_management: areFreeEdits,
      contextManagement: areFreeEdits,
      betas: (value, { longContext }) =>
        Array.isArray(value) && value.every((name) => isFreeBeta(name, { hasLongContext: longContext.length > 0 })),
    }),
  ],
  [
    "google",
    options(
      "thinkingConfig structuredOutputs safetySettings threshold audioTimestamp labels mediaResolution streamFunctionCallArguments " +
        "personGeneration aspectRatio negativePrompt taskType outputDimensionality",
      {
        serviceTier: only("standard"),
        responseModalities: (value) => Array.isArray(value) && value.every((kind) => kind === "TEXT"),
        imageConfig: isDefaultPicture,
      },
    ),
  ],
  [
    "bedrock",
    options("structuredOutputMode reasoningConfig dimensions normalize inputType truncate negativeText cfgScale", {
      serviceTier: only("default"),
      quality: only("standard"),
    }),
  ],
  ["cohere", options("thinking inputType truncate outputDimension")],
  [
    "elevenlabs",
    options(
      "languageCode voiceSettings pronunciationDictionaryLocators seed previousText nextText previousRequestIds nextRequestIds " +
        "applyTextNormalization applyLanguageTextNormalization tagAudioEvents numSpeakers timestampsGranularity diarize fileFormat",
    ),
  ],
  [
    "deepgram",
    options(
      "language detectLanguage smartFormat punctuate paragraphs utterances uttSplit fillerWords search replace " +
        "bitRate container encoding sampleRate tag",
      { diarize: only(false), mipOptOut: only(false) },
    ),
  ],
  [
    "replicate",
    options(
      "guidance_scale negative_prompt output_format output_quality strength prompt_optimizer " +
        "maxWaitTimeInSeconds pollIntervalMs pollTimeoutMs",
    ),
  ],
  [
    "fal",
    options(
      "guidanceScale guidance_scale enableSafetyChecker enable_safety_checker safetyTolerance safety_tolerance outputFormat output_format " +
        "syncMode sync_mode strength useMultipleImages loop motionStrength negativePrompt promptOptimizer " +
        "voice_setting language_boost pronunciation_dict language diarize chunkLevel numSpeakers pollIntervalMs pollTimeoutMs",
    ),
  ],
  ["luma", options("referenceType pollIntervalMillis maxPollAttempts")],
  [
    "blackForestLabs",
    options("imagePromptStrength guidance outputFormat promptUpsampling raw safetyTolerance pollIntervalMillis pollTimeoutMillis"),
  ],
  ["hume", options("context")],
  ["lmnt", options("sampleRate seed conversational topP temperature")],
  [
    "assemblyai",
    options(
      "customSpelling disfluencies filterProfanity formatText punctuate languageCode languageDetection languageConfidenceThreshold " +
        "languageDetectionOptions speechThreshold temperature audioStartFrom audioEndAt",
    ),
  ],
  ["gladia", options("language detectLanguage enableCodeSwitching codeSwitchingConfig customMetadata punctuationEnhanced")],
  ["revai", options("language metadata filter_profanity remove_disfluencies skip_punctuation skip_diarization")],
]);
