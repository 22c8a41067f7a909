/** A vendor's package against the fake upstream, and what the vendors' documented formats look like on the wire. */

import type { OnUnknownWord } from "../../src/lib/unknown-words.js";
import { createAiSdkProvider } from "../../src/providers/ai-sdk/ai-sdk.js";
import { VENDORS, type VendorName } from "../../src/providers/ai-sdk/vendors.js";
import type { FetchFile } from "../../src/providers/openai/client.js";
import type { Provider, UpstreamTimeouts } from "../../src/providers/provider.js";
import type { FakeUpstream } from "./fake-upstream.js";

export const VENDOR_KEY = "vendor-key-0123456789";

export interface ConnectOptions {
  readonly timeouts?: Partial<UpstreamTimeouts>;
  readonly fetchFile?: FetchFile;
  readonly onUnknownWord?: OnUnknownWord;
}

export function connectVendor(upstream: FakeUpstream, vendor: VendorName, options: ConnectOptions = {}): Provider {
  return createAiSdkProvider({
    vendor: VENDORS[vendor],
    baseUrl: upstream.baseUrl,
    apiKey: VENDOR_KEY,
    timeouts: { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000, ...options.timeouts },
    onUnknownWord: options.onUnknownWord,
    fetchFile: options.fetchFile ?? (() => Promise.reject(new Error("Nothing is to be fetched."))),
  });
}

/**
 * The usage of Gemini's answers below: a prompt of 120 tokens, 30 of them audio, 40 (10 of the audio) from the cache, 5 beside it
 * for Google's own tools; 25 put out, and 15 thoughts.
 */
export const GEMINI_USAGE = {
  promptTokenCount: 120,
  cachedContentTokenCount: 40,
  candidatesTokenCount: 25,
  thoughtsTokenCount: 15,
  toolUsePromptTokenCount: 5,
  totalTokenCount: 165,
  promptTokensDetails: [
    { modality: "TEXT", tokenCount: 90 },
    { modality: "AUDIO", tokenCount: 30 },
  ],
  cacheTokensDetails: [
    { modality: "TEXT", tokenCount: 30 },
    { modality: "AUDIO", tokenCount: 10 },
  ],
  candidatesTokensDetails: [{ modality: "TEXT", tokenCount: 25 }],
};

export function geminiAnswer(parts: readonly object[], more: object = {}): Record<string, unknown> {
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0, ...more }],
    usageMetadata: GEMINI_USAGE,
    modelVersion: "gemini-test-1",
    responseId: "resp_01",
  };
}
