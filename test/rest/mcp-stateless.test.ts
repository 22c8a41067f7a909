/** The revision 2026-07-28 of the gateway's MCP server, asked by the official client of that revision: no handshake and no session. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectNothingHeld } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { gated, sse } from "../support/upstream-replies.js";
import { createClient, createKey, type UsageJson } from "./client.js";

const REVISION = "2026-07-28";
const META = {
  "io.modelcontextprotocol/protocolVersion": REVISION,
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
};

let app: TestApp;
let client: Client;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  app = await createTestApp();
  client = await connect(app.key);
});

afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await app.close();
});

describe("a client of the revision 2026-07-28", () => {
  it("finds the revisions, the tools and the instructions without a handshake", async () => {
    const discovered = await client.discover();
    const { tools } = await client.listTools();

    expect(discovered.supportedVersions).toContain(REVISION);
    expect(discovered.capabilities).toEqual({ tools: {} });
    expect(discovered.instructions).toContain("list_models");
    expect(tools.map(({ name }) => name)).toEqual(["generate_text", "generate_image", "generate_speech", "generate_video", "list_models"]);
  });

  it("gets a text, charged to the key like any other", async () => {
    const result = await client.callTool({
      name: "generate_text",
      arguments: { prompt: "[echo] hello", model: "sandbox/text-paid", max_tokens: 50 },
    });

    const { generation_id: id, cost_usd: cost } = result.structuredContent as { generation_id: string; cost_usd: number };
    const { usage } = (await createClient(app.baseUrl, app.key).get("/account/usage")).json<UsageJson>();
    expect(result).toMatchObject({ content: [{ type: "text", text: "hello" }] });
    expect(result.isError).toBeFalsy();
    expect(cost).toBeGreaterThan(0);
    expect(usage.find((row) => row.request_id === id)).toMatchObject({ type: "generate.text", cost_usd: cost, status: "ok" });
  });

  it("gets the pieces of a text as progress", async () => {
    const pieces: string[] = [];
    let open: () => void = () => undefined;
    const isHeard = new Promise<void>((resolve) => {
      open = resolve;
    });
    const [role, first, ...rest] = chatChunks(["one ", "two"]);
    app.upstream.replyNext(sse([role ?? {}, first ?? {}, { do: "wait", until: isHeard }, ...rest]));

    const result = await client.callTool(
      { name: "generate_text", arguments: { prompt: "count", model: "acme/chat" } },
      {
        onprogress: ({ message }) => {
          pieces.push(message ?? "");
          open();
        },
      },
    );

    expect(pieces).toEqual(["one ", "two"]);
    expect(result).toMatchObject({ content: [{ text: "one two" }] });
    await app.upstream.nextRequest();
  });

  it("gets refusals as results, and unknown tools as errors of the protocol", async () => {
    const refused = await client.callTool({ name: "generate_text", arguments: { prompt: "hi", model: "no/such" } });

    expect(refused).toMatchObject({ isError: true, structuredContent: { error: { code: "BAD_REQUEST", param: "model" } } });
    await expect(client.callTool({ name: "generate_money", arguments: {} })).rejects.toMatchObject({ code: -32602 });
  });

  it("has its generation finished and charged when it leaves, and keeps nothing held", async () => {
    const { key } = await createKey(app);
    const leaving = await connect(key);
    const stop = new AbortController();
    const rows = await app.database.prisma.usageRecord.count();
    const answer = gated(chatCompletion({ content: "Too late." }));
    app.upstream.replyNext(answer.reply);

    const result = leaving.callTool({ name: "generate_text", arguments: { prompt: "x", model: "acme/chat" } }, { signal: stop.signal });
    result.catch(() => undefined);
    const request = await app.upstream.nextRequest();
    stop.abort();
    await expect(result).rejects.toThrow();
    answer.open();
    await request.answered;

    await expect.poll(() => app.database.prisma.usageRecord.count()).toBe(rows + 1);
    await expectNothingHeld(app);
  });

  it("is used as the newest revision by a client that knows both", async () => {
    const either = await connect(app.key, "auto");

    expect(either.getNegotiatedProtocolVersion()).toBe(REVISION);
  });
});

describe("a request of the revision 2026-07-28", () => {
  const send = (method: string, params: object, headers: Record<string, string> = {}) =>
    createClient(app.baseUrl, app.key).post(
      "/mcp",
      { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } },
      { headers: { "Mcp-Protocol-Version": REVISION, "Mcp-Method": method, ...headers } },
    );

  it("is answered without a session", async () => {
    const answer = await send("tools/list", {});

    expect(answer.status).toBe(200);
    expect(answer.headers.get("mcp-session-id")).toBeNull();
    expect(answer.json()).toMatchObject({ id: 1, result: { resultType: "complete", tools: expect.any(Array) } });
  });

  it.each([
    ["another method in its header", "tools/list", { "Mcp-Method": "tools/call" }, -32_020],
    ["another revision in its header", "tools/list", { "Mcp-Protocol-Version": "2025-11-25" }, -32_020],
    ["a subscription, as nothing changes", "subscriptions/listen", {}, -32_601],
    ["a method of older revisions", "ping", {}, -32_601],
  ])("is refused with %s", async (_name, method, headers, code) => {
    const answer = await send(method, {}, headers);

    expect(answer.json()).toMatchObject({ jsonrpc: "2.0", id: 1, error: { code } });
  });

  it("of an unknown revision is answered with the known ones", async () => {
    const params = { _meta: { ...META, "io.modelcontextprotocol/protocolVersion": "2031-01-01" } };
    const answer = await createClient(app.baseUrl, app.key).post(
      "/mcp",
      { jsonrpc: "2.0", id: 1, method: "tools/list", params },
      { headers: { "Mcp-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list" } },
    );

    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ error: { data: { supported: expect.arrayContaining([REVISION]), requested: "2031-01-01" } } });
  });
});

async function connect(key: string, mode: "auto" | { pin: string } = { pin: REVISION }): Promise<Client> {
  const url = new URL(`${app.baseUrl}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
  const connected = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await connected.connect(transport);
  closing.push(() => connected.close());
  return connected;
}
