/** The provider that speaks Gemini's format, to the fake upstream. */
import type { OnUnknownWord } from "../../src/lib/unknown-words.js";
import { GeminiChatProvider, toGeminiUpstream } from "../../src/providers/gemini/gemini.js";
import { type FetchFile, OpenAiClient } from "../../src/providers/openai/client.js";
import type { ChatProvider } from "../../src/providers/provider.js";
import { VENDOR_KEY } from "./ai-sdk.js";
import type { FakeUpstream } from "./fake-upstream.js";

export interface GeminiOptions {
  readonly fetchFile?: FetchFile;
  readonly onUnknownWord?: OnUnknownWord;
}

export function connectGemini(upstream: FakeUpstream, options: GeminiOptions = {}): { chat: ChatProvider; close(): Promise<void> } {
  const client = new OpenAiClient(
    toGeminiUpstream({
      baseUrl: upstream.baseUrl,
      apiKey: VENDOR_KEY,
      timeouts: { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 },
      onUnknownWord: options.onUnknownWord,
    }),
  );
  const fetchFile = options.fetchFile ?? (() => Promise.reject(new Error("Nothing is to be fetched.")));
  return { chat: new GeminiChatProvider(client, fetchFile), close: () => client.close() };
}
