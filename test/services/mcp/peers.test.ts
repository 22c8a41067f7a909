/** MCP servers that say more than the gateway knows: each is read as far as it is understood. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { LoopbackClient } from "../../../src/services/mcp/loopback-client.js";
import type { McpToolResult } from "../../../src/services/mcp/mcp-tools.js";
import { McpServers } from "../../../src/services/mcp/servers.js";
import { createMovableClock } from "../../support/clock.js";

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly name?: string };
  readonly result?: unknown;
  readonly error?: { readonly code: number };
}

/** What a peer has received, beside the requests of the protocol. */
interface Peer {
  readonly url: string;
  readonly received: readonly Message[];
  readonly versions: readonly (string | undefined)[];
  /** Resolves when so many messages of the client's own have come. */
  answered(count: number): Promise<void>;
}

type Answer = (message: Message, res: ServerResponse, peer: Peer) => void | Promise<void>;

const closing: (() => Promise<unknown>)[] = [];
let noted: string[];

beforeEach(() => {
  noted = [];
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

/** Answers the greeting as `greeting` says, and everything else by `answer`. */
async function startPeer(answer: Answer, greeting: object = {}, path = "/mcp"): Promise<Peer> {
  const received: Message[] = [];
  const versions: (string | undefined)[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const http = createServer(async (req, res) => {
    const message = await messageOf(req);
    if (req.url !== path) return void res.writeHead(307, { location: path }).end();
    versions.push(req.headers["mcp-protocol-version"] as string | undefined);
    if (message.method === "initialize") {
      const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "odd", version: "1" }, ...greeting };
      return sendJson(res, { jsonrpc: "2.0", id: message.id, result });
    }
    if (message.method?.startsWith("notifications/")) return void res.writeHead(202).end();
    if (message.method === undefined) {
      received.push(message);
      for (const { count, resolve } of waiting) if (received.length >= count) resolve();
      return void res.writeHead(202, { "content-type": "application/json" }).end("null");
    }
    await answer(message, res, peer);
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  closing.push(async () => {
    http.closeAllConnections();
    http.close();
    await once(http, "close");
  });
  const peer: Peer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    received,
    versions,
    answered: (count) =>
      received.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push({ count, resolve });
          }),
  };
  return peer;
}

async function messageOf(req: IncomingMessage): Promise<Message> {
  let text = "";
  for await (const part of req.setEncoding("utf8")) text += part;
  return text === "" ? {} : (JSON.parse(text) as Message);
}

function sendJson(res: ServerResponse, body: unknown): void {
  res.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}

function event(body: unknown, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof body === "string" ? body : JSON.stringify(body)}\n\n`;
}

function serversWith(peer: Peer): McpServers {
  const loopback = new LoopbackClient(
    () => "http://127.0.0.1:1",
    () => ({ baseUrl: "http://localhost:1" }),
  );
  const unknownWords = { note: (source: string, kind: string, word: string) => void noted.push(`${source} ${kind} ${word}`) };
  const servers = new McpServers({ urls: { ada: peer.url }, loopback, clock: createMovableClock(), unknownWords });
  closing.push(() => servers.close());
  return servers;
}

const run = { runToken: "ag_one", signal: new AbortController().signal };

/** What a tool's call gives when the peer answers it with `result`. */
async function callWith(result: unknown): Promise<McpToolResult> {
  const peer = await startPeer(({ id }, res) => sendJson(res, { jsonrpc: "2.0", id, result }));
  return serversWith(peer).callTool("ada", "any", {}, run);
}

describe("a greeting", () => {
  it.each([
    ["a version of tomorrow", { protocolVersion: "2031-01-01" }, "2031-01-01"],
    ["no server's name, and capabilities of its own", { serverInfo: null, capabilities: { smell: true }, more: [1] }, "2025-06-18"],
    ["a version that is none", { protocolVersion: 7 }, "2025-11-25"],
  ])("with %s begins a session", async (_name, greeting, version) => {
    const peer = await startPeer(({ id }, res) => sendJson(res, { jsonrpc: "2.0", id, result: { content: [] } }), greeting);

    await serversWith(peer).callTool("ada", "any", {}, run);

    expect(peer.versions).toEqual([undefined, version, version]);
  });

  it("is made where the server's own redirect leads, which takes the body along", async () => {
    const peer = await startPeer(({ id }, res) => sendJson(res, { jsonrpc: "2.0", id, result: { content: [] } }), {}, "/mcp/");

    await expect(serversWith(peer).callTool("ada", "any", {}, run)).resolves.toMatchObject({ isError: false });
  });
});

it("gets no answer to a question: the call is an error", async () => {
  expect(await callWith({ resultType: "input_required", inputRequests: {} })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("asks its user") }],
  });
});

describe("a list of tools", () => {
  it("loses the tools that cannot be read, each of which is noted", async () => {
    const good = { name: "good", description: "Good.", inputSchema: { type: "object", properties: { a: {} } }, icons: [], more: 1 };
    const tools = [good, null, { name: 5 }, { name: "odd", inputSchema: "none" }, { name: "list", inputSchema: { type: "array" } }];
    const peer = await startPeer(({ id }, res) =>
      sendJson(res, { jsonrpc: "2.0", id, result: { tools: [...tools, { name: "bare", description: 7 }], nextCursor: null, _meta: 5 } }),
    );

    const listed = await serversWith(peer).listTools("ada", run);

    expect(listed).toEqual([
      { name: "good", description: "Good.", inputSchema: { type: "object", properties: { a: {} } } },
      { name: "bare", description: null, inputSchema: { type: "object", properties: {} } },
    ]);
    expect(noted).toEqual(["ada mcp-tool (without a name)", "ada mcp-tool (without a name)", "ada mcp-tool odd", "ada mcp-tool list"]);
  });

  it("that is none is UPSTREAM_ERROR", async () => {
    const peer = await startPeer(({ id }, res) => sendJson(res, { jsonrpc: "2.0", id, result: { tools: "many" } }));

    await expect(serversWith(peer).listTools("ada", run)).rejects.toMatchObject({ code: "UPSTREAM_ERROR" });
  });
});

describe("a result", () => {
  it("keeps blocks of unknown types as they are, and notes their types", async () => {
    const smell = { type: "smell", odour: "roses", _meta: { a: 1 } };

    const result = await callWith({ content: [smell, { type: "text", text: "hi", annotations: { audience: ["user"] } }, smell], more: 1 });

    expect(result.content).toEqual([smell, { type: "text", text: "hi", annotations: { audience: ["user"] } }, smell]);
    expect(noted).toEqual(["ada mcp-content smell"]);
  });

  it.each([
    ["a block that is a text", { content: ["hi"] }, [{ type: "text", text: "hi" }]],
    ["a block that is a list", { content: [[1, 2]] }, [{ type: "text", text: "[1,2]" }]],
    ["content that is one block", { content: { type: "text", text: "hi" } }, [{ type: "text", text: "hi" }]],
    ["content that is a text", { content: "hi" }, [{ type: "text", text: "hi" }]],
    ["a structured list", { content: [], structuredContent: [1] }, [{ type: "text", text: "[1]" }]],
    ["no content", {}, []],
  ])("is read with %s", async (_name, result, content) => {
    expect(await callWith(result)).toEqual({ isError: false, content, structuredContent: undefined });
  });

  it("is read by the name of the first revision", async () => {
    expect(await callWith({ toolResult: { rows: [1] } })).toMatchObject({ content: [], structuredContent: { rows: [1] } });
  });

  it("that is no object is UPSTREAM_ERROR", async () => {
    await expect(callWith("hi")).rejects.toMatchObject({ code: "UPSTREAM_ERROR" });
  });

  it("comes in an envelope with fields of its own, and in a batch", async () => {
    const peer = await startPeer(({ id }, res) =>
      sendJson(res, [
        { jsonrpc: "2.0", method: "notifications/weather", params: [1], trace: "x" },
        "noise",
        { jsonrpc: "2.0", id, result: { content: [] }, trace: "x", error: null },
      ]),
    );

    await expect(serversWith(peer).callTool("ada", "any", {}, run)).resolves.toMatchObject({ isError: false });
  });
});

describe("a stream", () => {
  it("may hold events, notifications and fields that are not known", async () => {
    const peer = await startPeer(({ id }, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`: hello\n\nid: \n\nfield: x\n\n${event("no json", "weather")}${event("no json")}${event({ jsonrpc: "2.0" })}`);
      res.write(event({ jsonrpc: "2.0", method: "notifications/progress", params: { progress: "much", progressToken: {} }, more: 1 }));
      res.write(event({ jsonrpc: "2.0", method: "notifications/tomorrow", params: "odd" }));
      res.write(event({ jsonrpc: "2.0", id: "another", result: { content: "not ours" } }));
      res.end(event({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "hi" }] }, trace: "x" }, "message"));
    });

    const result = await serversWith(peer).callTool("ada", "any", {}, run);

    expect(result.content).toEqual([{ type: "text", text: "hi" }]);
  });

  it("may hold requests, of which ping is answered and any other refused in the words of the protocol", async () => {
    const asked = ["ping", "roots/list", "sampling/createMessage", "elicitation/create", "tomorrow/do"];
    const peer = await startPeer(async ({ id }, res, self) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const [index, method] of asked.entries())
        res.write(event({ jsonrpc: "2.0", id: index === 0 ? "first" : index, method, more: 1 }));
      await self.answered(asked.length);
      res.end(event({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "thanks" }] } }));
    });

    const result = await serversWith(peer).callTool("ada", "any", {}, run);

    expect(result.content).toEqual([{ type: "text", text: "thanks" }]);
    const answers = new Map(peer.received.map((message) => [message.id, message]));
    expect(answers.get("first")).toEqual({ jsonrpc: "2.0", id: "first", result: {} });
    for (const id of [1, 2, 3, 4]) expect(answers.get(id), asked[id]).toMatchObject({ id, error: { code: -32_601 } });
  });

  it("whose event nests deeper than any message does has no result", async () => {
    const peer = await startPeer(({ id }, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
      res.end(event(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"structuredContent":{"a":${deep}}}}`));
    });

    await expect(serversWith(peer).callTool("ada", "any", {}, run)).rejects.toMatchObject({ code: "UPSTREAM_ERROR" });
  });

  it("that never stops asking is answered within a bound", async () => {
    const peer = await startPeer(async ({ id }, res, self) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (let index = 0; index < 500; index += 1) res.write(event({ jsonrpc: "2.0", id: index, method: "ping" }));
      await self.answered(100);
      res.end(event({ jsonrpc: "2.0", id, result: { content: [] } }));
    });

    await serversWith(peer).callTool("ada", "any", {}, run);

    expect(peer.received).toHaveLength(100);
  });
});
