/** What agents ask of tool servers: a real one from npm, and one that does what servers should not. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { LoopbackClient } from "../../../src/services/mcp/loopback-client.js";
import type { McpServerId } from "../../../src/services/mcp/mcp-tools.js";
import { McpServers } from "../../../src/services/mcp/servers.js";
import { createMovableClock } from "../../support/clock.js";
import { freePort } from "../../support/free-port.js";
import { createEventStore, type McpRequestNote, startMcpServer, type TestMcpServer } from "../../support/mcp-server.js";

const clock = createMovableClock();
const closing: (() => Promise<unknown>)[] = [];
let everything: TestMcpServer;
let own: TestMcpServer;
let servers: McpServers;
/** The unknown parts, as they were noted. */
const noted: string[] = [];
const note = (source: string, kind: string, word: string) => void noted.push(`${source} ${kind} ${word}`);

/** The reference server from npm says no types. */
const EVERYTHING = "@modelcontextprotocol/server-everything/dist/server/index.js";

beforeAll(async () => {
  const { createServer: createEverything } = (await import(EVERYTHING)) as { createServer(): { server: McpServer } };
  everything = await startMcpServer(() => createEverything().server);
  own = await startMcpServer(createOdd, { intercept: answerOddly });
  servers = serversWith({ search: everything.url, ffmpeg: own.url });
  closing.push(everything.close, own.close);
});

afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

describe("the reference server", () => {
  it("lists its tools, with schemas as they are, and calls them", async () => {
    const tools = await servers.listTools("search", run("ag_one"));
    const echo = await servers.callTool("search", "echo", { message: "hello" }, run("ag_one"));
    const weather = await servers.callTool("search", "get-structured-content", { location: "Chicago" }, run("ag_one"));
    const image = await servers.callTool("search", "get-tiny-image", {}, run("ag_one"));

    expect(tools.find(({ name }) => name === "get-sum")).toMatchObject({
      inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
    });
    expect(echo).toEqual({ isError: false, content: [{ type: "text", text: "Echo: hello" }], structuredContent: undefined });
    expect(weather.structuredContent).toMatchObject({ conditions: expect.any(String) });
    expect(image.content).toContainEqual(expect.objectContaining({ type: "image", mimeType: "image/png" }));
  });

  it("answers wrong arguments and unknown tools with results that are errors", async () => {
    const wrong = await servers.callTool("search", "get-sum", { a: "one" }, run("ag_one"));
    const unknown = await servers.callTool("search", "no-such-tool", {}, run("ag_one"));

    expect(wrong).toMatchObject({ isError: true, content: [{ type: "text", text: expect.stringContaining("get-sum") }] });
    expect(unknown).toMatchObject({ isError: true, content: [{ type: "text", text: expect.stringContaining("no-such-tool") }] });
  });

  it("is greeted once for a run, learns nothing about the caller, and loses the session with the run", async () => {
    const before = everything.noted.length;

    await Promise.all([1, 2].map((a) => servers.callTool("search", "get-sum", { a, b: 1 }, run("ag_two"))));
    await servers.callTool("search", "get-sum", { a: 3, b: 1 }, run("ag_two"));
    const noted = everything.noted.slice(before);
    const sessionId = noted.at(-1)?.sessionId as string;
    servers.endRun("ag_two");

    await expect.poll(() => everything.sessions.has(sessionId)).toBe(false);
    expect(noted.filter(({ method }) => method === "initialize")).toHaveLength(1);
    expect(noted.filter(({ method }) => method === "tools/call").map((note) => note.sessionId)).toEqual(Array(3).fill(sessionId));
    expect(noted.filter(({ verb }) => verb === "GET")).toEqual([]);
    expect(noted.filter(({ authorization }) => authorization !== null)).toEqual([]);
  });
});

it("sends a server the key that the operator has for it", async () => {
  const keyed = serversWith({ ffmpeg: own.url }, undefined, { ffmpeg: "the-key" });
  const before = own.noted.length;

  await keyed.callTool("ffmpeg", "fine", {}, run("ag_k"));
  keyed.endRun("ag_k");

  await expect.poll(() => own.noted.slice(before).map(({ verb }) => verb)).toContain("DELETE");
  expect(new Set(own.noted.slice(before).map(({ authorization }) => authorization))).toEqual(new Set(["Bearer the-key"]));
});

describe("lists of tools", () => {
  it("are cached for a minute for all callers, and leave no session behind", async () => {
    const lists = () => own.noted.filter(({ method }) => method === "tools/list").length;
    clock.advance(60);
    const before = lists();

    const both = await Promise.all([servers.listTools("ffmpeg", run("ag_a")), servers.listTools("ffmpeg", run("ag_b"))]);
    clock.advance(59);
    await servers.listTools("ffmpeg", run("ag_a"));
    const asked = lists() - before;
    clock.advance(1);
    await servers.listTools("ffmpeg", run("ag_a"));

    expect(both[0]).toBe(both[1]);
    expect([asked, lists() - before]).toEqual([1, 2]);
    await expect.poll(() => own.sessions.size).toBe(0);
  });

  it.each([
    [128, "taken"],
    [129, "refused"],
  ])("of %i tools are %s", async (count, outcome) => {
    const server = await startMcpServer(() => withTools(count));
    closing.push(server.close);

    const listed = serversWith({ ada: server.url }).listTools("ada", run("ag_a"));

    if (outcome === "taken") await expect(listed).resolves.toHaveLength(count);
    else await expect(listed).rejects.toMatchObject({ code: "UPSTREAM_ERROR", message: expect.stringContaining("ada") });
  });

  it("are requested again after a failure", async () => {
    let isBroken = true;
    const intercept = (_note: McpRequestNote, _req: IncomingMessage, res: ServerResponse) => {
      if (isBroken) res.writeHead(500).end("out of order, token sk_123");
      return isBroken;
    };
    const server = await startMcpServer(() => withTools(1), { intercept });
    closing.push(server.close);
    const some = serversWith({ ada: server.url });

    const refused = await some.listTools("ada", run("ag_a")).catch((error: unknown) => error);
    isBroken = false;

    expect(refused).toMatchObject({ code: "UPSTREAM_ERROR", message: expect.not.stringContaining("sk_123") });
    await expect(some.listTools("ada", run("ag_a"))).resolves.toHaveLength(1);
  });
});

describe("misbehaving servers", () => {
  it("are named when they are not set up, or not there", async () => {
    const nobody = serversWith({ search: `http://127.0.0.1:${await freePort()}/mcp` });

    await expect(nobody.listTools("computer", run("ag_a"))).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      message: expect.stringContaining("computer"),
    });
    await expect(nobody.callTool("search", "find", {}, run("ag_a"))).rejects.toMatchObject({
      code: "UPSTREAM_ERROR",
      message: expect.stringContaining("search"),
    });
  });

  it.each(["too-much", "only-comments", "breaks-off", "ends-early", "nonsense"])("are UPSTREAM_ERROR: %s", async (tool) => {
    await expect(servers.callTool("ffmpeg", tool, {}, run("ag_a"))).rejects.toMatchObject({ code: "UPSTREAM_ERROR" });
  });

  it("are UPSTREAM_ERROR when they hang", async () => {
    const hasty = serversWith({ ffmpeg: own.url }, { listMs: 20_000, callMs: 1 });

    const hung = hasty.callTool("ffmpeg", "hang", {}, run("ag_c"));

    await expect(hung).rejects.toMatchObject({ code: "UPSTREAM_ERROR" });
    await expect.poll(() => hanging).toBe(0);
  });

  it("are left when the caller leaves, who learns why at once", async () => {
    const leaving = new AbortController();
    const noted = own.noted.length;

    const hung = servers.callTool("ffmpeg", "hang", {}, { runToken: "ag_d", signal: leaving.signal });
    await expect.poll(() => own.noted.slice(noted).some(({ method }) => method === "tools/call")).toBe(true);
    leaving.abort(new Error("the caller has gone"));

    await expect(hung).rejects.toThrow("the caller has gone");
    await expect.poll(() => own.noted.slice(noted).some(({ method }) => method === "notifications/cancelled")).toBe(true);
    await expect.poll(() => hanging).toBe(0);
  });

  it("may forget a session: the call is made in another", async () => {
    await servers.callTool("ffmpeg", "fine", {}, run("ag_e"));
    own.forgetSessions();

    await expect(servers.callTool("ffmpeg", "fine", {}, run("ag_e"))).resolves.toMatchObject({ isError: false });
  });
});

describe("streams whose events have ids", () => {
  it("may end early and are taken up again", async () => {
    const server = await startMcpServer(createOdd, { eventStore: createEventStore });
    closing.push(server.close);

    const result = serversWith({ ada: server.url }).callTool("ada", "polled", {}, run("ag_a"));

    await expect(result).resolves.toMatchObject({ content: [{ type: "text", text: "at last" }] });
    expect(server.noted.some(({ verb }) => verb === "GET")).toBe(true);
  });
});

function run(runToken: string) {
  return { runToken, signal: new AbortController().signal };
}

function serversWith(urls: Partial<Record<McpServerId, string>>, timeouts?: { listMs: number; callMs: number }, keys = {}): McpServers {
  const loopback = new LoopbackClient(
    () => "http://127.0.0.1:1",
    () => ({ baseUrl: "http://localhost:1" }),
  );
  const made = new McpServers({ urls, keys, loopback, clock, unknownWords: { note }, ...(timeouts ? { timeouts } : {}) });
  closing.push(() => made.close());
  return made;
}

function withTools(count: number): McpServer {
  const server = new McpServer({ name: "many", version: "1" });
  for (let i = 0; i < count; i += 1) server.registerTool(`tool-${i}`, {}, async () => ({ content: [] }));
  return server;
}

let hanging = 0;

function createOdd(): McpServer {
  const server = new McpServer({ name: "odd", version: "1" });
  const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });
  server.registerTool("fine", { inputSchema: { size: z.number().optional() } }, async () => text("fine"));
  server.registerTool("too-much", {}, async () => text("x".repeat(16 * 1024 * 1024)));
  server.registerTool("hang", {}, async ({ signal }) => {
    hanging += 1;
    if (!signal.aborted) await once(signal, "abort");
    hanging -= 1;
    return text("never");
  });
  server.registerTool("polled", {}, async ({ closeSSEStream }) => {
    closeSSEStream?.();
    return text("at last");
  });
  return server;
}

/** What the SDK would never answer. */
function answerOddly({ tool, id }: McpRequestNote, _req: IncomingMessage, res: ServerResponse): boolean {
  if (tool === "nonsense") {
    const body = { jsonrpc: "2.0", id, result: "roses" };
    res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    return true;
  }
  if (tool === "only-comments") {
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    res.write(":\n".repeat(1024 * 1024));
    return true;
  }
  if (tool !== "breaks-off" && tool !== "ends-early") return false;
  res.writeHead(200, { "Content-Type": "text/event-stream" });
  res.write(": nothing yet\n\n", () => (tool === "ends-early" ? res.end() : res.destroy()));
  return true;
}
