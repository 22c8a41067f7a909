export const BUNDLED_VENDORS = [
  "openai",
  "anthropic",
  "gemini",
  "mistral",
  "groq",
  "deepseek",
  "xai",
  "moonshot",
  "zai",
  "cerebras",
  "cohere",
  "elevenlabs",
  "deepgram",
  "replicate",
  "fal",
  "openrouter",
] as const;
export type BundledVendor = (typeof BUNDLED_VENDORS)[number];
