/** The gateway as an MCP server, asked by the official SDK's client over a real port. The media host has an address of its own. */
import { randomUUID } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult, Progress } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LoopbackClient } from "../../src/services/mcp/loopback-client.js";
import { McpServers } from "../../src/services/mcp/servers.js";
import { expectNothingHeld } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { gated, sse } from "../support/upstream-replies.js";
import { createClient, createKey, expectEnvelope, type UsageJson } from "./client.js";

let app: TestApp;
let url: URL;
let client: Client;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  // Without a port, it is the media host on every port.
  app = await createTestApp({ config: { mediaUrl: "http://127.0.0.1" } });
  url = new URL(`http://localhost:${new URL(app.baseUrl).port}/mcp`);
  client = await connect(app.key);
});

afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await app.close();
});

describe("the tools", () => {
  it("are listed with the bounds of the routes", async () => {
    const { tools } = await client.listTools();

    const properties = (name: string) => tools.find((tool) => tool.name === name)?.inputSchema.properties ?? {};
    expect(tools.map(({ name }) => name)).toEqual(["generate_text", "generate_image", "generate_speech", "generate_video", "list_models"]);
    expect(properties("generate_text").temperature).toMatchObject({ type: "number", minimum: 0, maximum: 2 });
    expect(properties("generate_speech").input).toMatchObject({ type: "string", maxLength: 10_000 });
    expect(properties("generate_video").duration).toMatchObject({ type: "integer", minimum: 1, maximum: 10 });
    expect(tools.every(({ inputSchema }) => inputSchema.additionalProperties === false)).toBe(true);
    expect(client.getInstructions()).toContain("list_models");
  });

  it("list the models and their prices", async () => {
    const { structuredContent } = await call("list_models", { modality: "speech", search: "sandbox" });
    const { structuredContent: first } = await call("list_models", { limit: 1 });

    expect(structuredContent).toMatchObject({
      count: 2,
      models: [
        { name: "sandbox/speech", voices: expect.arrayContaining(["alloy"]) },
        { name: "sandbox/speech-paid", pricing: { currency: "credits", characters: "0.00001" } },
      ],
    });
    expect(first?.models).toHaveLength(1);
  });

  it("write a text, charged to the key like any other", async () => {
    const result = await call("generate_text", {
      prompt: "[echo] hello",
      model: "sandbox/text-paid",
      system: "Be kind.",
      max_tokens: 50,
      seed: null,
    });

    const { generation_id: id, cost_usd: cost } = result.structuredContent as { generation_id: string; cost_usd: number };
    const { usage } = (await createClient(url.origin, app.key).get("/account/usage")).json<UsageJson>();
    expect(result).toMatchObject({
      content: [{ type: "text", text: "hello" }],
      structuredContent: {
        text: "hello",
        model: "sandbox/text-paid",
        model_used: "sandbox/text-paid",
        usage: { output_text_tokens: expect.any(Number) },
      },
    });
    expect(result.isError).toBeFalsy();
    expect(cost).toBeGreaterThan(0);
    expect(usage.find((row) => row.request_id === id)).toMatchObject({ type: "generate.text", cost_usd: cost, status: "ok" });
  });

  it("stream a text, when progress is requested", async () => {
    const told: string[] = [];
    let open: () => void = () => undefined;
    const isTold = new Promise<void>((resolve) => {
      open = resolve;
    });
    const [role, first, ...rest] = chatChunks(["one ", "two"]);
    app.upstream.replyNext(sse([role ?? {}, first ?? {}, { do: "wait", until: isTold }, ...rest]));

    const result = await call("generate_text", { prompt: "count", model: "acme/chat" }, (_done, message) => {
      told.push(message ?? "");
      open();
    });

    expect(told).toEqual(["one ", "two"]);
    expect(result).toMatchObject({ content: [{ text: "one two" }], structuredContent: { cost_usd: expect.any(Number) } });
    await app.upstream.nextRequest();
  });

  it("draw pictures, in the result or as links", async () => {
    const [inline, link] = await Promise.all([
      call("generate_image", { prompt: "a boat", model: "sandbox/image", size: "64x64", output_format: "png", n: 2 }),
      call("generate_image", { prompt: "a boat", model: "sandbox/image", size: "64x64", delivery: "url" }),
    ]);

    const [block, second] = inline.content as { type: string; data: string; mimeType: string }[];
    const [address] = (link.structuredContent as { urls: string[] }).urls;
    expect(block).toMatchObject({ type: "image", mimeType: "image/png" });
    expect(
      Buffer.from(block?.data ?? "", "base64")
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
    expect(second?.type).toBe("image");
    expect(link.content).toEqual([{ type: "text", text: address }]);
    expect((await fetchMedia(address)).headers.get("content-type")).toMatch(/^image\//);
  });

  it("speak, in the result or as links", async () => {
    const [inline, link] = await Promise.all([
      call("generate_speech", { input: "Yes.", model: "sandbox/speech-paid", response_format: "wav" }),
      call("generate_speech", { input: "Yes.", model: "sandbox/speech", response_format: "wav", delivery: "url" }),
    ]);

    expect(inline).toMatchObject({ content: [{ type: "audio", mimeType: "audio/wav" }], structuredContent: { cost_usd: 0.00004 } });
    expect((await fetchMedia((link.structuredContent as { urls: string[] }).urls[0])).headers.get("content-type")).toMatch(/^audio\//);
  });

  it("film, telling how far they are, and answer a link", async () => {
    const told: number[] = [];

    const result = await call(
      "generate_video",
      { prompt: "waves", model: "sandbox/video-paid", duration: 1, width: 64, height: 64 },
      (done) => told.push(done),
    );

    const { urls, cost_usd } = result.structuredContent as { urls: string[]; cost_usd: number };
    expect(cost_usd).toBe(0.02);
    expect((await fetchMedia(urls[0])).headers.get("content-type")).toBe("video/mp4");
    expect(told.length).toBeGreaterThan(0);
    expect(told).toEqual([...new Set(told)].sort((a, b) => a - b));
  });
});

describe("a refused tool call", () => {
  it.each([
    ["generate_text", { prompt: "hi", model: "sandbox/text", temperature: 2.1 }, "BAD_REQUEST", "temperature"],
    ["generate_text", { prompt: "hi", temprature: 1 }, "BAD_REQUEST", "temprature"],
    ["generate_text", { prompt: "hi", model: "no/such" }, "BAD_REQUEST", "model"],
    ["generate_text", { prompt: "[fail 500]", model: "sandbox/text" }, "UPSTREAM_ERROR", null],
    ["generate_text", { prompt: "hi", model: "sandbox/image" }, "BAD_REQUEST", "model"],
    ["generate_image", { prompt: "hi", size: "63x64" }, "BAD_REQUEST", "size"],
    ["generate_image", { prompt: "hi", image: ["http://10.0.0.1/secret"] }, "BAD_REQUEST", "image"],
    ["generate_speech", { input: "x".repeat(10_001) }, "BAD_REQUEST", "input"],
    ["generate_speech", { input: "hi", voice: "nobody" }, "BAD_REQUEST", "voice"],
    ["generate_video", { prompt: "hi", duration: 11 }, "BAD_REQUEST", "duration"],
    ["list_models", { limit: 201 }, "BAD_REQUEST", "limit"],
  ])("to %s with %j is a result with %s", async (name, args, code, param) => {
    const result = await call(name, args);

    expect(result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringContaining(`${code}: `) }],
      structuredContent: { error: { code, param } },
    });
  });

  it("of a key with an exhausted budget is a result with its code, and charges nothing", async () => {
    const { key } = await createKey({ ...app, baseUrl: url.origin }, { creditBudget: 0.000001 });
    const poor = await connect(key);

    const result = await poor.callTool({ name: "generate_image", arguments: { prompt: "hi", model: "sandbox/image-paid", size: "64x64" } });

    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: "KEY_BUDGET_EXHAUSTED" } } });
  });

  it("name unknown tools and methods in the words of the protocol", async () => {
    await expect(client.callTool({ name: "generate_money", arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await expect(client.listResources()).rejects.toMatchObject({ code: -32601 });
  });

  it("are in the envelope without a good key, from other sites' pages and with other methods", async () => {
    const raw = createClient(url.origin, app.key);
    const nobody = await raw.post("/mcp", ping, { key: null });
    const stranger = await raw.post("/mcp", ping, { key: `${app.key.slice(0, -1)}x` });
    const page = await raw.post("/mcp", ping, { headers: { Origin: "https://evil.example" } });
    const own = await raw.post("/mcp", ping, { headers: { Origin: "http://localhost:6274" } });
    const stream = await raw.get("/mcp");
    const end = await raw.request("DELETE", "/mcp");
    const version = await raw.post("/mcp", ping, { headers: { "Mcp-Protocol-Version": "1999-01-01" } });
    const elsewhere = await createClient(app.baseUrl, app.key).get("/mcp");

    for (const refused of [nobody, stranger]) expectEnvelope(refused, 401, "UNAUTHORIZED");
    expect(nobody.headers.get("www-authenticate")).toMatch(/^Bearer resource_metadata="http:[^"]+"$/);
    expectEnvelope(page, 403, "FORBIDDEN");
    for (const answer of [stream, end]) expectEnvelope(answer, 405, "METHOD_NOT_ALLOWED");
    expect(stream.headers.get("allow")).toBe("POST, OPTIONS");
    expect(version.status).toBe(400);
    expectEnvelope(elsewhere, 404, "NOT_FOUND");
    // A client that takes no events gets a whole answer.
    expect([own.status, own.headers.get("content-type"), own.json()]).toEqual([
      200,
      "application/json",
      { jsonrpc: "2.0", id: 1, result: {} },
    ]);
  });
});

describe("a client with fields beyond the protocol", () => {
  const raw = () => createClient(url.origin, app.key);

  it.each([
    ["a field of its own", { ...ping, trace: "x" }, {}],
    ["no parameters, in words", { ...ping, params: null }, {}],
  ])("is answered: %s", async (_name, message, result) => {
    expect((await raw().post("/mcp", message)).json()).toEqual({ jsonrpc: "2.0", id: 1, result });
  });

  it("may call a tool with null for its arguments", async () => {
    const params = { name: "list_models", arguments: null, more: 1 };

    const answer = (await raw().post("/mcp", { ...ping, method: "tools/call", params, more: 1 })).json<{ result: CallToolResult }>();

    expect(answer.result).toMatchObject({ isError: false, structuredContent: { count: expect.any(Number) } });
  });

  it("may send unknown notifications", async () => {
    const { status } = await raw().post("/mcp", { jsonrpc: "2.0", method: "notifications/tomorrow", params: { a: 1 }, more: 1 });

    expect(status).toBe(202);
  });
});

describe("an abandoned call", () => {
  it.each(["told", "left"])("has its generation finished and charged when the client has %s, and keeps nothing held", async (how) => {
    const leaving = await connect(app.key);
    const stop = new AbortController();
    const rows = await app.database.prisma.usageRecord.count();
    const answer = gated(chatCompletion({ content: "Nobody hears this." }));
    app.upstream.replyNext(answer.reply);

    const result = leaving.callTool({ name: "generate_text", arguments: { prompt: how, model: "acme/chat" } }, undefined, {
      signal: stop.signal,
    });
    result.catch(() => undefined);
    const request = await app.upstream.nextRequest();
    if (how === "told") stop.abort();
    else await leaving.close();

    await expect(result).rejects.toThrow();
    answer.open();
    await request.answered;
    await expect.poll(() => app.database.prisma.usageRecord.count()).toBe(rows + 1);
    await expectNothingHeld(app);
  });

  it("is not another session's to give up", async () => {
    const raw = createClient(url.origin, app.key);
    const headers = { "Mcp-Session-Id": randomUUID() };
    let open: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      open = resolve;
    });
    app.upstream.replyNext({ kind: "handler", handle: (_request, response) => held.then(() => void response.writeHead(500).end()) });

    const answer = raw.post(
      "/mcp",
      {
        jsonrpc: "2.0",
        id: 7,
        method: "tools/call",
        params: { name: "generate_text", arguments: { prompt: "wait", model: "acme/chat-b" } },
      },
      { headers },
    );
    await app.upstream.nextRequest();
    const cancelled = await raw.post(
      "/mcp",
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } },
      { headers: { "Mcp-Session-Id": randomUUID() } },
    );
    open();

    expect(cancelled.status).toBe(202);
    expect((await answer).json()).toMatchObject({
      id: 7,
      result: { isError: true, structuredContent: { error: { code: "UPSTREAM_ERROR" } } },
    });
  });
});

describe("agents", () => {
  it("use the gateway's own server by where it listens", async () => {
    const loopback = new LoopbackClient(
      () => app.baseUrl,
      () => ({ baseUrl: url.origin }),
    );
    const servers = new McpServers({ urls: {}, loopback, clock: createMovableClock(), unknownWords: app.infrastructure.unknownWords });
    closing.push(() => servers.close().then(() => loopback.close()));
    const run = { runToken: app.key, signal: new AbortController().signal };

    const tools = await servers.listTools("sluice", run);
    const result = await servers.callTool("sluice", "generate_text", { prompt: "[echo] from an agent", model: "sandbox/text" }, run);

    expect(tools).toHaveLength(5);
    expect(result.content).toEqual([{ type: "text", text: "from an agent" }]);
    await expect(servers.callTool("sluice", "list_models", {}, { ...run, runToken: "ag_no" })).rejects.toMatchObject({
      code: "UPSTREAM_ERROR",
    });
    expect(() => loopback.urlOf("http://other.example/")).toThrow(TypeError);
    const circling = await servers.callTool("sluice", "generate_text", { prompt: "hi", model: "acme/chat" }, { ...run, hops: 1_000 });
    expect(circling.isError).toBe(true);
  });
});

/** Needs no tool. */
const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

async function connect(key: string): Promise<Client> {
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
  const connected = new Client({ name: "test", version: "1" });
  await connected.connect(transport as Parameters<Client["connect"]>[0]);
  closing.push(() => connected.close());
  return connected;
}

async function call(
  name: string,
  args: Record<string, unknown>,
  onProgress?: (done: number, message: string | undefined) => void,
): Promise<CallToolResult> {
  const options = onProgress && { onprogress: ({ progress, message }: Progress) => onProgress(progress, message) };
  return (await client.callTool({ name, arguments: args }, undefined, options)) as CallToolResult;
}

/** The links name no port. */
function fetchMedia(link: string | undefined): Promise<Response> {
  return fetch(app.baseUrl + new URL(link ?? "").pathname);
}
