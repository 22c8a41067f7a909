/** One conversation in the format of each face: the upstream gets the same messages, and the charge is the same. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { execute } from "../graphql/client.js";
import { ChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, waitForUsage } from "./client.js";

type Loose = Record<string, unknown>;

const MODEL = "acme/chat";
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";
const ARGUMENTS = { city: "Paris" };
const USAGE = wireUsage(1000, 50, {
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 48 },
});

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const chat = {
  model: MODEL,
  max_tokens: 100,
  temperature: 0.5,
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "How is the weather here?" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PICTURE}` } },
      ],
    },
    {
      role: "assistant",
      content: "I look.",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: JSON.stringify(ARGUMENTS) } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "Rain." },
  ],
  tools: [{ type: "function", function: { name: "weather", description: "The weather.", parameters: SCHEMA } }],
};

const responses = {
  model: MODEL,
  max_output_tokens: 100,
  temperature: 0.5,
  instructions: "Be brief.",
  input: [
    {
      role: "user",
      content: [
        { type: "input_text", text: "How is the weather here?" },
        { type: "input_image", image_url: `data:image/png;base64,${PICTURE}` },
      ],
    },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look." }] },
    { type: "function_call", call_id: "call_1", name: "weather", arguments: JSON.stringify(ARGUMENTS) },
    { type: "function_call_output", call_id: "call_1", output: "Rain." },
  ],
  tools: [{ type: "function", name: "weather", description: "The weather.", parameters: SCHEMA }],
};

const messages = {
  model: MODEL,
  max_tokens: 100,
  temperature: 0.5,
  system: "Be brief.",
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "How is the weather here?" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: PICTURE } },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "I look." },
        { type: "tool_use", id: "call_1", name: "weather", input: ARGUMENTS },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "Rain." }] },
  ],
  tools: [{ name: "weather", description: "The weather.", input_schema: SCHEMA }],
};

const gemini = {
  systemInstruction: { parts: [{ text: "Be brief." }] },
  contents: [
    { role: "user", parts: [{ text: "How is the weather here?" }, { inlineData: { mimeType: "image/png", data: PICTURE } }] },
    { role: "model", parts: [{ text: "I look." }, { functionCall: { id: "call_1", name: "weather", args: ARGUMENTS } }] },
    { role: "user", parts: [{ functionResponse: { id: "call_1", name: "weather", response: { output: "Rain." } } }] },
  ],
  tools: [{ functionDeclarations: [{ name: "weather", description: "The weather.", parametersJsonSchema: SCHEMA }] }],
  generationConfig: { maxOutputTokens: 100, temperature: 0.5 },
};

interface Face {
  readonly name: string;
  readonly isStreamed: boolean;
  /** Resolves with the id of the generation. */
  readonly ask: () => Promise<string>;
}

async function post(path: string, body: object): Promise<string> {
  const answer = await client.post(path, body);
  expect([path, answer.status, answer.text.slice(0, 300)]).toEqual([path, 200, expect.any(String)]);
  return answer.headers.get("x-generation-id") ?? "";
}

async function ask(): Promise<string> {
  const { data, errors } = await execute(app, ChatDocument, {
    input: {
      model: MODEL,
      maxTokens: 100,
      temperature: 0.5,
      messages: [
        { role: "SYSTEM", content: "Be brief." },
        {
          role: "USER",
          parts: [{ text: "How is the weather here?" }, { image: { url: `data:image/png;base64,${PICTURE}` } }],
        },
        {
          role: "ASSISTANT",
          content: "I look.",
          toolCalls: [{ id: "call_1", function: { name: "weather", arguments: JSON.stringify(ARGUMENTS) } }],
        },
        { role: "TOOL", toolCallId: "call_1", content: "Rain." },
      ],
      tools: [{ function: { name: "weather", description: "The weather.", parameters: SCHEMA } }],
    },
  });
  expect(errors).toBeUndefined();
  return data?.createChatCompletion?.receipt.generationId ?? "";
}

const FACES: readonly Face[] = [
  { name: "chat completions", isStreamed: false, ask: () => post("/v1/chat/completions", chat) },
  { name: "chat completions, streamed", isStreamed: true, ask: () => post("/v1/chat/completions", { ...chat, stream: true }) },
  { name: "responses", isStreamed: false, ask: () => post("/v1/responses", responses) },
  { name: "responses, streamed", isStreamed: true, ask: () => post("/v1/responses", { ...responses, stream: true }) },
  { name: "messages", isStreamed: false, ask: () => post("/v1/messages", messages) },
  { name: "messages, streamed", isStreamed: true, ask: () => post("/v1/messages", { ...messages, stream: true }) },
  { name: "generateContent", isStreamed: false, ask: () => post(`/v1beta/models/${MODEL}:generateContent`, gemini) },
  { name: "streamGenerateContent", isStreamed: true, ask: () => post(`/v1beta/models/${MODEL}:streamGenerateContent?alt=sse`, gemini) },
  { name: "GraphQL", isStreamed: false, ask },
];

describe("one conversation", () => {
  it("reaches the upstream the same, and costs the same, in the format of every face", async () => {
    const seen = new Map<string, { readonly sent: Loose; readonly row: Loose }>();
    for (const face of FACES) {
      app.upstream.replyNext(
        face.isStreamed
          ? sse(chatChunks(["Take an ", "umbrella."], { usage: USAGE }))
          : json(chatCompletion({ content: "Take an umbrella.", usage: USAGE })),
      );
      const id = await face.ask();
      const request = await app.upstream.nextRequest();
      const row = await waitForUsage(client, (each) => each.request_id === id);
      seen.set(face.name, { sent: comparable(request.json as Loose), row: amountsOf(row) });
    }

    const first = seen.get("chat completions");
    expect(first?.row).toMatchObject({ cost_usd: 0.000996 });
    for (const [name, each] of seen) expect([name, each]).toEqual([name, first]);
  });
});

/** Fields by which the faces may differ: streaming, and a text beside its one part. */
function comparable({ stream: _stream, stream_options: _options, max_tokens, max_completion_tokens, ...body }: Loose): Loose {
  return { ...body, limit: max_tokens ?? max_completion_tokens, messages: (body.messages as Loose[]).map(flattened) };
}

function flattened({ content, ...message }: Loose): Loose {
  const [part, ...others] = Array.isArray(content) ? (content as Loose[]) : [];
  return { ...message, content: part?.type === "text" && others.length === 0 ? part.text : content };
}

function amountsOf(row: Loose): Loose {
  return Object.fromEntries(Object.entries(row).filter(([name]) => /tokens|cost|model|type|status/.test(name)));
}
