/** Who runs the bundled catalog's models: where, over which wire format, and under which name in the price library. */
import type { BundledVendor } from "./bundled-models.js";
import type { WireFormat } from "./model.js";

export interface BundledVendorEntry {
  readonly baseUrl: string;
  /** `openai` where it is absent. */
  readonly wireFormat?: WireFormat;
  /** Its name in the price library; absent where that knows none of its models. */
  readonly priceListId?: string;
}

export const BUNDLED_VENDOR_ENTRIES: Readonly<Record<BundledVendor, BundledVendorEntry>> = {
  openai: { baseUrl: "https://api.openai.com/v1", priceListId: "openai" },
  // Both also have addresses that speak OpenAI's chat format; docs/decisions/native-formats.md says why those are not used.
  anthropic: { baseUrl: "https://api.anthropic.com/v1", wireFormat: "ai-sdk:anthropic", priceListId: "anthropic" },
  gemini: { baseUrl: "https://generativelanguage.googleapis.com/v1beta", wireFormat: "ai-sdk:google", priceListId: "google" },
  mistral: { baseUrl: "https://api.mistral.ai/v1", priceListId: "mistral" },
  groq: { baseUrl: "https://api.groq.com/openai/v1", priceListId: "groq" },
  deepseek: { baseUrl: "https://api.deepseek.com/v1", priceListId: "deepseek" },
  xai: { baseUrl: "https://api.x.ai/v1", priceListId: "x-ai" },
  moonshot: { baseUrl: "https://api.moonshot.ai/v1", priceListId: "moonshotai" },
  zai: { baseUrl: "https://api.z.ai/api/paas/v4", priceListId: "zai" },
  cerebras: { baseUrl: "https://api.cerebras.ai/v1", priceListId: "cerebras" },
  cohere: { baseUrl: "https://api.cohere.com/v2", wireFormat: "ai-sdk:cohere", priceListId: "cohere" },
  elevenlabs: { baseUrl: "https://api.elevenlabs.io/v1", wireFormat: "ai-sdk:elevenlabs" },
  deepgram: { baseUrl: "https://api.deepgram.com/v1", wireFormat: "ai-sdk:deepgram" },
  replicate: { baseUrl: "https://api.replicate.com/v1", wireFormat: "ai-sdk:replicate" },
  fal: { baseUrl: "https://fal.run", wireFormat: "ai-sdk:fal" },
  openrouter: { baseUrl: "https://openrouter.ai/api/v1", priceListId: "openrouter" },
};
