/**
 * Prompt agents at work: a real MCP server from npm, an upstream that calls its tools, and the books that a run
 * leaves. docs/spec/agents.md#prompt-agents.
 */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AGENT_MODEL_STEPS_MAX, AGENT_TOOL_CALLS_MAX } from "../../src/services/agents/limits.js";
import { ok, subscribeSse } from "../graphql/client.js";
import { type ChatCompletionInput, StreamChatDocument } from "../operations/generated/graphql.js";
import { type Client, createClient, expectEnvelope } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { changeModel, createMember, deleteModel, type Member, registerModel } from "../support/community-models.js";
import { followNextRequest, readUntil } from "../support/leaving.js";
import { startMcpServer, type TestMcpServer } from "../support/mcp-server.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { errorReply, gated, hang, json, type Reply, sse } from "../support/upstream-replies.js";
import { booksWith, parseEvents, summarize } from "./money.js";

const EVERYTHING = "@modelcontextprotocol/server-everything/dist/server/index.js";
const SUM = "mcp__search__get-sum";
const IMAGE = "mcp__search__get-tiny-image";

let app: TestApp;
let tools: TestMcpServer;
let own: TestMcpServer;
/** What the tool `lookup` answers. */
let lookUp: () => Promise<CallToolResult>;
let member: Member;
let client: Client;
let asked: number;

beforeAll(async () => {
  const { createServer } = (await import(EVERYTHING)) as { createServer(): { server: McpServer } };
  tools = await startMcpServer(() => createServer().server);
  own = await startMcpServer(() => {
    const server = new McpServer({ name: "own", version: "1" });
    server.registerTool("lookup", {}, async () => lookUp());
    return server;
  });
  const models = [
    {
      ...{ id: "acme/hearing", modality: "text", upstream: "acme", upstreamModel: "upstream-hearing", title: "Hearing" },
      ...{ inputModalities: ["text", "audio"], prices: { promptTextPrice: "0", completionTextPrice: "0" } },
    },
    {
      ...{ id: "acme/seeing", modality: "text", upstream: "acme", upstreamModel: "upstream-seeing", title: "Seeing" },
      ...{ inputModalities: ["text", "image"], prices: { promptTextPrice: "0", completionTextPrice: "0" } },
    },
  ];
  app = await createTestApp({ config: { mcpServers: { search: tools.url, ffmpeg: own.url }, upstreamAllowHosts: ["127.0.0.1"] }, models });
});
beforeEach(async () => {
  member = await createMember(app);
  client = createClient(app.baseUrl, member.key);
  asked = app.upstream.requests.length;
});
afterEach(() => app.upstream.replyAlways(null));
afterAll(async () => {
  await app.close();
  await Promise.all([tools.close(), own.close()]);
});

const sum = (a: unknown, b: unknown, id = `call_${a}`) => ({ id, name: SUM, arguments: JSON.stringify({ a, b }) });
const call = (name: string, json = "{}", id = "call_1") => ({ id, name, arguments: json });
const toolChunk = ({ id, name, arguments: text }: ReturnType<typeof call>) =>
  chatChunk({ tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: text } }] });
const calling = (...toolCalls: readonly ReturnType<typeof call>[]): Reply =>
  json(chatCompletion({ content: null, toolCalls, usage: wireUsage(10, 20) }));
const saying = (content: string): Reply => json(chatCompletion({ content }));

/** The agent's id to be called by. */
async function createAgent(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const agent = { name: "helper", title: "Helper", systemPrompt: "You add.", baseModel: "acme/chat", mcpServers: ["search"], ...fields };
  const answer = await client.post("/account/agents", agent);
  expect(answer.status).toBe(200);
  return `community/${member.handle}/${agent.name}`;
}

const chat = (model: string, more: object = {}, key: string = member.key, headers: Readonly<Record<string, string>> = {}) =>
  client.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "What is 2 + 3?" }], ...more }, { key, headers });

async function createKey(terms: object): Promise<{ readonly id: string; readonly key: string }> {
  return (await client.post("/account/keys", { name: "other", ...terms })).json();
}

interface AskedBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly [field: string]: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters: object } }[];
  readonly [field: string]: unknown;
}

/** What the upstream was asked in this test. */
const requests = () => app.upstream.requests.slice(asked).map(({ json: body }) => body as AskedBody);
const payer = () => ({ accountId: member.accountId, apiKeyId: member.keyId, key: member.key });
const contentOf = (answer: { json<Body>(): Body }) =>
  answer.json<{ choices: { message: { content: string }; finish_reason: string }[] }>().choices[0];

describe("a prompt agent", () => {
  it("calls its model, then the tools that the model calls, and answers in the end", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(sum(2, 3), sum(20, 30)), saying("It is 5."));

    const answer = await chat(model);

    expect(answer.json()).toMatchObject({
      object: "chat.completion",
      model,
      choices: [{ index: 0, message: { role: "assistant", content: "It is 5." }, finish_reason: "stop" }],
    });
    const [first, second] = requests();
    expect(first).toMatchObject({
      model: "upstream-chat",
      messages: [
        { role: "system", content: "You add." },
        { role: "user", content: "What is 2 + 3?" },
      ],
    });
    expect(first?.tools?.map((tool) => tool.function.name)).toEqual(expect.arrayContaining([SUM, "mcp__search__echo"]));
    expect(second?.messages.slice(2)).toEqual([
      {
        ...{ role: "assistant", content: null },
        tool_calls: [sum(2, 3), sum(20, 30)].map(({ id, ...called }) => ({ id, type: "function", function: called })),
      },
      { role: "tool", tool_call_id: "call_2", content: "The sum of 2 and 3 is 5." },
      { role: "tool", tool_call_id: "call_20", content: "The sum of 20 and 30 is 50." },
    ]);
  });

  it("costs nothing itself; its caller pays its requests, under their own generations", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(sum(2, 3)), saying("It is 5."));

    const answer = await chat(model);

    const { rows, key } = await booksWith(app, payer(), 3);
    const agent = rows.find((row) => row.model === model);
    const children = rows.filter((row) => row !== agent);
    expect(agent).toMatchObject({
      id: answer.headers.get("x-generation-id"),
      costNanocredits: 0n,
      parentRequestId: null,
      usageSource: "estimated",
    });
    expect(agent?.inputTextTokens).toBeGreaterThan(0);
    expect(agent?.outputTextTokens).toBeGreaterThan(0);
    expect(answer.headers.get("x-cost")).toBe("0");
    expect(answer.headers.get("x-child-cost")).toBe("0.000068");
    expect(children).toHaveLength(2);
    for (const child of children) expect(child).toMatchObject({ model: "acme/chat", parentRequestId: agent?.id, apiKeyId: member.keyId });
    // 10 tokens in at acme/chat's prices, and 20 and 4 out.
    expect(new Set(children.map((child) => child.costNanocredits))).toEqual(new Set([50_000n, 18_000n]));
    expect(key.spent).toBe(68_000n);
  });

  it("streams the text of its model, between tools too, and sends no call on", async () => {
    const model = await createAgent();
    const called = sum(2, 3);
    const piece = (more: object) => chatChunk({ tool_calls: [{ index: 0, ...more }] });
    app.upstream.replyNext(
      sse([
        ...chatChunks(["Let me ", "see."], { finishReason: null, usage: null }),
        piece({ id: called.id, type: "function", function: { name: SUM, arguments: "" } }),
        piece({ function: { arguments: called.arguments.slice(0, 4) } }),
        piece({ function: { arguments: called.arguments.slice(4) } }),
        chatChunk({}, "tool_calls"),
        usageChunk(wireUsage(10, 20)),
      ]),
      sse(chatChunks(["It is ", "5."])),
    );

    const answer = await chat(model, { stream: true });

    expect(summarize(answer.text)).toMatchObject({
      content: "Let me see.\n\nIt is 5.",
      finishReason: "stop",
      isDone: true,
      usage: { cost: 0, child_cost: 0.000064, prompt_tokens: expect.any(Number) },
    });
    expect(answer.text).not.toContain("tool_calls");
    const [first] = parseEvents(answer.text);
    expect(first?.data).toMatchObject({
      model,
      object: "chat.completion.chunk",
      choices: [{ delta: { role: "assistant", content: "Let me " } }],
    });
    expect(requests()[1]?.messages.slice(2)).toMatchObject([
      { role: "assistant", content: "Let me see.", tool_calls: [{ id: called.id, function: { name: SUM, arguments: called.arguments } }] },
      { role: "tool", content: "The sum of 2 and 3 is 5." },
    ]);
    await booksWith(app, payer(), 3);
  });

  it("answers through the Responses format and over GraphQL, too", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(sum(2, 3)), saying("It is 5."), sse(chatChunks(["Six", "."])));

    const response = await client.post("/v1/responses", { model, input: "What is 2 + 3?" });
    const input: ChatCompletionInput = { model, messages: [{ role: "USER", content: "Hi" }] };
    const live = await subscribeSse({ ...app, key: member.key }, StreamChatDocument, { input }).rest();

    expect(response.json()).toMatchObject({
      status: "completed",
      usage: { child_cost: 0.000068 },
      output: [{ content: [{ text: "It is 5." }] }],
    });
    const texts = live.map((answer) => ok(answer).chatCompletion).map((event) => ("content" in event ? event.content : ""));
    expect(texts.join("")).toBe("Six.");
  });

  it("answers a GET, once for each that is the same", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(sum(2, 3)), saying("It is 5."));
    const get = () => client.get(`/text/${encodeURIComponent(`2 + 3 of ${member.handle}`)}?model=${encodeURIComponent(model)}`);

    const [first, again] = [await get(), await get()];

    expect([first.text, again.text]).toEqual(["It is 5.", "It is 5."]);
    expect([first, again].map(({ headers }) => [headers.get("x-cache"), headers.get("x-child-cost")])).toEqual([
      ["MISS", "0.000068"],
      ["HIT", null],
    ]);
    expect(requests()).toHaveLength(2);
  });

  it("calls no model again for a request with the same Idempotency-Key", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(sum(2, 3)), saying("It is 5."), calling(sum(2, 3)), errorReply(500));
    const ask = (key: string) =>
      client.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hi" }] }, { headers: { "Idempotency-Key": key } });

    const [first, again] = [await ask("one"), await ask("one")];
    const [failed, still] = [await ask("two"), await ask("two")];

    expect(again.headers.get("x-idempotent-replay")).toBe("true");
    expect(again.text).toBe(first.text);
    // What the failed run had asked was paid for.
    expectEnvelope(failed, 502, "UPSTREAM_ERROR");
    expect(still.headers.get("x-idempotent-replay")).toBe("true");
    expect(still.status).toBe(502);
    expect(requests()).toHaveLength(4);
    await booksWith(app, payer(), 4);
  });

  it("passes its request on, except for the fields that it sets", async () => {
    const model = await createAgent({ mcpServers: [] });
    const own = { type: "function", function: { name: "own", parameters: { type: "object" } } };

    const answer = await chat(model, { temperature: 0.5, max_tokens: 7, tools: [own], tool_choice: "required", n: 2, user: "someone" });

    const [body] = requests();
    expect(body).toMatchObject({ temperature: 0.5, max_tokens: 7, user: "someone" });
    expect(Object.keys(body ?? {})).not.toEqual(expect.arrayContaining(["tools"]));
    expect(body).not.toHaveProperty("tool_choice");
    expect(body).not.toHaveProperty("n");
    expect(answer.headers.get("x-warnings") ?? "").toContain("tools");
  });
});

describe("the gateway's own tools", () => {
  it("generate for the agent's caller, under the agent's generation", async () => {
    const model = await createAgent({ mcpServers: ["sluice"] });
    const asked = { model: "sandbox/text-paid", prompt: "[tokens in=1000 out=1] Hi" };
    app.upstream.replyNext(calling(call("mcp__sluice__generate_text", JSON.stringify(asked))), saying("It says hi."));

    const answer = await chat(model);

    expect(contentOf(answer)?.message.content).toBe("It says hi.");
    expect(requests()[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: expect.stringContaining("sandbox") });
    const { rows } = await booksWith(app, payer(), 4);
    const [agent] = rows.filter((row) => row.model === model);
    const tool = rows.find((row) => row.model === "sandbox/text-paid");
    expect(tool).toMatchObject({ parentRequestId: agent?.id, inputTextTokens: 1000 });
    expect(tool?.costNanocredits).toBeGreaterThan(0n);
  });

  it("call no agent", async () => {
    const model = await createAgent({ mcpServers: ["sluice"] });
    app.upstream.replyNext(calling(call("mcp__sluice__generate_text", JSON.stringify({ model, prompt: "Hi" }))), saying("No."));

    await chat(model);

    expect(requests()[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: expect.stringMatching(/^The tool failed: .*agents/is) });
    await booksWith(app, payer(), 3);
  });
});

describe("a text from its caller", () => {
  it("is checked as the agent requires, before its model is called", async () => {
    const model = await createAgent({ mcpServers: [], requiredSafetyFeatures: ["privacy"] });
    const messages = [{ role: "user", content: "Write to someone@example.com" }];

    const answer = await client.post("/v1/chat/completions", { model, messages });

    expect(answer.headers.get("x-safety-applied")).toBe("privacy");
    const [, written] = requests()[0]?.messages ?? [];
    expect(written?.content).toMatch(/^Write to \S/);
    expect(written?.content).not.toContain("someone@example.com");
  });

  it("is checked with all input of its model: the agent's prompt, and answers of its tools", async () => {
    const model = await createAgent({ systemPrompt: "You answer for boss@example.com.", requiredSafetyFeatures: ["privacy"] });
    app.upstream.replyNext(calling(call("mcp__search__echo", '{"message":"ann@example.com"}')), saying("Done."));

    const answer = await chat(model);

    expect(answer.status).toBe(200);
    const [first, second] = requests();
    expect(first?.messages[0]?.content).toBe("You answer for [REDACTED_EMAIL].");
    expect(JSON.stringify(second?.messages)).not.toContain("@example.com");
    expect(second?.messages.at(-1)).toMatchObject({ role: "tool", content: "Echo: [REDACTED_EMAIL]" });
  });
});

describe("JSON", () => {
  it.each([false, true])("is the whole answer where it was requested, streamed: %s", async (stream) => {
    const model = await createAgent();
    const [called, json_] = [sum(2, 3), '{"sum":5}'];
    const first = chatCompletion({ content: "Let me see.", toolCalls: [called] });
    const firstChunks = [
      ...chatChunks(["Let me see."], { finishReason: null, usage: null }),
      toolChunk(called),
      chatChunk({}, "tool_calls"),
    ];
    app.upstream.replyNext(...(stream ? [sse(firstChunks), sse(chatChunks(['{"sum"', ":5}"]))] : [json(first), saying(json_)]));

    const answer = await chat(model, { stream, response_format: { type: "json_object" } });

    expect(stream ? summarize(answer.text).content : contentOf(answer)?.message.content).toBe(json_);
    expect(requests()[1]?.messages[2]).toMatchObject({ role: "assistant", content: "Let me see." });
  });
});

describe("a tool call of its model", () => {
  it.each([
    ["a tool that there is not", call("mcp__search__none"), "The tool failed: there is no tool mcp__search__none."],
    ["a tool with no JSON", call(SUM, "{"), "The tool failed: its arguments must be a JSON object."],
    ["a tool with a list", call(SUM, "[1]"), "The tool failed: its arguments must be a JSON object."],
    ["a tool with wrong arguments", sum("two", 3), expect.stringMatching(/^The tool failed: .*get-sum/s)],
  ])("that is wrong, such as %s, is answered with the error", async (_what, wrong, said) => {
    const model = await createAgent();
    app.upstream.replyNext(calling(wrong), saying("Sorry."));

    const answer = await chat(model);

    expect(contentOf(answer)?.message.content).toBe("Sorry.");
    expect(requests()[1]?.messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: wrong.id, content: said });
  });

  it("with a result in two channels answers both", async () => {
    const rows = { rows: [{ city: "Oslo", number: 4711 }] };
    const link = { type: "resource_link" as const, uri: "file:///rows.csv", name: "rows.csv" };
    const model = await createAgent({ mcpServers: ["ffmpeg"] });
    lookUp = async () => ({ content: [{ type: "text", text: "1 row found, see structured content." }, link], structuredContent: rows });
    app.upstream.replyNext(calling(call("mcp__ffmpeg__lookup")), saying("4711."));

    await chat(model);

    const said = `1 row found, see structured content.\n\nrows.csv: file:///rows.csv\n\n${JSON.stringify(rows)}`;
    expect(requests()[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: said });
  });

  it("with a sound is heard by a model that hears", async () => {
    const model = await createAgent({ baseModel: "acme/hearing", mcpServers: ["ffmpeg"] });
    const data = Buffer.from("RIFF").toString("base64");
    lookUp = async () => ({ content: [{ type: "audio", data, mimeType: "audio/wav" }] });
    app.upstream.replyNext(calling(call("mcp__ffmpeg__lookup")), saying("A dog."));

    await chat(model);

    expect(requests()[1]?.messages.slice(-2)).toMatchObject([
      { role: "tool", content: "(sound, audio/wav: it follows)" },
      { role: "user", content: [{ type: "text" }, { type: "input_audio", input_audio: { data, format: "wav" } }] },
    ]);
  });

  it("with a picture is shown to a model that sees", async () => {
    const seeing = await createAgent({ name: "seeing", baseModel: "acme/seeing" });
    const blind = await createAgent({ name: "blind", baseModel: "acme/free" });
    app.upstream.replyNext(calling(call(IMAGE)), saying("A logo."), calling(call(IMAGE)), saying("No idea."));

    await chat(seeing);
    await chat(blind);

    const [, seen, , unseen] = requests();
    expect(seen?.messages.slice(-2)).toMatchObject([
      { role: "tool", content: expect.stringContaining("a picture, image/png: it follows") },
      {
        role: "user",
        content: [{ type: "text" }, { type: "image_url", image_url: { url: expect.stringMatching(/^data:image\/png;base64,iVBOR/) } }],
      },
    ]);
    expect(unseen?.messages.at(-1)).toMatchObject({ role: "tool", content: expect.stringContaining("which cannot be shown") });
  });

  it(`ends after ${AGENT_MODEL_STEPS_MAX} steps, the last of which may call nothing`, async () => {
    const model = await createAgent();
    app.upstream.replyAlways(calling(sum(1, 1)));

    const answer = await chat(model);

    expect(contentOf(answer)).toMatchObject({ message: { content: "" }, finish_reason: "length" });
    const choices = requests().map(({ tool_choice }) => tool_choice);
    expect(choices).toEqual([...Array(AGENT_MODEL_STEPS_MAX - 1).fill(undefined), "none"]);
    await booksWith(app, payer(), AGENT_MODEL_STEPS_MAX + 1);
  });

  it(`is called ${AGENT_TOOL_CALLS_MAX} times and no more`, async () => {
    const model = await createAgent();
    const before = tools.noted.filter(({ method }) => method === "tools/call").length;
    const calls = Array.from({ length: AGENT_TOOL_CALLS_MAX + 1 }, (_, index) => sum(index, 1));
    app.upstream.replyNext(calling(...calls), saying("Enough."));

    const answer = await chat(model);

    expect(contentOf(answer)?.message.content).toBe("Enough.");
    expect(tools.noted.filter(({ method }) => method === "tools/call")).toHaveLength(before + AGENT_TOOL_CALLS_MAX);
    const [, second] = requests();
    expect(second?.tool_choice).toBe("none");
    expect(second?.messages.at(-2)?.content).toBe("The sum of 15 and 1 is 16.");
    expect(second?.messages.at(-1)?.content).toContain("at most 16 tools");
  });
});

describe("an interrupted run", () => {
  it("without one of its servers calls no model: 503", async () => {
    const model = await createAgent({ mcpServers: ["search", "ada"] });

    for (const stream of [false, true]) expectEnvelope(await chat(model, { stream }), 503, "SERVICE_UNAVAILABLE");

    expect(requests()).toEqual([]);
    await booksWith(app, payer(), 0);
  });

  it("fails as its model does", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(sum(2, 3)), errorReply(500), errorReply(400, "Too long."));

    expectEnvelope(await chat(model), 502, "UPSTREAM_ERROR");
    const refused = await chat(model, { stream: true });
    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.text).toContain("Too long.");
    // The earlier requests are paid, under a generation without a charge of its own.
    const { rows } = await booksWith(app, payer(), 1);
    expect(rows[0]).toMatchObject({ model: "acme/chat", parentRequestId: expect.any(String) });
  });

  it("ends when its caller leaves, and so does its model: streamed at once, whole when it has answered", async () => {
    const model = await createAgent();
    for (const stream of [false, true]) {
      const whole = gated(chatCompletion({ content: "Five." }));
      const caller = followNextRequest(app.baseUrl);
      app.upstream.replyNext(calling(sum(2, 3)), stream ? hang() : whole.reply);
      const leaving = new AbortController();
      const left = fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { Authorization: `Bearer ${member.key}`, "Content-Type": "application/json" },
        body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "Hi" }] }),
        signal: leaving.signal,
      }).catch((error: unknown) => error);
      await expect.poll(() => requests().length).toBe(stream ? 4 : 2);
      leaving.abort();
      await left;
      await caller.hasLeft();
      whole.open();
      if (stream) await app.upstream.requests.at(-1)?.closedByClient;
    }
    const { rows } = await booksWith(app, payer(), 5);
    expect(rows.map(({ model: name, status }) => [name, status]).sort()).toEqual([
      ["acme/chat", "cancelled"],
      ["acme/chat", "ok"],
      ["acme/chat", "ok"],
      [model, "cancelled"],
      [model, "cancelled"],
    ]);
  });

  it("is paid as far as its model came when its caller leaves a stream", async () => {
    const model = await createAgent({ mcpServers: [] });
    app.upstream.replyNext(sse(chatChunks(["Once ", "upon "], { finishReason: null, usage: null }), { end: "hang" }));
    const leaving = new AbortController();
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${member.key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Tell me." }] }),
      signal: leaving.signal,
    });
    await readUntil(response, "upon ");

    leaving.abort();
    await app.upstream.requests.at(-1)?.closedByClient;

    const { rows } = await booksWith(app, payer(), 2);
    const agent = rows.find((row) => row.model === model);
    const child = rows.find((row) => row !== agent);
    expect(agent).toMatchObject({ status: "cancelled", costNanocredits: 0n, usageSource: "partial" });
    expect(child).toMatchObject({ model: "acme/chat", status: "cancelled", usageSource: "partial", parentRequestId: agent?.id });
    expect(child?.outputTextTokens).toBeGreaterThan(0);
    expect(child?.costNanocredits).toBeGreaterThan(0n);
  });

  it("does not wait for a tool when its caller leaves", async () => {
    const model = await createAgent();
    app.upstream.replyNext(calling(call("mcp__search__trigger-long-running-operation", '{"duration":2,"steps":1}')));
    const called = () => tools.noted.filter(({ tool }) => tool === "trigger-long-running-operation").length;
    const before = called();
    const leaving = new AbortController();
    const left = fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${member.key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }),
      signal: leaving.signal,
    }).catch((error: unknown) => error);
    await expect.poll(called).toBe(before + 1);

    leaving.abort();
    await left;

    await expect.poll(() => tools.noted.some(({ method }) => method === "notifications/cancelled")).toBe(true);
    await booksWith(app, payer(), 1);
  });

  it("stops where its key's budget ends: a status before the first byte, an event after it", async () => {
    member = await createMember(app, { credits: 100 });
    client = createClient(app.baseUrl, member.key);
    const model = await createAgent({ baseModel: "acme/dear", mcpServers: ["search"] });
    const budgeted = await createKey({ creditBudget: 60 });
    const books = (rows: number) => booksWith(app, { ...payer(), apiKeyId: budgeted.id }, rows);
    // A credit for each token of the answer.
    const step = chatCompletion({ content: null, toolCalls: [sum(2, 3)], usage: wireUsage(10, 40) });
    app.upstream.replyNext(json(step));

    // All of the budget is the run's.
    const unbounded = { "X-Max-Cost": "60" };
    const whole = await chat(model, { max_tokens: 40 }, budgeted.key, unbounded);
    expectEnvelope(whole, 402, "KEY_BUDGET_EXHAUSTED");
    const { key, rows } = await books(1);
    expect(key.spent).toBe(40_000_000_000n);
    expect(rows[0]?.parentRequestId).not.toBeNull();

    app.upstream.replyNext(
      sse([
        chatChunk({ role: "assistant", content: "Let me see." }),
        toolChunk(sum(1, 1)),
        chatChunk({}, "tool_calls"),
        usageChunk(wireUsage(10, 20)),
      ]),
    );
    const streamed = await chat(model, { stream: true, max_tokens: 20 }, budgeted.key, unbounded);
    expect(summarize(streamed.text)).toMatchObject({ content: "Let me see.", isDone: false, error: { code: "KEY_BUDGET_EXHAUSTED" } });
    expect((await books(3)).key.spent).toBe(60_000_000_000n);
  });

  it("calls no base model that has become an agent or private", async () => {
    const base = await registerModel(app, member, { name: "base", visibility: "public" });
    const model = await createAgent({ baseModel: base.modelId, mcpServers: [], visibility: "public" });
    const stranger = createClient(app.baseUrl, (await createMember(app)).key);
    const ask = () => stranger.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hi" }] });

    expect((await ask()).status).toBe(200);
    await changeModel(app, member, base.id, { visibility: "private" });
    const hidden = await ask();
    expectEnvelope(hidden, 503, "SERVICE_UNAVAILABLE");
    expect(hidden.text).not.toContain(base.modelId);
    await deleteModel(app, member, base.id);
    await createAgent({ name: "base", baseModel: "acme/free", mcpServers: [], visibility: "public" });
    expectEnvelope(await ask(), 503, "SERVICE_UNAVAILABLE");
  });

  it("calls no model that its caller's key may not use", async () => {
    const model = await createAgent({ mcpServers: [] });
    const { key } = await createKey({ allowedModels: [model] });

    const answer = await chat(model, {}, key);

    expectEnvelope(answer, 403, "FORBIDDEN");
    expect(answer.text).toContain("acme/chat");
  });
});

describe("a changed agent", () => {
  it("is called as it is now", async () => {
    const model = await createAgent({ mcpServers: [] });
    await chat(model);
    const { data } = (await client.get("/account/agents")).json<{ data: { id: string }[] }>();

    await client.request("PATCH", `/account/agents/${data[0]?.id}`, { body: { systemPrompt: "You multiply.", baseModel: "acme/free" } });
    await chat(model);

    expect(requests().map(({ model: name, messages }) => [name, messages[0]?.content])).toEqual([
      ["upstream-chat", "You add."],
      ["upstream-free", "You multiply."],
    ]);
  });
});
