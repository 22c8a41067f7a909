/** What coding agents send to POST /v1/responses unasked: tools and items that few models can have, and the wish to read a summary. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { json, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, expectEnvelope } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterAll(() => app.close());

type Loose = Record<string, unknown>;

const shell = { type: "function" as const, name: "shell", parameters: { type: "object" }, strict: false };
const patch = {
  type: "custom" as const,
  name: "apply_patch",
  description: "Changes files.",
  format: { type: "grammar" as const, syntax: "lark" as const, definition: "start: LINE+" },
};
/** Each type of OpenAI's format beside functions and custom tools, a dated one, and an unknown one. */
const FOREIGN = [
  "web_search",
  "web_search_preview_2025_03_11",
  "file_search",
  "code_interpreter",
  "image_generation",
  "mcp",
  "computer_use_preview",
  "local_shell",
  "shell",
  "apply_patch",
  "tool_search",
  "teleport",
];

function ask(body: Loose): Promise<Answer> {
  return client.post("/v1/responses", { model: "acme/chat", input: "Go", ...body });
}

function lastBody(): Loose {
  return app.upstream.requests.at(-1)?.json as Loose;
}

function patchCall(given: string) {
  return { id: "call_7", type: "function", function: { name: "apply_patch", arguments: given } };
}

describe("tools that a model cannot have", () => {
  it("are left out, each named in X-Warnings with why, and reach no upstream", async () => {
    const tools = [shell, ...FOREIGN.map((type) => ({ type, name: "x", tools: [], server_label: "x" }))];
    const answer = await ask({ tools, tool_choice: "auto", parallel_tool_calls: false, client_metadata: { a: "b" }, include: ["a"] });

    expect(answer.status).toBe(200);
    const warnings = answer.headers.get("x-warnings") ?? "";
    for (const type of FOREIGN) expect(warnings).toContain(type);
    expect(warnings).toMatch(
      /web_search.* left out: a vendor runs and bills it.*; tools: .*local_shell.*; tools: tool_search.*; tools: teleport/,
    );
    expect(answer.json<Loose>().tools).toEqual([shell]);
    expect(lastBody()).toMatchObject({
      tools: [{ type: "function", function: { name: "shell" } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
    });
    expect(JSON.stringify(lastBody())).not.toMatch(/web_search|tool_search|client_metadata/);
  });

  it("leave an ordinary chat where no other tool is there", async () => {
    const answer = await ask({ tools: [{ type: "web_search" }], tool_choice: "auto", parallel_tool_calls: true });

    expect(answer.json<Loose>()).toMatchObject({ status: "completed", tools: [] });
    for (const field of ["tools", "tool_choice", "parallel_tool_calls"]) expect(lastBody()).not.toHaveProperty(field);
  });

  it("are named at the head of a stream, which the official client reads", async () => {
    app.upstream.replyNext(sse(chatChunks(["One", " two"], { usage: wireUsage(10, 2) })));
    const stream = openai.responses.stream({ model: "acme/chat", input: "Count", tools: [{ type: "web_search" }, shell] });
    const final = await stream.finalResponse();

    expect(final.output_text).toBe("One two");
    const streamed = await ask({ tools: [{ type: "web_search" }], stream: true });
    expect(streamed.headers.get("x-warnings")).toMatch(/^tools: web_search left out: /);
  });

  it.each<[string, Loose]>([
    ["a forced type", { tools: [shell, { type: "web_search" }], tool_choice: { type: "web_search" } }],
    ["a forced server", { tools: [{ type: "mcp", server_label: "a" }, shell], tool_choice: { type: "mcp", server_label: "a" } }],
    ["a function that is not there", { tools: [shell], tool_choice: { type: "function", name: "other" } }],
    [
      "any tool where none is left",
      { tools: [{ type: "namespace", name: "a", tools: [{ type: "web_search" }] }], tool_choice: "required" },
    ],
    ["any tool where there is none", { tool_choice: "required" }],
    [
      "allowed tools that are not there",
      { tools: [shell, { type: "web_search" }], tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "web_search" }] } },
    ],
  ])("cannot be insisted on: %s", async (_name, body) => {
    const asked = app.upstream.requests.length;
    const answer = await ask(body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: Loose }>().error.param).toBe("tool_choice");
    expect(app.upstream.requests.length).toBe(asked);
  });

  it("are refused with the place of an invalid tool", async () => {
    const answer = await ask({ tools: [shell, { type: "function" }] });

    expect([answer.status, answer.json<{ error: Loose }>().error.param]).toEqual([400, "tools.1.name"]);
  });

  it("are offered as far as they are allowed", async () => {
    const other = { ...shell, name: "other" };
    await ask({
      tools: [shell, other],
      tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "other" }] },
    });

    expect(lastBody()).toMatchObject({ tools: [{ function: { name: "other" } }], tool_choice: "auto" });
    expect(lastBody().tools).toHaveLength(1);
  });
});

describe("a tool of type custom", () => {
  it("is offered as a function of one text, and its calls are of type custom", async () => {
    const message = { role: "assistant", content: null, tool_calls: [patchCall('{"input":"*** Begin\\n"}')] };
    app.upstream.replyNext(json({ ...chatCompletion({}), choices: [{ index: 0, message, finish_reason: "tool_calls" }] }));
    const response = await openai.responses.create({
      model: "acme/chat",
      input: "Go",
      tools: [patch],
      tool_choice: { type: "custom", name: "apply_patch" },
    });

    expect(response.output).toEqual([
      expect.objectContaining({ type: "custom_tool_call", call_id: "call_7", name: "apply_patch", input: "*** Begin\n" }),
    ]);
    expect(lastBody()).toMatchObject({
      tools: [
        {
          type: "function",
          function: { name: "apply_patch", description: expect.stringContaining("start: LINE+"), parameters: { required: ["input"] } },
        },
      ],
      tool_choice: { type: "function", function: { name: "apply_patch" } },
    });
  });

  it("is called in a stream with all of its input at once", async () => {
    const piece = (tool: object) => chatChunk({ tool_calls: [{ index: 0, ...tool }] });
    const pieces = [piece(patchCall("")), piece({ function: { arguments: '{"inp' } }), piece({ function: { arguments: 'ut":"a\\"b"}' } })];
    app.upstream.replyNext(sse([...pieces, chatChunk({}, "tool_calls"), usageChunk(wireUsage(5, 5))]));
    const stream = openai.responses.stream({ model: "acme/chat", input: "Go", tools: [patch] });
    const types: string[] = [];
    stream.on("event", ({ type }) => types.push(type));
    const { output } = await stream.finalResponse();

    expect(output).toEqual([expect.objectContaining({ type: "custom_tool_call", call_id: "call_7", input: 'a"b' })]);
    expect(types.slice(2, -1)).toEqual([
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
    ]);
  });
});

describe("the next turn", () => {
  it("accepts every item of the last answer", async () => {
    const input = [
      { role: "user", content: "Fix it" },
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Look first." }], encrypted_content: "gAAAA" },
      { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
      { type: "custom_tool_call", id: "ctc_1", call_id: "call_1", name: "apply_patch", input: "*** Begin" },
      { type: "custom_tool_call_output", call_id: "call_1", output: "ok" },
      { type: "local_shell_call", id: "ls_1", call_id: "call_2", action: { type: "exec", command: ["ls"] } },
      { type: "function_call_output", call_id: "call_2", output: "a b" },
      { type: "reasoning", id: "rs_2", summary: [], encrypted_content: "gAAAA" },
      { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "Done.", annotations: [] }] },
      { role: "user", content: "Thanks" },
    ];
    const answer = await ask({ input });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-warnings")).toMatch(/^input: items of type web_search_call \(1\), local_shell_call \(1\) were left out/);
    expect(lastBody().messages).toEqual([
      { role: "user", content: "Fix it" },
      {
        role: "assistant",
        content: null,
        reasoning_content: "Look first.",
        tool_calls: [{ id: "call_1", type: "function", function: { name: "apply_patch", arguments: '{"input":"*** Begin"}' } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "ok" },
      { role: "assistant", content: [{ type: "text", text: "Done." }] },
      { role: "user", content: "Thanks" },
    ]);
  });

  it.each<[string, Loose, string, RegExp]>([
    ["holds nothing that can be told", { input: [{ type: "computer_call", call_id: "a" }] }, "input", /at least one message/],
    [
      "names what is kept elsewhere",
      {
        input: [
          { role: "user", content: "a" },
          { type: "item_reference", id: "rs_1" },
        ],
      },
      "input.1.type",
      /send the item itself/,
    ],
    ["goes on from a response", { previous_response_id: "resp_1" }, "previous_response_id", /Send the whole conversation in input/],
    ["belongs to a conversation", { conversation: "conv_1" }, "conversation", /Send the whole conversation in input/],
    ["is for later", { background: true }, "background", /stream: true/],
  ])("is refused when it %s, with the remedy", async (_name, body, param, message) => {
    const answer = await ask(body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: Loose }>().error).toMatchObject({ param, message: expect.stringMatching(message) });
  });
});

describe("a summary of the thoughts", () => {
  const message = { role: "assistant", content: "42.", reasoning_content: "Six times seven." };

  it.each(["auto", "concise", "detailed"] as const)("is answered where %s is requested, and not otherwise", async (summary) => {
    app.upstream.replyAlways(json({ ...chatCompletion({}), choices: [{ index: 0, message, finish_reason: "stop" }] }));
    const asked = await openai.responses.create({ model: "acme/chat", input: "6 x 7?", reasoning: { effort: "low", summary } });
    const plain = await openai.responses.create({ model: "acme/chat", input: "6 x 7?", reasoning: { effort: "low" } });
    app.upstream.replyAlways(null);

    expect(asked.reasoning).toEqual({ effort: "low", summary });
    expect(asked.output[0]).toMatchObject({
      type: "reasoning",
      summary: [{ type: "summary_text", text: "Six times seven." }],
      content: [],
    });
    expect(plain.output[0]).toMatchObject({ summary: [], content: [{ type: "reasoning_text", text: "Six times seven." }] });
    expect(lastBody()).not.toHaveProperty("reasoning");
  });

  it("is streamed as it is thought", async () => {
    const thoughts = [chatChunk({ role: "assistant", reasoning: "Six times" }), chatChunk({ reasoning: " seven." })];
    app.upstream.replyNext(sse([...thoughts, ...chatChunks(["42."])]));
    const stream = openai.responses.stream({ model: "acme/chat", input: "6 x 7?", reasoning: { summary: "auto" } });
    const events: Loose[] = [];
    stream.on("event", (event) => events.push(event as unknown as Loose));
    const { output } = await stream.finalResponse();

    expect(output[0]).toMatchObject({ type: "reasoning", summary: [{ type: "summary_text", text: "Six times seven." }] });
    expect(events.slice(2, 9)).toMatchObject([
      { type: "response.output_item.added", item: { type: "reasoning", summary: [] } },
      { type: "response.reasoning_summary_part.added", summary_index: 0, part: { type: "summary_text", text: "" } },
      { type: "response.reasoning_summary_text.delta", summary_index: 0, delta: "Six times" },
      { type: "response.reasoning_summary_text.delta", delta: " seven." },
      { type: "response.reasoning_summary_text.done", text: "Six times seven." },
      { type: "response.reasoning_summary_part.done", part: { type: "summary_text", text: "Six times seven." } },
      { type: "response.output_item.done", item: { summary: [{ text: "Six times seven." }] } },
    ]);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
  });
});
