/**
 * Runs code agents (docs/spec/agents.md#code-agents). The script is called like an upstream that speaks the Responses format, so that its
 * answer is read, streamed, metered and recorded like any other. Instead of a connection, the request goes into a process and the answer
 * comes out of it.
 */
import { serviceUnavailable, unauthenticated } from "../../errors.js";
import { HOPS_HEADER } from "../../limits.js";
import type { UpstreamPool, UpstreamRequest } from "../../providers/http.js";
import { OpenAiClient } from "../../providers/openai/client.js";
import { ResponsesChatProvider } from "../../providers/openai/responses.js";
import { type ChatProvider, toSignal, type UpstreamTimeouts } from "../../providers/provider.js";
import type { UpstreamResponse } from "../../providers/upstream-response.js";
import type { Model } from "../catalog/model.js";
import type { AgentCall, AgentProviders } from "../generation/upstreams.js";
import type { LoopbackClient } from "../mcp/loopback-client.js";
import { MCP_SERVER_IDS, type McpServerId, type McpToolServers } from "../mcp/mcp-tools.js";
import type { CodeRuns } from "./code-runs.js";
import type { CodeScripts } from "./code-scripts.js";
import { CODE_RUN_OUTPUT_BYTES_MAX } from "./limits.js";
import type { RunLimits } from "./run-limits.js";
import type { RunTokens } from "./run-tokens.js";
import { GuestCallError, type GuestHost, type GuestReply, type GuestRequest } from "./sandbox/guest-calls.js";
import type { HeaderList } from "./sandbox/messages.js";
import type { SandboxRunner } from "./sandbox/sandbox-runner.js";

// The services that a code agent can reach: this gateway and tools of MCP servers, both as its caller, whose token it never sees.

const METHODS = new Set(["GET", "HEAD", "POST"]);
/** Request headers of an agent that are passed on. The gateway sets account, idempotency and addresses. */
const REQUEST_HEADERS = new Set(["accept", "accept-language", "content-type", "range"]);
/** Headers of one connection or browser session, and those about the body's length and encoding on the wire. */
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
      // Reported below.
    }
    throw new GuestCallError("sluice() takes a path of this gateway, such as /v1/chat/completions.");
  }
}

function isServer(server: string): server is McpServerId {
  return (MCP_SERVER_IDS as readonly string[]).includes(server);
}

/** Starts reading now: fetch cancels an unread body once its Response is garbage-collected. */
function readerOf(body: AsyncIterable<Uint8Array> | null): AsyncIterator<Uint8Array> {
  return body === null ? nothing() : body[Symbol.asyncIterator]();
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // No body.
}

export interface CodeAgentDependencies {
  readonly scripts: CodeScripts;
  readonly sandboxRunner: SandboxRunner;
  readonly codeRuns: Pick<CodeRuns, "begin">;
  readonly runTokens: RunTokens;
  readonly runLimits: RunLimits;
  readonly loopback: LoopbackClient;
  readonly mcpServers: McpToolServers;
  readonly addresses: () => { readonly baseUrl: string };
  readonly timeouts: UpstreamTimeouts;
}

export class CodeAgents implements Pick<AgentProviders, "chat"> {
  constructor(private readonly deps: CodeAgentDependencies) {}

  chat(model: Model, call: AgentCall): ChatProvider {
    const pool: UpstreamPool = { request: (request) => this.run(model, call, request), close: async () => undefined };
    const bounds = {
      pool: { connectionsMax: 1, waitingMax: 1, keepAliveMs: 1 },
      answerBytesMax: CODE_RUN_OUTPUT_BYTES_MAX,
      streamBytesMax: CODE_RUN_OUTPUT_BYTES_MAX,
    };
    const { timeouts } = this.deps;
    const client = new OpenAiClient({ baseUrl: this.addressOf(), isExact: true, apiKey: null, timeouts, bounds }, pool);
    const provider = new ResponsesChatProvider(client);
    // An agent knows itself by the name that it was called by.
    return {
      complete: (request) => provider.complete({ ...request, upstreamModel: model.id }),
      stream: (request) => provider.stream({ ...request, upstreamModel: model.id }),
    };
  }

  private async run(model: Model, call: AgentCall, request: UpstreamRequest): Promise<UpstreamResponse> {
    const { sandboxRunner, codeRuns, scripts, runTokens, runLimits, loopback, mcpServers } = this.deps;
    const { ctx, generationId } = call;
    if (ctx.caller.kind === "anonymous") throw unauthenticated("Agents can only be called with an API key or a session.");
    const script = await scripts.find(model.communityModelId ?? "");
    if (script === null) throw serviceUnavailable(`${model.id} is not deployed.`);
    const host = new CodeAgentHost(loopback, mcpServers, runTokens.issue(ctx.caller, await runLimits.begin(call)), ctx.hops);
    const headers = [...pairsOf(request.headers), ["x-request-id", ctx.requestId] as const];
    const task = { script, request: { url: this.addressOf(), headers, body: String(request.body ?? "") } };
    const log = ctx.log.child({ agent: model.id, generationId });
    const onEnd = codeRuns.begin(model, ctx.caller.accountId, generationId);
    return sandboxRunner.run(task, { owner: model.owner ?? model.id, host, signal: toSignal(request.signal), log, onEnd });
  }

  private addressOf(): string {
    return `${this.deps.addresses().baseUrl}/v1/responses`;
  }
}

/** Request headers for the agent; a request to an upstream without a key has no Authorization. */
function pairsOf(headers: readonly string[]): (readonly [string, string])[] {
  return headers.flatMap((name, index) => {
    const value = headers[index + 1];
    const isPassedOn = index % 2 === 0 && (name === "accept" || name === "content-type");
    return isPassedOn && value !== undefined ? [[name, value] as const] : [];
  });
}
