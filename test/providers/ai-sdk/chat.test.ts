import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { VendorName } from "../../../src/providers/ai-sdk/vendors.js";
import type { ChatProvider, Provider } from "../../../src/providers/provider.js";
import { type ConnectOptions, connectVendor, VENDOR_KEY } from "../../support/ai-sdk.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { CHAT_BODY as BODY, chatCall as call, readAll } from "../../support/provider-calls.js";
import { event, json, sse } from "../../support/upstream-replies.js";

let upstream: FakeUpstream;
let open: Provider[] = [];
beforeEach(async () => {
  upstream = await startFakeUpstream();
});
afterEach(async () => {
  await upstream.close();
  await Promise.all(open.map((provider) => provider.close()));
  open = [];
});

function chatOf(vendor: VendorName, options: ConnectOptions = {}): ChatProvider {
  const provider = connectVendor(upstream, vendor, options);
  open.push(provider);
  if (!provider.chat) throw new Error("no chat");
  return provider.chat;
}

describe("other vendors", () => {
  it("of Amazon Bedrock get converse requests at the address of their region", async () => {
    const usage = { inputTokens: 20, outputTokens: 7, totalTokens: 77, cacheReadInputTokens: 40, cacheWriteInputTokens: 10 };
    upstream.replyNext(json({ output: { message: { role: "assistant", content: [{ text: "Hello." }] } }, stopReason: "end_turn", usage }));
    const answer = await chatOf("amazon-bedrock").complete(call(BODY, "anthropic.claude-haiku-4-5-v1:0"));
    const request = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", headers: { authorization: `Bearer ${VENDOR_KEY}` } });
    expect(decodeURIComponent(request.path)).toBe("/v1/model/anthropic.claude-haiku-4-5-v1:0/converse");
    expect(request.json).toMatchObject({ messages: [{ role: "user", content: [{ text: "Hi" }] }], inferenceConfig: { maxTokens: 100 } });
    expect(answer.completion.choices?.[0]).toMatchObject({ message: { content: "Hello." }, finish_reason: "stop" });
    expect(answer.usage).toEqual({
      ...NO_USAGE,
      inputTextTokens: 20,
      inputCachedTokens: 40,
      inputCacheWriteTokens: 10,
      outputTextTokens: 7,
    });
  });

  it("of Cohere answer and stream in their own events", async () => {
    const usage = { billed_units: { input_tokens: 3, output_tokens: 2 }, tokens: { input_tokens: 9, output_tokens: 2 } };
    const message = { role: "assistant", content: [{ type: "text", text: "Hello." }] };
    const events = [
      { type: "message-start", id: "c1", delta: { message: { role: "assistant", content: [] } } },
      { type: "content-start", index: 0, delta: { message: { content: { type: "text", text: "" } } } },
      { type: "content-delta", index: 0, delta: { message: { content: { text: "Hello." } } } },
      { type: "content-end", index: 0 },
      { type: "message-end", delta: { finish_reason: "COMPLETE", usage } },
    ];
    upstream.replyNext(json({ id: "c1", message, finish_reason: "COMPLETE", usage }), namedSse(events));
    const chat = chatOf("cohere");
    const whole = await chat.complete(call(BODY, "command-a-03-2025"));
    const chunks = await readAll(await chat.stream(call(BODY, "command-a-03-2025")));

    expect(upstream.requests.map(({ path }) => path)).toEqual(["/v1/chat", "/v1/chat"]);
    expect(whole.completion.choices?.[0]).toMatchObject({ message: { content: "Hello." }, finish_reason: "stop" });
    expect(whole.usage).toMatchObject({ inputTextTokens: 9, outputTextTokens: 2 });
    expect(chunks.map(({ object }) => object.choices?.[0]?.delta?.content)).toEqual(["Hello.", undefined, undefined]);
    expect(chunks.at(-1)?.usage).toEqual(whole.usage);
  });
});

/** Events are named by their type, and there is no `[DONE]`. */
function namedSse(events: readonly Record<string, unknown>[]) {
  return sse(
    events.map((data) => event(data, String(data.type))),
    { done: false },
  );
}
