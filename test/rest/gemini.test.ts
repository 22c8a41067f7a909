/** Gemini's format on any model, by hand: charges, refusals, streams, keys, models and embeddings. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, waitForUsage } from "./client.js";

type Loose = Record<string, unknown>;

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
const pathOf = (operation: string, model = "acme/chat") => `/v1beta/models/${model}:${operation}`;
const ask = (more: Loose = {}, model?: string) => client.post(pathOf("generateContent", model), { contents, ...more });
const askStream = (more: Loose = {}, query = "?alt=sse") =>
  client.post(`${pathOf("streamGenerateContent")}${query}`, { contents, ...more });

function eventsOf({ text }: Answer): Loose[] {
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => JSON.parse(event.slice("data: ".length)));
}

const USAGE = wireUsage(1000, 50, {
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 48 },
});
const METADATA = {
  promptTokenCount: 1000,
  cachedContentTokenCount: 400,
  candidatesTokenCount: 2,
  thoughtsTokenCount: 48,
  totalTokenCount: 1050,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 1000 }],
  candidatesTokensDetails: [{ modality: "TEXT", tokenCount: 2 }],
  cost: 0.000996,
};

describe("generateContent", () => {
  it("answers with the text, the charged usage and the cost", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi.", usage: USAGE })));

    const answer = await ask({ systemInstruction: { parts: [{ text: "Be brief." }] }, generationConfig: { maxOutputTokens: 50 } });

    const id = answer.headers.get("x-generation-id");
    expect(answer.json()).toEqual({
      candidates: [{ content: { parts: [{ text: "Hi." }], role: "model" }, finishReason: "STOP", index: 0 }],
      usageMetadata: METADATA,
      modelVersion: "acme/chat",
      responseId: id,
    });
    expect(answer.headers.get("x-cost")).toBe("0.000996");
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({
      model: "upstream-chat",
      max_completion_tokens: 50,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
    });
    const row = await waitForUsage(client, ({ request_id }) => request_id === id);
    expect(row).toMatchObject({ type: "generate.text", cost_usd: 0.000996 });
  });

  it("answers each candidate", async () => {
    const choices = ["A", "B"].map((content, index) => ({ index, message: { role: "assistant", content }, finish_reason: "stop" }));
    app.upstream.replyNext(json({ ...(chatCompletion({ usage: USAGE }) as Loose), choices }));

    const { candidates } = (await ask({ generationConfig: { candidateCount: 2 } })).json<{ candidates: Loose[] }>();

    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ n: 2 });
    expect(candidates).toMatchObject([
      { index: 0, content: { parts: [{ text: "A" }] } },
      { index: 1, content: { parts: [{ text: "B" }] } },
    ]);
  });

  it.each(["/v1beta/models/acme/chat", "/v1/models/acme%2Fchat", "/v1beta/models/acme%2Fchat", "/v1/models/acme/chat"])(
    "takes a model's name raw and encoded, below both prefixes: %s",
    async (path) => {
      const answer = await client.post(`${path}:generateContent`, { contents });

      expect(answer.json()).toMatchObject({ modelVersion: "acme/chat" });
    },
  );

  it.each(["x-goog-api-key", "key"])("takes the key as %s; a wrong one is refused, and neither is logged", async (place) => {
    const send = (key: string) =>
      fetch(`${app.baseUrl}${pathOf("generateContent")}${place === "key" ? `?key=${key}` : ""}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(place !== "key" && { [place]: key }) },
        body: JSON.stringify({ contents }),
      });

    expect((await send(app.key)).status).toBe(200);
    const wrong = await send("AIza-nothing");
    expect(wrong.status).toBe(401);
    expect(await wrong.json()).toMatchObject({ success: false, error: { code: 401, status: "UNAUTHENTICATED", reason: "UNAUTHORIZED" } });
    expect(JSON.stringify(app.logs)).not.toContain(app.key);
    expect(JSON.stringify(app.logs)).not.toContain("AIza-nothing");
  });

  it.each<[Loose, number, string, string | null]>([
    [{ contents: [] }, 400, "INVALID_ARGUMENT", "contents"],
    [{ contents: [{ role: "assistant", parts: [] }] }, 400, "INVALID_ARGUMENT", "contents.0.role"],
    [{ generationConfig: { topP: 2 } }, 400, "INVALID_ARGUMENT", "generationConfig.topP"],
    [{ generation_config: { top_p: 2 } }, 400, "INVALID_ARGUMENT", "generationConfig.topP"],
    [{ max_cost: "0.000000001" }, 402, "FAILED_PRECONDITION", null],
    [{ tools: [{ googleSearch: {} }] }, 400, "INVALID_ARGUMENT", "tools.0.googleSearch"],
    [{ tools: [{ code_execution: {} }] }, 400, "INVALID_ARGUMENT", "tools.0.code_execution"],
    [{ cachedContent: "cachedContents/1" }, 400, "INVALID_ARGUMENT", "cachedContent"],
    [
      { contents: [{ parts: [{ fileData: { fileUri: "gs://bucket/a.png", mimeType: "image/png" } }] }] },
      400,
      "INVALID_ARGUMENT",
      "contents.0.parts.0.fileData.fileUri",
    ],
  ])("refuses %j in Google's form within the envelope, whole and streamed", async (body, status, name, param) => {
    for (const answer of [await ask(body), await askStream(body), await askStream(body, "")]) {
      const failure = answer.json<{ success: boolean; error: Loose & { details: Loose[] } }>();

      expect([answer.status, failure.success, failure.error.code, failure.error.status]).toEqual([status, false, status, name]);
      expect(failure.error.message).toEqual(expect.any(String));
      if (param !== null) expect(failure.error.param).toBe(param);
      if (param !== null) expect(failure.error.details[1]).toMatchObject({ fieldViolations: [{ field: param }] });
    }
  });

  it("answers 404 for an unknown model, and 400 for one of another kind", async () => {
    expect((await ask({}, "acme/none")).json()).toMatchObject({ error: { code: 404, status: "NOT_FOUND", param: "model" } });
    expect((await ask({}, "sandbox/embedding")).json()).toMatchObject({ error: { code: 400, status: "INVALID_ARGUMENT" } });
  });

  it("names the gateway's hint for operations of Google's that it lacks", async () => {
    const answer = await client.post(pathOf("predict"), {});

    expect([answer.status, answer.text]).toEqual([405, expect.stringContaining("POST /v1/images/generations")]);
  });

  it("warns of the fields and parts that are left out", async () => {
    const answer = await ask({
      safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_LOW_AND_ABOVE" }],
      generationConfig: { audioTimestamp: true },
      contents: [{ parts: [{ text: "Hello" }, { executableCode: { code: "1" } }] }],
    });

    const warnings = answer.headers.get("x-warnings");
    expect(warnings).toContain("safetySettings");
    expect(warnings).toContain("generationConfig.audioTimestamp");
    expect(warnings).toContain("executableCode");
  });

  it("passes an upstream's refusal on with its status", async () => {
    app.upstream.replyNext(errorReply(400, "context too long"));

    expect((await ask()).json()).toMatchObject({ error: { code: 400, status: "INVALID_ARGUMENT" } });
  });

  it("repeats a request with an Idempotency-Key once", async () => {
    const send = () => client.post(pathOf("generateContent"), { contents }, { headers: { "idempotency-key": "gemini-1" } });
    const [first, second] = [await send(), await send()];

    expect(second.text).toBe(first.text);
    expect(second.headers.get("x-idempotent-replay")).toBe("true");
  });
});

describe("streamGenerateContent", () => {
  it.each(["?alt=sse", ""])("streams the same, with the usage and the receipt after the charge: %j", async (query) => {
    app.upstream.replyNext(sse(chatChunks(["Hi", "."], { usage: USAGE })));

    const answer = await askStream({}, query);

    const answers = query === "" ? JSON.parse(answer.text) : eventsOf(answer);
    expect(answer.headers.get("content-type")).toContain(query === "" ? "application/json" : "text/event-stream");
    expect(answers.map(({ candidates }: { candidates: { content: { parts: unknown } }[] }) => candidates[0]?.content.parts)).toEqual([
      [{ text: "Hi" }],
      [{ text: "." }],
      [{ text: "" }],
    ]);
    expect(answers.at(-1)).toMatchObject({
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: METADATA,
      receipt: { model_used: "acme/chat" },
    });
    const id = answer.headers.get("x-generation-id");
    expect(await waitForUsage(client, ({ request_id }) => request_id === id)).toMatchObject({ cost_usd: 0.000996 });
  });

  it.each(["?alt=sse", ""])("ends a stream that breaks with an error, charged for the delivered part: %j", async (query) => {
    app.upstream.replyNext(sse(chatChunks(["Hi", " there"], { finishReason: null, usage: null }).slice(0, 2), { end: "cut" }));

    const answer = await askStream({}, query);

    const answers = query === "" ? JSON.parse(answer.text) : eventsOf(answer);
    expect(answers.at(-1)).toMatchObject({ error: { code: 502, status: "INTERNAL", reason: "UPSTREAM_ERROR" } });
    const id = answer.headers.get("x-generation-id");
    expect(Number((await waitForUsage(client, ({ request_id }) => request_id === id)).cost_usd)).toBeGreaterThan(0);
  });
});

describe("countTokens", () => {
  const text = "word ".repeat(1_000);

  it.each<[string, Loose]>([
    ["contents", { contents: [{ parts: [{ text }] }] }],
    [
      "a whole request",
      { generateContentRequest: { contents: [{ parts: [{ text }] }], systemInstruction: { parts: [{ text: "Be brief." }] } } },
    ],
  ])("counts the tokens of %s, without a charge or a call", async (_, body) => {
    const before = app.upstream.requests.length;
    const answer = await client.post(pathOf("countTokens"), body);

    const { totalTokens } = answer.json<{ totalTokens: number }>();
    expect(totalTokens).toBeGreaterThan(1_000);
    expect(totalTokens).toBeLessThan(1_050);
    expect(app.upstream.requests).toHaveLength(before);
    expect(answer.headers.get("x-cost")).toBeNull();
  });

  it("refuses an unknown model and a request without contents", async () => {
    expect((await client.post(pathOf("countTokens", "acme/none"), { contents })).status).toBe(404);
    expect((await client.post(pathOf("countTokens"), {})).json()).toMatchObject({ error: { param: "contents" } });
  });
});

describe("embeddings", () => {
  const model = "sandbox/embedding";
  const content = { parts: [{ text: "A mill" }] };

  it("embeds one content, and several as one generation", async () => {
    const one = await client.post(pathOf("embedContent", model), { content, outputDimensionality: 8 });
    const both = await client.post(pathOf("batchEmbedContents", model), {
      requests: [
        { model: `models/${model}`, content, taskType: "RETRIEVAL_QUERY" },
        { model: `models/${model}`, content: { parts: [{ text: "A river" }] } },
      ],
    });

    const { embedding } = one.json<{ embedding: { values: number[] } }>();
    const { embeddings } = both.json<{ embeddings: { values: number[] }[] }>();
    expect(embedding.values).toHaveLength(8);
    expect(embeddings).toHaveLength(2);
    expect(embeddings[0]?.values).not.toEqual(embeddings[1]?.values);
    expect(one.headers.get("x-cost")).not.toBeNull();
    expect(both.headers.get("x-warnings")).toContain("taskType");
  });

  it.each<[Loose, string]>([
    [{ requests: [{ content: { parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] } }] }, "requests.0.content.parts.0"],
    [{ requests: [{ content }, { content, outputDimensionality: 8 }] }, "requests.1.outputDimensionality"],
    [{ requests: [{ content, model: "models/acme/other" }] }, "requests.0.model"],
    [{ requests: [] }, "requests"],
  ])("refuses %j", async (body, param) => {
    const answer = await client.post(pathOf("batchEmbedContents", model), body);

    expect(answer.json()).toMatchObject({ error: { code: 400, status: "INVALID_ARGUMENT", param } });
  });
});

describe("models", () => {
  const get = async (path: string, headers: Record<string, string> = {}) => (await client.get(path, { headers })).json<Loose>();

  it("are listed in pages, at /v1/models for requests with x-goog-api-key", async () => {
    const all = (await get("/v1beta/models?pageSize=1000")) as { models: { name: string; supportedGenerationMethods: string[] }[] };
    const first = await get("/v1beta/models?pageSize=2");
    const next = await get(`/v1/models?pageSize=2&pageToken=${encodeURIComponent(String(first.nextPageToken))}`, {
      "x-goog-api-key": app.key,
    });

    expect(all).not.toHaveProperty("nextPageToken");
    expect(all.models.find(({ name }) => name === "models/acme/chat")).toMatchObject({
      supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
    });
    expect(all.models.find(({ name }) => name === "models/sandbox/embedding")).toMatchObject({
      supportedGenerationMethods: ["embedContent", "batchEmbedContents"],
    });
    expect([first.models, next.models]).toEqual([all.models.slice(0, 2), all.models.slice(2, 4)]);
    expect(await get("/v1/models")).toMatchObject({ object: "list" });
  });

  it("are returned one by one", async () => {
    expect(await get("/v1beta/models/acme/chat")).toMatchObject({ name: "models/acme/chat" });
    expect(await get("/v1/models/acme%2Fchat", { "x-goog-api-key": app.key })).toMatchObject({ name: "models/acme/chat" });
    expect(await get("/v1/models/acme/chat")).toMatchObject({ object: "model" });
    expect(await get("/v1beta/models/acme/none")).toMatchObject({ error: { code: 404, status: "NOT_FOUND" } });
  });
});
