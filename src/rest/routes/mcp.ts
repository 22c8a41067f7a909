/**
 * POST /mcp: the gateway as an MCP server over Streamable HTTP, in the revision 2026-07-28 and those before it. It is stateless: each
 * request has its own protocol server, and a session of the older revisions only distinguishes clients of one key. There is no server stream
 * and no session to end, so GET and DELETE are 405, as the protocol says.
 */
import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { JsonObject } from "../../http/body.js";
import { explain, toErrorObject } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
import { pipeBody } from "../../http/sse.js";
import { isHeaderToken } from "../../lib/header-text.js";
import { SSE_KEEP_ALIVE_MS } from "../../limits.js";
import type { McpToolResult } from "../../services/mcp/mcp-tools.js";
import { ToolCallCancelled } from "../../services/mcp/tool-calls.js";
import type { Progress } from "../../services/mcp/tools/tool.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

const SERVER_INFO = { name: "sluice", title: "Sluice", version: "0.3.0" };
/** Headers by which the protocol's server classifies and checks a request. */
const PROTOCOL_HEADERS = ["mcp-protocol-version", "mcp-method", "mcp-name"] as const;
const INSTRUCTIONS =
  "Generates text, images, speech and video with the models that list_models tells. Each call is charged to the key that it is made with.";
/** The SDK's validation is switched off. */
const UNCHECKED = { getValidator: () => (input: unknown) => ({ valid: true as const, data: input as never, errorMessage: undefined }) };
const NOT_KEPT = { "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no" };
const SESSION_ID_CHARS_MAX = 128;
/** Unspecified: a request id by which a call can be cancelled. */
const REQUEST_ID_CHARS_MAX = 256;
const TOOL_NAME_CHARS_MAX = 128;
const CALL_WITHOUT_NAME = "A tool call needs a name, and its arguments as an object.";

const callParams = z.object({ name: z.string().max(TOOL_NAME_CHARS_MAX), arguments: z.record(z.string(), z.unknown()).nullish() });
const cancelledParams = z.object({ requestId: z.union([z.int(), z.string().max(REQUEST_ID_CHARS_MAX)]) });

export function addMcpRoutes(route: Route, endpoint: Endpoint, { mcp }: Pick<Services, "mcp">): void {
  route("/mcp", {
    POST: endpoint({
      id: null,
      isForAgents: true,
      requires: (ctx) => mcp.assertUsable(ctx),
      resourceMetadata: () => mcp.metadataUrl,
      // The protocol server checks the rest.
      body: z.looseObject({}),
      handler: async (ctx, { body, exchange }) => {
        mcp.assertOrigin(exchange.req.headers.origin);
        if (body.method === "notifications/cancelled") cancel(mcp, ctx, exchange, body);
        else await serve(mcp, ctx, exchange, body);
      },
    }),
  });
}

function cancel(mcp: Services["mcp"], ctx: RequestContext, exchange: Exchange, { params }: JsonObject): void {
  const sessionId = sessionIdOf(exchange);
  const { data } = cancelledParams.safeParse(params);
  if (sessionId !== null && data) mcp.cancel(ctx, { sessionId, requestId: data.requestId });
  exchange.writeHead(202, { "Content-Length": 0 });
  exchange.res.end();
}

async function serve(mcp: Services["mcp"], ctx: RequestContext, exchange: Exchange, body: JsonObject): Promise<void> {
  const sdk = await import("@modelcontextprotocol/server");
  if (body.method === "subscriptions/listen") return send(exchange, withoutSubscriptions(body, sdk.ProtocolErrorCode.MethodNotFound));
  const isStreamed = body.method === "tools/call" && acceptsEvents(exchange);
  const server = new sdk.Server(SERVER_INFO, { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: UNCHECKED });
  // The SDK's own handlers would validate every image of a result again.
  server.fallbackRequestHandler = async ({ method, id, params }, { mcpReq }) => {
    if (method === "tools/list") return { tools: mcp.listTools(ctx) };
    if (method !== "tools/call") throw new sdk.ProtocolError(sdk.ProtocolErrorCode.MethodNotFound, "Method not found");
    const { data: toolCall } = callParams.safeParse(params);
    if (!toolCall) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, CALL_WITHOUT_NAME);
    if (!mcp.hasTool(toolCall.name)) {
      throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(toolCall.name)}.`);
    }
    const sessionId = sessionIdOf(exchange);
    const progressToken = mcpReq._meta?.progressToken;
    const report = (progress: Progress) => {
      const notification = { method: "notifications/progress", params: { progressToken: progressToken ?? "", ...progress } };
      void mcpReq.notify(notification).catch(ignore);
    };
    try {
      const call = {
        name: toolCall.name,
        arguments: toolCall.arguments ?? {},
        id: sessionId === null ? null : { sessionId, requestId: id },
      };
      return { ...(await mcp.callTool(ctx, call, progressToken !== undefined && isStreamed ? report : null)) };
    } catch (error) {
      // A client that cancelled its call expects no answer; a stream can end without one.
      if (error instanceof ToolCallCancelled && isStreamed) await server.close();
      return toErrorResult(error, exchange);
    }
  };
  const request = toWebRequest(exchange);
  const parsedBody = toMessage(body);
  try {
    if (await sdk.isLegacyRequest(request, parsedBody)) {
      const transport = new sdk.WebStandardStreamableHTTPServerTransport({
        enableJsonResponse: !isStreamed,
        keepAliveMs: SSE_KEEP_ALIVE_MS,
      });
      await server.connect(transport);
      const response = await transport.handleRequest(request, { parsedBody });
      if (body.method === "initialize" && response.ok) exchange.setHeaders({ "Mcp-Session-Id": randomUUID() });
      await send(exchange, response);
    } else {
      const handler = sdk.createMcpHandler(() => server, {
        legacy: "reject",
        responseMode: isStreamed ? "sse" : "auto",
        keepAliveMs: SSE_KEEP_ALIVE_MS,
      });
      await send(exchange, await handler.fetch(request, { parsedBody }));
    }
  } finally {
    await server.close();
  }
}

/** The tools never change, and the SDK would keep the stream open. */
function withoutSubscriptions({ id }: JsonObject, code: number): Response {
  const isId = typeof id === "string" || typeof id === "number";
  const error = { code, message: "Method not found" };
  return Response.json({ jsonrpc: "2.0", id: isId ? id : null, error }, { status: 404 });
}

/** Keeps only protocol fields: the server refuses others, which clients may send. */
function toMessage({ jsonrpc, id, method, params, result, error }: JsonObject): JsonObject {
  return {
    jsonrpc,
    method,
    ...(id !== undefined && { id }),
    ...(params != null && { params }),
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
  };
}

/** The parts of the request that the transport reads; its body has been read. A client that accepts events need not accept JSON. */
function toWebRequest(exchange: Exchange): Request {
  const headers = new Headers({ accept: "application/json, text/event-stream", "content-type": "application/json" });
  for (const name of PROTOCOL_HEADERS) {
    const value = exchange.req.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  return new Request("http://localhost/mcp", { method: "POST", headers });
}

async function send(exchange: Exchange, { status, headers, body }: Response): Promise<void> {
  const contentType = headers.get("content-type");
  exchange.writeHead(status, { ...(contentType !== null && { "Content-Type": contentType }), ...NOT_KEPT });
  const { res } = exchange;
  // Sends the head at once: the first event may take minutes.
  res.flushHeaders();
  if (body) await pipeBody(res, body);
  else res.end();
}

function toErrorResult(error: unknown, exchange: Exchange): McpToolResult & Record<string, unknown> {
  if (error instanceof ToolCallCancelled) return { isError: true, content: [{ type: "text", text: error.message }] };
  const reported = toErrorObject(explain(error, exchange), exchange.requestId);
  return {
    isError: true,
    content: [{ type: "text", text: `${reported.code}: ${reported.message}` }],
    structuredContent: { error: reported },
  };
}

function sessionIdOf({ req }: Exchange): string | null {
  const id = req.headers["mcp-session-id"];
  return typeof id === "string" && isHeaderToken(id, SESSION_ID_CHARS_MAX) ? id : null;
}

function acceptsEvents({ req }: Exchange): boolean {
  return /\btext\/event-stream\b/.test(req.headers.accept ?? "");
}

function ignore(): void {}
