/** The OpenAI chat provider on a client of its own, for the tests of the wire format. */
import { OpenAiChatProvider } from "../../src/providers/openai/chat.js";
import { OpenAiClient, type OpenAiUpstream } from "../../src/providers/openai/client.js";
import type { ChatProvider } from "../../src/providers/provider.js";

export function createOpenAiChatProvider(upstream: OpenAiUpstream): ChatProvider & { close(): Promise<void> } {
  const client = new OpenAiClient(upstream);
  const chat = new OpenAiChatProvider(client);
  return { complete: (call) => chat.complete(call), stream: (call) => chat.stream(call), close: () => client.close() };
}
