/** Agents' calls to a server of the revision 2026-07-28 alone, made with the official SDK: no handshake, no session. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { LoopbackClient } from "../../../src/services/mcp/loopback-client.js";
import { McpServers } from "../../../src/services/mcp/servers.js";
import { statelessHeaders } from "../../../src/services/mcp/stateless.js";
import { createMovableClock } from "../../support/clock.js";

interface Received {
  readonly method: string | null;
  readonly name: string | null;
  readonly sessionId: string | null;
  readonly isCancelled: () => boolean;
}

const run = () => ({ runToken: "ag_one", signal: new AbortController().signal });
const received: Received[] = [];
const closing: (() => Promise<unknown>)[] = [];
let servers: McpServers;

beforeAll(async () => {
  const url = await startStateless();
  const loopback = new LoopbackClient(
    () => "http://127.0.0.1:1",
    () => ({ baseUrl: "http://localhost:1" }),
  );
  servers = new McpServers({ urls: { ada: url }, loopback, clock: createMovableClock(), unknownWords: { note: () => undefined } });
  closing.push(() => servers.close());
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

describe("the headers of a request", () => {
  it.each([
    ["get-sum", "get-sum"],
    ["two words", "two words"],
    ["größe", "=?base64?Z3LDtsOfZQ==?="],
    [" a", "=?base64?IGE=?="],
    ["a\r\nb", "=?base64?YQ0KYg==?="],
    ["=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="],
  ])("hold the tool %j as %j", (name, value) => {
    expect(statelessHeaders("tools/call", { name })).toEqual({ "mcp-method": "tools/call", "mcp-name": value });
  });
});

describe("a server without the handshake", () => {
  it("lists its tools and answers calls, with the method and the tool in headers", async () => {
    const tools = await servers.listTools("ada", run());
    const sum = await servers.callTool("ada", "sum", { a: 1 }, run());

    expect(tools.map(({ name }) => name)).toEqual(["sum", "ask", "wait"]);
    expect(sum).toMatchObject({ isError: false, content: [{ type: "text", text: "a is 1" }] });
    expect(received.map(({ method }) => method)).toEqual([null, "server/discover", "tools/list", null, "server/discover", "tools/call"]);
    expect(received.at(-1)?.name).toBe("sum");
    expect(received.every(({ sessionId }) => sessionId === null)).toBe(true);
  });

  it.each([
    ["ask", "MCP error -32021: "],
    ["gone", "MCP error -32602: "],
  ])("has its own words for the refused tool %s", async (tool, message) => {
    const result = await servers.callTool("ada", tool, {}, run());

    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(message) }] });
  });

  it("notices by the end of the connection that a call was cancelled", async () => {
    const stop = new AbortController();
    const before = received.length;

    const call = servers.callTool("ada", "wait", {}, { runToken: "ag_one", signal: stop.signal });
    call.catch(() => undefined);
    await expect.poll(() => received.slice(before).some(({ method }) => method === "tools/call")).toBe(true);
    stop.abort(new Error("stopped"));

    await expect(call).rejects.toThrow("stopped");
    await expect.poll(() => received.at(-1)?.isCancelled()).toBe(true);
    expect(received.at(-1)?.method).toBe("tools/call");
  });
});

async function startStateless(): Promise<string> {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: "stateless", version: "1" });
      server.registerTool("sum", { inputSchema: z.object({ a: z.number() }) }, ({ a }) => ({
        content: [{ type: "text", text: `a is ${a}` }],
      }));
      server.registerTool("ask", { inputSchema: z.object({}) }, () => ({
        resultType: "input_required",
        inputRequests: {
          name: { method: "elicitation/create", params: { message: "Who?", requestedSchema: { type: "object", properties: {} } } },
        },
        content: [],
      }));
      server.registerTool("wait", { inputSchema: z.object({}) }, (_args, { mcpReq }) =>
        once(mcpReq.signal, "abort").then(() => ({ content: [] })),
      );
      return server;
    },
    { legacy: "reject" },
  );
  const http = createServer(async (req, res) => {
    const headers = new Headers(Object.entries(req.headers).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
    let isCancelled = false;
    received.push({
      method: headers.get("mcp-method"),
      name: headers.get("mcp-name"),
      sessionId: headers.get("mcp-session-id"),
      isCancelled: () => isCancelled,
    });
    const gone = new AbortController();
    res.once("close", () => {
      isCancelled = !res.writableFinished;
      gone.abort();
    });
    let body = "";
    for await (const part of req.setEncoding("utf8")) body += part;
    const request = new Request(`http://localhost${req.url}`, { method: "POST", headers, body, signal: gone.signal });
    const response = await handler.fetch(request);
    res.writeHead(response.status, Object.fromEntries(response.headers));
    res.end(Buffer.from(await response.arrayBuffer()));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  closing.push(async () => {
    await handler.close();
    http.closeAllConnections();
    http.close();
    await once(http, "close");
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}
