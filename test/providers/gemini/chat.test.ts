import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { toUsageMetadata } from "../../../src/formats/gemini/answer.js";
import { GeminiAnswers } from "../../../src/formats/gemini/stream.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { ChatProvider } from "../../../src/providers/provider.js";
import { GEMINI_USAGE, geminiAnswer, VENDOR_KEY } from "../../support/ai-sdk.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { connectGemini, type GeminiOptions } from "../../support/gemini.js";
import { CHAT_BODY as BODY, chatCall as call, failureOf, readAll, WEATHER } from "../../support/provider-calls.js";
import { refusalOf } from "../../support/strict-gemini.js";
import { json, sse } from "../../support/upstream-replies.js";

let upstream: FakeUpstream;
let open: { close(): Promise<void> }[] = [];
beforeEach(async () => {
  upstream = await startFakeUpstream();
});
afterEach(async () => {
  await upstream.close();
  await Promise.all(open.map((provider) => provider.close()));
  open = [];
});

function chatOf(options: GeminiOptions = {}): ChatProvider {
  const provider = connectGemini(upstream, options);
  open.push(provider);
  return provider.chat;
}

describe("Gemini", () => {
  const MODEL = "gemini-3.5-flash";

  it("gets generateContent requests", async () => {
    upstream.replyNext(json(geminiAnswer([{ text: "Hello." }])));
    const audio = { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } };
    await chatOf().complete(
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
        { role: "user", parts: [{ functionResponse: { id: "call_0", name: "weather", response: { output: "Rain." } } }] },
      ],
      generationConfig: {
        maxOutputTokens: 100,
        temperature: 0.5,
        seed: 7,
        thinkingConfig: { thinkingLevel: "low", includeThoughts: true },
      },
      tools: [{ functionDeclarations: [{ name: "weather", description: "Tells it.", parametersJsonSchema: WEATHER.function.parameters }] }],
    });
  });

  it("answers with its thoughts, calls and usage, each token in one kind", async () => {
    const parts = [
      { text: "They want it.", thought: true },
      { text: "I look." },
      { functionCall: { name: "weather", args: { city: "Ulm" } }, thoughtSignature: "c2lnbmF0dXJl" },
    ];
    upstream.replyNext(json(geminiAnswer(parts)));
    const { completion, usage } = await chatOf().complete(call({ ...BODY, tools: [WEATHER] }, MODEL));

    expect(completion.choices?.[0]).toMatchObject({
      message: {
        content: "I look.",
        reasoning_content: "They want it.",
        tool_calls: [
          { function: { name: "weather", arguments: '{"city":"Ulm"}' }, extra_content: { google: { thought_signature: "c2lnbmF0dXJl" } } },
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
    const chunks = await readAll(await chatOf().stream(call(BODY, MODEL)));

    expect((await upstream.nextRequest()).path).toBe(`/v1/models/${MODEL}:streamGenerateContent?alt=sse`);
    expect(chunks.map(({ object }) => object.choices?.[0]?.delta?.content)).toEqual(["Hel", "lo.", undefined, undefined]);
    expect(chunks.at(-2)?.object.choices?.[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)?.usage).toMatchObject({ inputTextTokens: 65, inputAudioTokens: 20, outputReasoningTokens: 15 });
  });

  it("reports the usage so far with each answer, for an answer that is cut", async () => {
    const begun = { ...geminiAnswer([{ text: "Hel" }], { finishReason: undefined }), usageMetadata: { promptTokenCount: 70_000 } };
    upstream.replyNext(sse([begun, geminiAnswer([{ text: "lo." }])], { done: false }));

    const [first] = await readAll(await chatOf().stream(call(BODY, MODEL)));

    expect(first?.usage).toMatchObject({ inputTextTokens: 70_000 });
    expect(first?.object).not.toHaveProperty("usage");
  });

  it("refuses a data URL that is not well-formed", async () => {
    const content = [{ type: "image_url", image_url: { url: "data:image/svg+xml,100%" } }];

    const error = await failureOf(chatOf().complete(call({ ...BODY, messages: [{ role: "user", content }] }, MODEL)));

    expect(error).toMatchObject({ status: 400, upstreamParam: "messages.0.content.0.image_url" });
  });

  it("reports a stream that just ends as cut", async () => {
    const { usageMetadata: _, ...begun } = geminiAnswer([{ text: "Hel" }], { finishReason: undefined });
    upstream.replyNext(sse([begun], { done: false }));

    expect(await failureOf(readAll(await chatOf().stream(call(BODY, MODEL))))).toMatchObject({ kind: "cut" });
  });

  it("is given a file that it does not fetch, and refuses one that cannot be had", async () => {
    upstream.replyAlways(json(geminiAnswer([{ text: "A cat." }])));
    const fetched: string[] = [];
    const chat = chatOf({
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
    const { completion } = await chatOf().complete(call(BODY, MODEL));

    expect(completion.choices?.[0]?.finish_reason).toBe("content_filter");
  });

  it("reports a prompt that was blocked as filtered, charged for the prompt", async () => {
    const blocked = { promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 7, totalTokenCount: 7 } };
    upstream.replyNext(json(blocked), sse([blocked], { done: false }));
    const { completion, usage } = await chatOf().complete(call(BODY, MODEL));
    const chunks = await readAll(await chatOf().stream(call(BODY, MODEL)));

    expect(completion.choices?.[0]).toMatchObject({ finish_reason: "content_filter", native_finish_reason: "PROHIBITED_CONTENT" });
    expect(usage).toEqual({ ...NO_USAGE, inputTextTokens: 7 });
    expect(chunks.map(({ object }) => object.choices?.[0]?.finish_reason)).toEqual(["content_filter", undefined]);
  });

  it("fails when the upstream's output was no answer, or reports an error on the way", async () => {
    const error = { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" };
    upstream.replyNext(
      json(geminiAnswer([], { finishReason: "MALFORMED_FUNCTION_CALL" })),
      sse([geminiAnswer([{ text: "a" }], { finishReason: undefined }), { error }], { done: false }),
    );

    expect(await failureOf(chatOf().complete(call(BODY, MODEL)))).toMatchObject({
      status: 502,
      upstreamMessage: "MALFORMED_FUNCTION_CALL",
    });
    expect(await failureOf(readAll(await chatOf().stream(call(BODY, MODEL))))).toMatchObject({
      upstreamMessage: "The model is overloaded.",
    });
  });

  it("passes on the fields that it has, and warns of the others", async () => {
    upstream.replyNext(json(geminiAnswer([{ text: "Hello." }])));
    const { warnings } = await chatOf().complete(
      call(
        {
          ...BODY,
          ...{
            n: 2,
            stop: "END",
            top_k: 4,
            logprobs: true,
            top_logprobs: 2,
            parallel_tool_calls: false,
            user: "u",
            modalities: ["text", "image"],
          },
          response_format: { type: "json_schema", json_schema: { name: "o", schema: { type: "object" } } },
          tools: [WEATHER, { type: "google_search" }, { type: "other" }],
          tool_choice: { type: "function", function: { name: "weather" } },
          provider_options: {
            google: { safetySettings: [{ category: "c", threshold: "BLOCK_NONE" }], thinkingConfig: { thinkingBudget: 5 } },
          },
        },
        "gemini-2.5-flash",
      ),
    );
    const { json: sent } = await upstream.nextRequest();

    expect(sent).toMatchObject({
      generationConfig: {
        ...{
          candidateCount: 2,
          stopSequences: ["END"],
          topK: 4,
          responseLogprobs: true,
          logprobs: 2,
          responseModalities: ["TEXT", "IMAGE"],
        },
        ...{ responseMimeType: "application/json", responseJsonSchema: { type: "object" }, thinkingConfig: { thinkingBudget: 5 } },
      },
      tools: [{ functionDeclarations: [{ name: "weather" }] }, { googleSearch: {} }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["weather"] } },
      safetySettings: [{ category: "c", threshold: "BLOCK_NONE" }],
    });
    expect(warnings).toEqual([
      "parallel_tool_calls: this upstream has no such option.",
      "user: this upstream has no such option.",
      'tools: this upstream has no tool of type "other".',
    ]);
    expect(refusalOf(sent as Record<string, unknown>, "gemini-2.5-flash")).toBeNull();
  });

  it("reads choices, cited pages, probabilities and pictures", async () => {
    const grounding = { groundingChunks: [{ web: { uri: "https://e.com/", title: "E" } }] };
    const logprobsResult = {
      topCandidates: [{ candidates: [{ token: "b", logProbability: -2 }] }],
      chosenCandidates: [{ token: "a", logProbability: -1 }],
    };
    const picture = { inlineData: { mimeType: "image/png", data: "AAAA" } };
    const answer = geminiAnswer([{ text: "a" }, picture], { groundingMetadata: grounding, logprobsResult });
    const second = { content: { role: "model", parts: [{ text: "b" }] }, finishReason: "MAX_TOKENS", index: 1 };
    const both = { ...answer, candidates: [...(answer.candidates as object[]), second] };
    upstream.replyNext(json(both), sse([both], { done: false }));
    const { completion } = await chatOf().complete(call(BODY, MODEL));
    const chunks = await readAll(await chatOf().stream(call(BODY, MODEL)));

    const cited = { type: "url_citation", url_citation: { url: "https://e.com/", title: "E", start_index: 0, end_index: 0 } };
    expect(completion.choices).toMatchObject([
      {
        index: 0,
        message: { content: "a", annotations: [cited], images: [{ image_url: { url: "data:image/png;base64,AAAA" } }] },
        logprobs: { content: [{ token: "a", logprob: -1, top_logprobs: [{ token: "b", logprob: -2 }] }] },
        finish_reason: "stop",
      },
      { index: 1, message: { content: "b" }, finish_reason: "length" },
    ]);
    const streamed = chunks.flatMap(({ object }) => object.choices ?? []);
    expect(streamed.filter(({ index }) => index === 1).map(({ delta, finish_reason: reason }) => [delta?.content, reason])).toEqual([
      ["b", null],
      [undefined, "length"],
    ]);
    expect(streamed.flatMap(({ delta }) => delta?.annotations ?? [])).toEqual([cited]);
  });

  it("keeps parts of tools that Google runs", async () => {
    const ran = [{ executableCode: { language: "PYTHON", code: "1+1" } }, { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2" } }];
    const answer = geminiAnswer([...ran, { text: "Two." }]);
    upstream.replyNext(json(answer), sse([answer], { done: false }));
    const { completion } = await chatOf().complete(call(BODY, MODEL));
    const chunks = await readAll(await chatOf().stream(call(BODY, MODEL)));

    const usage = toUsageMetadata(NO_USAGE, 0);
    const frame = { id: "g", model: "m", includesThoughts: true };
    const [choice] = completion.choices ?? [];
    const whole = GeminiAnswers.whole(frame, { choices: [{ index: 0, delta: choice?.message ?? null }] }, usage);
    const answers = new GeminiAnswers(frame);
    const streamed = chunks.flatMap(({ object }) => answers.read(object)).flatMap(({ candidates }) => candidates[0]?.content.parts ?? []);
    expect(whole.candidates[0]?.content.parts).toEqual([...ran, { text: "Two." }]);
    expect(streamed).toEqual([...ran, { text: "Two." }]);
  });

  it("names unknown kinds of usage", async () => {
    const words: string[] = [];
    upstream.replyNext(json({ ...geminiAnswer([{ text: "a" }]), usageMetadata: { ...GEMINI_USAGE, dreamTokenCount: 3 } }));
    await chatOf({ onUnknownWord: (_, word) => words.push(word) }).complete(call(BODY, MODEL));

    expect(words).toEqual(["dreamTokenCount"]);
  });
});

describe("a history that Gemini would refuse", () => {
  const toolCall = (id: string, extra?: object) => ({ id, type: "function", function: { name: "weather", arguments: "{}" }, ...extra });
  const google = { extra_content: { google: { thought_signature: "c2ln" } } };
  const asked = { role: "user", content: "Weather?" };
  const answered = (id: string) => ({ role: "tool", tool_call_id: id, content: "Rain." });

  it.each<[string, object[], string | null]>([
    [
      "with signatures is sent unchanged",
      [asked, { role: "assistant", content: null, tool_calls: [toolCall("a", google), toolCall("b")] }, answered("a"), answered("b")],
      null,
    ],
    [
      "without signatures goes on without its thoughts",
      [asked, { role: "assistant", content: null, tool_calls: [toolCall("a")] }, answered("a")],
      "signed thoughts",
    ],
    [
      "signed by another vendor leaves the signature out",
      [
        asked,
        {
          role: "assistant",
          content: null,
          reasoning_details: [{ type: "reasoning.text", text: "x", extra_content: { anthropic: { signature: "s" } } }],
          tool_calls: [toolCall("a", google)],
        },
        answered("a"),
      ],
      "another vendor",
    ],
    [
      "with a missing result gets one",
      [asked, { role: "assistant", content: null, tool_calls: [toolCall("a", google), toolCall("b")] }, answered("b"), asked],
      "output",
    ],
    ["with instructions alone is sent as a user's", [{ role: "system", content: "Say hi." }], null],
    ["with empty messages is sent without them", [asked, { role: "assistant", content: "" }, asked], null],
    [
      "with arguments that are no object keeps them",
      [
        asked,
        { role: "assistant", content: null, tool_calls: [{ ...toolCall("a", google), function: { name: "weather", arguments: "[1]" } }] },
        answered("a"),
      ],
      null,
    ],
  ])("%s", async (_, messages, warning) => {
    upstream.replyNext(json(geminiAnswer([{ text: "Hello." }])));
    const { warnings } = await chatOf().complete(call({ ...BODY, messages, tools: [WEATHER] }, "gemini-3.5-flash"));
    const { json: sent } = await upstream.nextRequest();

    expect(refusalOf(sent as Record<string, unknown>, "gemini-3.5-flash")).toBeNull();
    if (warning === null) expect(warnings).toEqual([]);
    else expect(warnings?.join()).toContain(warning);
  });
});
