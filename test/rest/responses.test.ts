/** POST /v1/responses, with the official client and by hand. */
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["example.com"] } });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterAll(() => app.close());

const weather = {
  type: "function" as const,
  name: "weather",
  description: "Tells the weather.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
  strict: true,
};
const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } };

async function lastBody(): Promise<Record<string, unknown>> {
  return app.upstream.requests.at(-1)?.json as Record<string, unknown>;
}

describe("POST /v1/responses", () => {
  it.each([
    ["Moonshot", { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050, cached_tokens: 400 }, 400, 0],
    ["Anthropic", { input_tokens: 600, output_tokens: 50, cache_read_input_tokens: 400 }, 400, 0],
    ["Gemini, which does not name its reasoning", { prompt_tokens: 1000, completion_tokens: 2, total_tokens: 1050 }, 0, 48],
  ])("returns the usage that was charged, whole and streamed, in every dialect: %s", async (_, reported, cached, reasoning) => {
    const completion = { ...chatCompletion({ content: "Hi." }), usage: reported };
    const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: reported };
    app.upstream.replyNext(json(completion), sse([...chatChunks(["Hi."], { usage: null }), chunk]));

    const whole = await openai.responses.create({ model: "acme/chat", input: "Hello", max_output_tokens: 100 });
    let streamed: OpenAI.Responses.ResponseUsage | undefined;
    for await (const event of await openai.responses.create({ model: "acme/chat", input: "Hello", max_output_tokens: 100, stream: true })) {
      if (event.type === "response.completed") streamed = event.response.usage;
    }

    expect(whole.usage).toMatchObject({
      input_tokens: 1000,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: 1050,
    });
    expect(streamed).toEqual(whole.usage);
  });

  it("answers the official client with the text, its usage and its cost", async () => {
    const usage = wireUsage(1000, 50, {
      prompt_tokens_details: { cached_tokens: 400 },
      completion_tokens_details: { reasoning_tokens: 48 },
    });
    app.upstream.replyNext(json(chatCompletion({ content: "Hi.", usage })));

    const { data, response } = await openai.responses
      .create({ model: "acme/chat", instructions: "Be brief.", input: "Hello", max_output_tokens: 50, metadata: { trace: "7" } })
      .withResponse();

    expect(data).toMatchObject({
      object: "response",
      status: "completed",
      model: "acme/chat",
      output_text: "Hi.",
      output: [
        { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Hi.", annotations: [] }] },
      ],
      usage: {
        input_tokens: 1000,
        input_tokens_details: { cached_tokens: 400 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 48 },
        total_tokens: 1050,
      },
      metadata: { trace: "7" },
      store: false,
      error: null,
    });
    expect(response.headers.get("x-cost")).toBe("0.000996");
    expect(data.id).toBe(`resp_${response.headers.get("x-generation-id")?.replaceAll("-", "")}`);
    expect(await lastBody()).toMatchObject({
      model: "upstream-chat",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
      max_completion_tokens: 50,
    });
    expect(await lastBody()).not.toHaveProperty("metadata");
    const row = await waitForUsage(client, ({ request_id }) => request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({ type: "generate.text", cost_usd: 0.000996 });
  });

  it("sends a whole conversation with pictures, calls and their results as one chat", async () => {
    await openai.responses.create({
      model: "acme/chat",
      input: [
        { role: "developer", content: "Help." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
          ],
        },
        { type: "message", role: "assistant", content: "Let me see." },
        { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" },
        { type: "function_call", call_id: "call_2", name: "weather", arguments: '{"city":"Rome"}' },
        { type: "function_call_output", call_id: "call_1", output: "rain" },
        { type: "function_call_output", call_id: "call_2", output: "sun" },
      ],
      tools: [weather],
      tool_choice: { type: "function", name: "weather" },
      text: { format: { type: "json_schema", name: "out", schema: { type: "object" }, strict: true } },
      reasoning: { effort: "low" },
    });

    expect(await lastBody()).toMatchObject({
      messages: [
        { role: "system", content: "Help." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
          ],
        },
        {
          role: "assistant",
          content: "Let me see.",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } },
            { id: "call_2", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "rain" },
        { role: "tool", tool_call_id: "call_2", content: "sun" },
      ],
      tools: [{ type: "function", function: { name: "weather", description: "Tells the weather.", strict: true } }],
      tool_choice: { type: "function", function: { name: "weather" } },
      response_format: { type: "json_schema", json_schema: { name: "out", schema: { type: "object" }, strict: true } },
      reasoning_effort: "low",
    });
  });

  it("answers calls and thoughts as separate items, and states why an answer is incomplete", async () => {
    const message = { role: "assistant", content: "Look:", reasoning_content: "Hm.", tool_calls: [call] };
    app.upstream.replyNext(json({ ...chatCompletion({}), choices: [{ index: 0, message, finish_reason: "length" }] }));

    const response = await openai.responses.create({ model: "acme/chat", input: "Weather?", tools: [weather] });

    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [
        { type: "reasoning", content: [{ type: "reasoning_text", text: "Hm." }] },
        { type: "message", content: [{ type: "output_text", text: "Look:" }] },
        { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' },
      ],
    });
  });

  it("streams events that the official client puts together again", async () => {
    app.upstream.replyNext(sse(chatChunks(["One", " two", " three"], { usage: wireUsage(10, 3) })));
    const deltas: string[] = [];
    const numbers: number[] = [];

    const stream = openai.responses.stream({ model: "acme/chat", input: "Count" });
    stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
    stream.on("event", ({ sequence_number }) => numbers.push(sequence_number));
    const final = await stream.finalResponse();

    expect(deltas).toEqual(["One", " two", " three"]);
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(final).toMatchObject({
      status: "completed",
      output_text: "One two three",
      usage: { input_tokens: 10, output_tokens: 3, cost: 0.000016 },
    });
  });

  it("streams the arguments of a call piece by piece", async () => {
    const piece = (tool: object, finish: string | null = null) => ({
      id: "c",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...tool }] }, finish_reason: finish }],
    });
    const chunks = [
      piece({ id: "call_9", type: "function", function: { name: "weather", arguments: "" } }),
      piece({ function: { arguments: '{"city":' } }),
      piece({ function: { arguments: '"Oslo"}' } }),
      { ...piece({}), choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }], usage: wireUsage(5, 5) },
    ];
    app.upstream.replyNext(sse(chunks));

    const answer = await client.post("/v1/responses", { model: "acme/chat", input: "Weather?", tools: [weather], stream: true });
    const events = answer.text
      .split("\n\n")
      .filter(Boolean)
      .map((event) => /^event: (\S+)\ndata: (.*)$/s.exec(event));

    expect(events.map((event) => event?.[1])).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const last = JSON.parse(events.at(-1)?.[2] ?? "");
    expect(last.response.output).toEqual([
      expect.objectContaining({
        type: "function_call",
        call_id: "call_9",
        name: "weather",
        arguments: '{"city":"Oslo"}',
        status: "completed",
      }),
    ]);
  });

  it("reports a failure in the middle as an error event, and then as a failed response", async () => {
    app.upstream.replyNext(sse([...chatChunks(["Half"]).slice(0, 2)], { end: "cut" }));

    const answer = await client.post("/v1/responses", { model: "acme/chat", input: "Go", stream: true });
    const [error, failed] = answer.text.trim().split("\n\n").slice(-2);
    const dataOf = (event = "") => JSON.parse(event.replace(/^event: .*\ndata: /, ""));

    expect(error).toMatch(/^event: error\n/);
    expect(dataOf(error)).toMatchObject({ type: "error", code: "UPSTREAM_ERROR", error: { code: "UPSTREAM_ERROR" } });
    expect(failed).toMatch(/^event: response\.failed\n/);
    expect(dataOf(failed)).toMatchObject({
      sequence_number: dataOf(error).sequence_number + 1,
      response: { status: "failed", error: { code: "server_error" } },
    });
    expect(answer.text).not.toContain("response.completed");
  });

  it("answers an upstream's failure before the stream begins with its status", async () => {
    app.upstream.replyNext(errorReply(500));

    await expect(openai.responses.create({ model: "acme/chat", input: "Go", stream: true })).rejects.toThrow(APIError);
  });

  it.each([
    ["a missing input", {}, "input"],
    ["an empty list of items", { input: [] }, "input"],
    [
      "a file that is kept elsewhere",
      { input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] },
      "input.0.content.0.file_data",
    ],
    ["a temperature past the bound", { input: "a", temperature: 2.1 }, "temperature"],
    ["no output tokens", { input: "a", max_output_tokens: 0 }, "max_output_tokens"],
  ])("refuses %s", async (_name, body, param) => {
    const answer = await client.post("/v1/responses", { model: "acme/chat", ...body });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("passes unknown fields on", async () => {
    await client.post("/v1/responses", { model: "acme/chat", input: "a", vendor_knob: 7 });

    expect(await lastBody()).toMatchObject({ vendor_knob: 7 });
  });
});
