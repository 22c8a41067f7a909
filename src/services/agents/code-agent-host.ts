/** What a code agent at work reaches: this gateway, and tools of MCP servers; both as its caller, whose token it never sees. */

import { HOPS_HEADER } from "../../lib/hops.js";
import type { LoopbackClient } from "../mcp/loopback-client.js";
import { MCP_SERVER_IDS, type McpServerId, type McpToolServers } from "../mcp/mcp-tools.js";
import { CODE_RUN_OUTPUT_BYTES_MAX } from "./limits.js";
import { GuestCallError, type GuestHost, type GuestReply, type GuestRequest } from "./sandbox/guest-calls.js";
import type { HeaderList } from "./sandbox/messages.js";

/** What generating takes. */
const METHODS = new Set(["GET", "HEAD", "POST"]);
/** Of an agent's request. Its account is the token's, what was already answered is the caller's, and addresses are the gateway's affair. */
const REQUEST_HEADERS = new Set(["accept", "accept-language", "content-type", "range"]);
/** Of one connection, or of a browser's session; the body's length and encoding are those of what is read here. */
const WITHHELD_REPLY_HEADERS = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "keep-alive",
  "set-cookie",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export class CodeAgentHost implements GuestHost {
  constructor(
    private readonly loopback: LoopbackClient,
    private readonly mcpServers: McpToolServers,
    private readonly runToken: string,
    /** How many gateways the agent's own request has come through. */
    private readonly hops: number | undefined,
  ) {}

  async fetch({ method, path, headers, body }: GuestRequest, signal: AbortSignal): Promise<GuestReply> {
    if (!METHODS.has(method)) throw new GuestCallError(`sluice() makes GET, HEAD and POST requests, and no ${method}.`);
    if (body.length > CODE_RUN_OUTPUT_BYTES_MAX) throw new GuestCallError("The request is too large.");
    const response = await this.loopback.fetch(this.urlOf(path), {
      method,
      headers: this.headersOf(headers),
      body: method === "POST" ? body : null,
      signal,
    });
    const kept: HeaderList = [...response.headers].filter(([name]) => !WITHHELD_REPLY_HEADERS.has(name));
    return { status: response.status, headers: kept, body: readerOf(response.body) };
  }

  callTool(server: string, tool: string, args: unknown, signal: AbortSignal): Promise<unknown> {
    if (!isServer(server))
      throw new GuestCallError(`There is no MCP server ${JSON.stringify(server)}: use one of ${MCP_SERVER_IDS.join(", ")}.`);
    if (args === null || typeof args !== "object" || Array.isArray(args)) throw new GuestCallError("A tool's arguments are an object.");
    return this.mcpServers.callTool(server, tool, args as Record<string, unknown>, { runToken: this.runToken, signal, hops: this.hops });
  }

  private headersOf(headers: HeaderList): [string, string][] {
    const kept = headers
      .filter(([name]) => REQUEST_HEADERS.has(name.toLowerCase()))
      .map(([name, value]): [string, string] => [name, value]);
    if (this.hops !== undefined) kept.push([HOPS_HEADER, String(this.hops)]);
    return [...kept, ["authorization", `Bearer ${this.runToken}`]];
  }

  private urlOf(path: string): URL {
    try {
      if (path.startsWith("/")) return this.loopback.urlOf(path);
    } catch {
      // Told below.
    }
    throw new GuestCallError("sluice() takes a path of this gateway, such as /v1/chat/completions.");
  }
}

function isServer(server: string): server is McpServerId {
  return (MCP_SERVER_IDS as readonly string[]).includes(server);
}

/** It is being read from now on: fetch cancels a body that nobody reads once its Response is collected as garbage. */
function readerOf(body: AsyncIterable<Uint8Array> | null): AsyncIterator<Uint8Array> {
  return body === null ? nothing() : body[Symbol.asyncIterator]();
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // There is no body.
}
