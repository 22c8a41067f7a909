/** Google's client for Gemini, unmodified, against the gateway's models: each method of the table once, and refusals as it reports them. */
import {
  ApiError,
  type Content,
  type FunctionDeclaration,
  type GenerateContentConfig,
  type GenerateContentParameters,
  GoogleGenAI,
  Type,
} from "@google/genai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { LIMITED, LIMITED_MODEL, useUpLimited } from "../support/limited-model.js";
import { errorBody } from "../support/openai-bodies.js";
import { errorReply, json, type Reply } from "../support/upstream-replies.js";

const MODEL = "sandbox/text";
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let app: TestApp;
let ai: GoogleGenAI;
beforeAll(async () => {
  app = await createTestApp({ models: [LIMITED_MODEL] });
  ai = clientOf(app.key);
  await useUpLimited(app);
});
afterAll(() => app.close());

const clientOf = (apiKey: string, apiVersion?: string) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: app.baseUrl, ...(apiVersion !== undefined && { apiVersion }) } });

const declarations: FunctionDeclaration[] = ["alpha", "beta"].map((name) => ({
  name,
  parameters: {
    type: Type.OBJECT,
    properties: { count: { type: Type.INTEGER }, color: { type: Type.STRING, enum: ["red"] } },
    required: ["count", "color"],
  },
}));
const config = { tools: [{ functionDeclarations: declarations }] };

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

interface Refused {
  readonly key?: string;
  readonly model?: string;
  readonly config?: GenerateContentConfig;
  readonly reply?: Reply;
}

/** Each method, and a summary of its result. */
const METHODS: Readonly<Record<string, () => Promise<unknown>>> = {
  "models.generateContent": async () => {
    const answer = await ai.models.generateContent({ model: MODEL, contents: "[echo] Hello", config: { systemInstruction: "Be brief." } });
    return [answer.text, answer.candidates?.[0]?.finishReason, (answer.usageMetadata?.totalTokenCount ?? 0) > 0];
  },
  "models.generateContentStream": async () => {
    const answers = await collect(await ai.models.generateContentStream({ model: MODEL, contents: "[echo] one two" }));
    return [answers.map(({ text }) => text).join(""), answers.at(-1)?.usageMetadata?.candidatesTokenCount];
  },
  "models.generateContent below /v1": async () =>
    (await clientOf(app.key, "v1").models.generateContent({ model: MODEL, contents: "[echo] Hello" })).text,
  "models.generateContent with functions": async () => {
    const answer = await ai.models.generateContent({ model: MODEL, contents: "[tool alpha][tool beta] go", config });
    return answer.functionCalls?.map(({ name, args }) => [name, args]);
  },
  "models.generateContentStream with functions": async () => {
    const stream = await ai.models.generateContentStream({ model: MODEL, contents: "[tool alpha][tool beta] go", config });
    return (await collect(stream)).flatMap(({ functionCalls }) => functionCalls?.map(({ name }) => name) ?? []);
  },
  "models.generateContent with a picture": async () => {
    const contents: Content[] = [
      { role: "user", parts: [{ text: "[echo] picture" }, { inlineData: { mimeType: "image/png", data: PNG } }] },
    ];
    return (await ai.models.generateContent({ model: MODEL, contents })).text;
  },
  "models.generateContent with a schema": async () => {
    const responseSchema = { type: Type.OBJECT, properties: { n: { type: Type.INTEGER, nullable: true } }, required: ["n"] };
    const answer = await ai.models.generateContent({
      model: MODEL,
      contents: "x",
      config: { responseMimeType: "application/json", responseSchema },
    });
    return Object.keys(JSON.parse(answer.text ?? ""));
  },
  "models.generateContent with thoughts": async () => {
    const answer = await ai.models.generateContent({
      model: MODEL,
      contents: "[think 3 hm][echo] x",
      config: { thinkingConfig: { includeThoughts: true } },
    });
    return answer.candidates?.[0]?.content?.parts?.map(({ text, thought = false }) => [text, thought]);
  },
  "models.countTokens": async () => ((await ai.models.countTokens({ model: MODEL, contents: "Hello" })).totalTokens ?? 0) > 0,
  "models.embedContent": async () => {
    const { embeddings } = await ai.models.embedContent({
      model: "sandbox/embedding",
      contents: ["a", "b"],
      config: { outputDimensionality: 4 },
    });
    return embeddings?.map(({ values }) => values?.length);
  },
  "models.get": async () => (await ai.models.get({ model: MODEL })).name,
  "models.list": async () => {
    const names = (await collect(await ai.models.list({ config: { pageSize: 2 } }))).map(({ name }) => name);
    return [names.length > 2, new Set(names).size === names.length, names.includes("models/sandbox/text")];
  },
  "chats.sendMessage": async () => {
    const chat = ai.chats.create({ model: MODEL, config });
    const asked = await chat.sendMessage({ message: "[tool alpha] go" });
    const [called] = asked.functionCalls ?? [];
    const response = { output: "42" };
    const told = await chat.sendMessage({ message: { functionResponse: { id: called?.id ?? "", name: "alpha", response } } });
    return [called?.name, told.text?.includes('A tool answered: "42"')];
  },
  "chats.sendMessageStream": async () => {
    const chat = ai.chats.create({ model: MODEL });
    await collect(await chat.sendMessageStream({ message: "[echo] one two" }));
    const again = await collect(await chat.sendMessageStream({ message: "[echo] three" }));
    return again.map(({ text }) => text).join("");
  },
};

describe("@google/genai", () => {
  it.each<[string, unknown]>([
    ["models.generateContent", ["Hello", "STOP", true]],
    ["models.generateContentStream", ["one two", 2]],
    ["models.generateContent below /v1", "Hello"],
    [
      "models.generateContent with functions",
      [
        ["alpha", { count: 1, color: "red" }],
        ["beta", { count: 1, color: "red" }],
      ],
    ],
    ["models.generateContentStream with functions", ["alpha", "beta"]],
    ["models.generateContent with a picture", "picture"],
    ["models.generateContent with a schema", ["n"]],
    [
      "models.generateContent with thoughts",
      [
        ["hm hm hm", true],
        ["x", false],
      ],
    ],
    ["models.countTokens", true],
    ["models.embedContent", [4, 4]],
    ["models.get", "models/sandbox/text"],
    ["models.list", [true, true, true]],
    ["chats.sendMessage", ["alpha", true]],
    ["chats.sendMessageStream", "three"],
  ])("%s", async (name, expected) => {
    expect(await METHODS[name]?.()).toEqual(expected);
  });

  it("ends a stream that is cancelled", async () => {
    const leaving = new AbortController();
    const stream = await ai.models.generateContentStream({
      model: MODEL,
      contents: "[pace 100ms][echo] a b c d",
      config: { abortSignal: leaving.signal },
    });

    await expect(
      (async () => {
        for await (const _ of stream) leaving.abort();
      })(),
    ).rejects.toThrow("aborted");
  });

  it("reports an upstream that fails within a stream", async () => {
    const stream = await ai.models.generateContentStream({ model: MODEL, contents: "[error after 2][echo] a b c d" });
    const error = await collect(stream).catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(ApiError);
    expect([(error as ApiError).status, (error as ApiError).message]).toEqual([502, expect.stringContaining("UPSTREAM_ERROR")]);
  });

  describe.each([
    ["whole", (client: GoogleGenAI, body: GenerateContentParameters) => client.models.generateContent(body)],
    ["streamed", async (client: GoogleGenAI, body: GenerateContentParameters) => collect(await client.models.generateContentStream(body))],
  ])("%s", (_form, send) => {
    it.each<[number, string, Refused]>([
      [401, "UNAUTHENTICATED", { key: "bad" }],
      [400, "INVALID_ARGUMENT", { config: { temperature: 9 } }],
      [400, "googleSearch", { config: { tools: [{ googleSearch: {} }] } }],
      [404, "NOT_FOUND", { model: "gemini-none" }],
      [402, "FAILED_PRECONDITION", { model: "sandbox/text-paid", config: { httpOptions: { headers: { "x-max-cost": "0.000000001" } } } }],
      [429, "RESOURCE_EXHAUSTED", { model: LIMITED }],
      [400, "INVALID_ARGUMENT", { model: "acme/free", reply: errorReply(400, "No such thing.") }],
      [502, "UPSTREAM_ERROR", { model: "acme/free", reply: json(errorBody("Slow down."), { status: 429 }) }],
    ])("reports %d %s", async (status, name, { key = app.key, model = MODEL, config, reply }) => {
      if (reply) app.upstream.replyNext(reply);
      const error = await send(clientOf(key), { model, contents: "x", ...(config && { config }) }).catch((thrown: unknown) => thrown);

      expect(error).toBeInstanceOf(ApiError);
      expect([(error as ApiError).status, (error as ApiError).message]).toEqual([status, expect.stringContaining(name)]);
    });
  });
});
