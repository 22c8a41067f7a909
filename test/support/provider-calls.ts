/** Calls of providers in tests: requests, whole streams and failures. */
import { expect } from "vitest";
import type { ChatBody, ChatChunkObject } from "../../src/formats/openai-chat/schema.js";
import { ProviderError } from "../../src/formats/upstream-error.js";

export const CHAT_BODY: ChatBody = { model: "sluice/chat", messages: [{ role: "user", content: "Hi" }], max_tokens: 100 };
export const WEATHER = {
  type: "function",
  function: { name: "weather", description: "Tells it.", parameters: { type: "object", properties: { city: { type: "string" } } } },
};

export function chatCall(body: ChatBody, upstreamModel: string, signal = new AbortController().signal) {
  return { upstreamModel, body, signal };
}

export async function readAll(stream: AsyncIterable<readonly { object: ChatChunkObject; bytes: Uint8Array; usage: unknown }[]>) {
  const chunks = [];
  for await (const batch of stream) chunks.push(...batch);
  return chunks;
}

export async function failureOf(promise: Promise<unknown>): Promise<ProviderError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
}
