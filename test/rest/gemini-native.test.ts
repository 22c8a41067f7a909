/** Gemini's models called in their own format: signatures travel over each face, own options pass, and tools of Google's cost their price. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { geminiAnswer } from "../support/ai-sdk.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { refusalOf } from "../support/strict-gemini.js";
import { json, sse } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";

type Loose = Record<string, unknown>;

const MODEL = "gemini-3.5-flash";
const CALLED = [
  { text: "They want it.", thought: true },
  { functionCall: { id: "c1", name: "weather", args: { city: "Ulm" } }, thoughtSignature: "c2lnbmF0dXJl" },
];

let app: TestApp;
let google: FakeUpstream;
let client: Client;

beforeAll(async () => {
  google = await startFakeUpstream();
  const model = { modality: "text", upstream: "google", upstreamModel: MODEL, title: "Gemini", capabilities: ["tools", "reasoning"] };
  app = await createTestApp({
    upstreams: [{ id: "google", wireFormat: "gemini", baseUrl: google.baseUrl, apiKey: "google-key" }],
    models: [
      { ...model, id: "acme/gemini", prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000002" } },
      { ...model, id: "acme/searching", pricedFields: { "tools.type": { google_search: { perRequest: "0.035" } } } },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  await app.close();
  await google.close();
});

const sentLast = () => google.requests.at(-1)?.json as Loose & { contents: { parts: Loose[] }[] };
const tools = [{ functionDeclarations: [{ name: "weather" }] }];
const begin = { role: "user", parts: [{ text: "Weather?" }] };
const ask = (contents: unknown, more: Loose = {}, model = "acme/gemini") =>
  client.post(`/v1beta/models/${model}:generateContent`, { contents, tools, ...more });

describe("a model of Google's", () => {
  it.each([true, false])("gets its signatures back over its own format, streamed: %s", async (isStreamed) => {
    google.replyNext(
      isStreamed ? sse([geminiAnswer(CALLED)], { done: false }) : json(geminiAnswer(CALLED)),
      json(geminiAnswer([{ text: "Rain." }])),
    );
    const path = `/v1beta/models/acme/gemini:${isStreamed ? "streamGenerateContent?alt=sse" : "generateContent"}`;
    const first = await client.post(path, { contents: [begin], tools });
    const answers = isStreamed
      ? first.text
          .split("\n\n")
          .filter(Boolean)
          .map((event) => JSON.parse(event.slice(6)))
      : [first.json()];
    const parts = (answers as { candidates: { content: { parts: Loose[] } }[] }[]).flatMap(
      ({ candidates }) => candidates[0]?.content.parts ?? [],
    );
    const kept = parts.filter(({ text }) => text !== "");
    const result = { role: "user", parts: [{ functionResponse: { id: "c1", name: "weather", response: { output: "Rain." } } }] };
    const second = await ask([begin, { role: "model", parts: kept }, result]);

    expect(kept).toEqual([{ functionCall: { id: "c1", name: "weather", args: { city: "Ulm" } }, thoughtSignature: "c2lnbmF0dXJl" }]);
    expect(second.headers.get("x-warnings")).toBeNull();
    expect(sentLast().contents).toEqual([begin, { role: "model", parts: kept }, result]);
    expect(refusalOf(sentLast(), MODEL)).toBeNull();
  });

  it("gets its signatures back over chat completions", async () => {
    google.replyNext(json(geminiAnswer(CALLED)), json(geminiAnswer([{ text: "Rain." }])));
    const body = { model: "acme/gemini", tools: [{ type: "function", function: { name: "weather" } }] };
    const user = { role: "user", content: "Weather?" };
    const { choices } = (await client.post("/v1/chat/completions", { ...body, messages: [user] })).json<{
      choices: { message: Loose }[];
    }>();
    await client.post("/v1/chat/completions", {
      ...body,
      messages: [user, choices[0]?.message, { role: "tool", tool_call_id: "c1", content: "Rain." }],
    });

    expect(sentLast().contents[1]?.parts).toEqual([CALLED[1]]);
    expect(refusalOf(sentLast(), MODEL)).toBeNull();
  });

  it("is charged each token in one kind, and reports the same in Gemini's format", async () => {
    google.replyNext(json(geminiAnswer([{ text: "Hello." }])));

    const answer = await ask([begin]);

    // A prompt of 120 and 5 for Google's own tools, 40 of them cached; 25 put out and 15 thoughts.
    expect(answer.json<{ usageMetadata: Loose }>().usageMetadata).toMatchObject({
      ...{ promptTokenCount: 125, cachedContentTokenCount: 40, candidatesTokenCount: 25, thoughtsTokenCount: 15, totalTokenCount: 165 },
      cost: 0.000205,
    });
  });

  it("gets its own options, which other models do not have", async () => {
    google.replyNext(json(geminiAnswer([{ text: "Hello." }])));
    const safetySettings = [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_LOW_AND_ABOVE" }];
    const thinkingConfig = { thinkingBudget: 128, includeThoughts: true };
    const answer = await ask([begin], { safetySettings, generationConfig: { thinkingConfig, mediaResolution: "MEDIA_RESOLUTION_LOW" } });

    expect(answer.headers.get("x-warnings")).toBeNull();
    expect(sentLast()).toMatchObject({ safetySettings, generationConfig: { thinkingConfig, mediaResolution: "MEDIA_RESOLUTION_LOW" } });
  });

  it("uses tools that Google runs where they have a price", async () => {
    google.replyNext(json(geminiAnswer([{ text: "Found." }])));
    const priced = await ask([begin], { tools: [{ googleSearch: {} }] }, "acme/searching");
    const refused = await ask([begin], { tools: [{ googleSearch: {} }] });

    expect(sentLast().tools).toEqual([{ googleSearch: {} }]);
    expect(priced.headers.get("x-cost")).toBe("0.035");
    expect(refused.json()).toMatchObject({ error: { code: 400, param: "tools.0.googleSearch" } });
  });
});
