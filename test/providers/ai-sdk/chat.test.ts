import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatBody, ChatChunkObject } from "../../../src/formats/openai-chat/schema.js";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { VendorName } from "../../../src/providers/ai-sdk/vendors.js";
import type { ChatProvider, Provider } from "../../../src/providers/provider.js";
import { type ConnectOptions, connectVendor, GEMINI_USAGE, geminiAnswer, VENDOR_KEY } from "../../support/ai-sdk.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { event, json, sse } from "../../support/upstream-replies.js";

const WEATHER = {
  type: "function",
  function: { name: "weather", description: "Tells it.", parameters: { type: "object", properties: { city: { type: "string" } } } },
};
const BODY: ChatBody = { model: "sluice/chat", messages: [{ role: "user", content: "Hi" }], max_tokens: 100 };

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

function call(body: ChatBody, upstreamModel: string, signal = new AbortController().signal) {
  return { upstreamModel, body, signal };
}

async function failureOf(promise: Promise<unknown>): Promise<ProviderError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
}

async function readAll(stream: AsyncIterable<readonly { object: ChatChunkObject; bytes: Uint8Array; usage: unknown }[]>) {
  const chunks = [];
  for await (const batch of stream) chunks.push(...batch);
  return chunks;
}

describe("Gemini", () => {
  const MODEL = "gemini-3.5-flash";

  it("gets generateContent requests", async () => {
    upstream.replyNext(json(geminiAnswer([{ text: "Hello." }])));
    const audio = { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } };
    await chatOf("google").complete(
      call(
        {
          ...BODY,
          messages: [
            { role: "developer", content: "Be brief." },
            { role: "user", content: [{ type: "text", text: "Listen." }, audio] },
            {
              role: "assistant",
              content: null,
              tool_calls: [
                {
                  id: "call_0",
                  type: "function",
                  function: { name: "weather", arguments: '{"city":"Bonn"}' },
                  extra_content: { google: { thoughtSignature: "c2ln" } },
                },
              ],
            },
            { role: "tool", tool_call_id: "call_0", content: "Rain." },
          ],
          temperature: 0.5,
          seed: 7,
          tools: [WEATHER],
          reasoning_effort: "low",
        },
        MODEL,
      ),
    );
    const request = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", path: `/v1/models/${MODEL}:generateContent` });
    expect(request.headers["x-goog-api-key"]).toBe(VENDOR_KEY);
    expect(request.json).toEqual({
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [
        { role: "user", parts: [{ text: "Listen." }, { inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }] },
        { role: "model", parts: [{ functionCall: { id: "call_0", name: "weather", args: { city: "Bonn" } }, thoughtSignature: "c2ln" }] },
        { role: "user", parts: [{ functionResponse: { id: "call_0", name: "weather", response: { name: "weather", content: "Rain." } } }] },
      ],
      generationConfig: {
        maxOutputTokens: 100,
        temperature: 0.5,
        seed: 7,
        thinkingConfig: { thinkingLevel: "low", includeThoughts: true },
      },
      tools: [{ functionDeclarations: [{ ...WEATHER.function, parameters: expect.objectContaining({ type: "object" }) }] }],
    });
  });

  it("answers with its thoughts, calls and usage, each token in one kind", async () => {
    const parts = [
      { text: "They want it.", thought: true },
      { text: "I look." },
      { functionCall: { name: "weather", args: { city: "Ulm" } }, thoughtSignature: "c2lnbmF0dXJl" },
    ];
    upstream.replyNext(json(geminiAnswer(parts)));
    const { completion, usage } = await chatOf("google").complete(call({ ...BODY, tools: [WEATHER] }, MODEL));

    expect(completion.choices?.[0]).toMatchObject({
      message: {
        content: "I look.",
        reasoning_content: "They want it.",
        tool_calls: [
          { function: { name: "weather", arguments: '{"city":"Ulm"}' }, extra_content: { google: { thoughtSignature: "c2lnbmF0dXJl" } } },
        ],
      },
      finish_reason: "tool_calls",
    });
    expect(usage).toEqual({
      ...NO_USAGE,
      // 120 + 5, less 40 from the cache and the 20 of the audio that were not.
      inputTextTokens: 65,
      inputCachedTokens: 40,
      inputAudioTokens: 20,
      outputTextTokens: 25,
      outputReasoningTokens: 15,
    });
    expect(GEMINI_USAGE.totalTokenCount).toBe(165);
  });

  it("streams by streamGenerateContent", async () => {
    const { usageMetadata: _, ...begun } = geminiAnswer([{ text: "Hel" }], { finishReason: undefined });
    upstream.replyNext(sse([begun, geminiAnswer([{ text: "lo." }])], { done: false }));
    const chunks = await readAll(await chatOf("google").stream(call(BODY, MODEL)));

    expect((await upstream.nextRequest()).path).toBe(`/v1/models/${MODEL}:streamGenerateContent?alt=sse`);
    expect(chunks.map(({ object }) => object.choices?.[0]?.delta?.content)).toEqual(["Hel", "lo.", undefined, undefined]);
    expect(chunks.at(-2)?.object.choices?.[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)?.usage).toMatchObject({ inputTextTokens: 65, inputAudioTokens: 20, outputReasoningTokens: 15 });
  });

  it("reports a stream that just ends as cut", async () => {
    const { usageMetadata: _, ...begun } = geminiAnswer([{ text: "Hel" }], { finishReason: undefined });
    upstream.replyNext(sse([begun], { done: false }));

    expect(await failureOf(readAll(await chatOf("google").stream(call(BODY, MODEL))))).toMatchObject({ kind: "cut" });
  });

  it("is given a file that it does not fetch, and refuses one that cannot be had", async () => {
    upstream.replyAlways(json(geminiAnswer([{ text: "A cat." }])));
    const fetched: string[] = [];
    const chat = chatOf("google", {
      fetchFile: async (url) => {
        fetched.push(url);
        if (url.endsWith("b.gif")) throw new Error("The URL must be https.");
        return { bytes: Buffer.from("GIF89a"), contentType: "image/gif" };
      },
    });
    const withImage = (url: string) =>
      call({ ...BODY, messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] }, MODEL);
    await chat.complete(withImage("https://pictures.example/a.gif"));

    expect((await upstream.nextRequest()).json).toMatchObject({
      contents: [{ parts: [{ inlineData: { mimeType: "image/gif", data: "R0lGODlh" } }] }],
    });
    expect(await failureOf(chat.complete(withImage("http://10.0.0.1/b.gif")))).toMatchObject({
      kind: "status",
      status: 400,
      upstreamMessage: "The URL must be https.",
    });
    expect(fetched).toEqual(["https://pictures.example/a.gif", "http://10.0.0.1/b.gif"]);
    expect(upstream.requests).toHaveLength(1);
  });

  it("reports the reason of a block as a finish_reason", async () => {
    upstream.replyNext(json(geminiAnswer([{ text: "" }], { finishReason: "SAFETY" })));
    const { completion } = await chatOf("google").complete(call(BODY, MODEL));

    expect(completion.choices?.[0]?.finish_reason).toBe("content_filter");
  });
});

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
