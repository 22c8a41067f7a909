/**
 * The MCP servers of agents (docs/spec/mcp.md#servers): those that the operator mapped to a URL, which are trusted, and `sluice`, this
 * gateway's server at /mcp, called with the run's token. No other server learns the caller.
 */
import { Agent, fetch } from "undici";
import { AppError, serviceUnavailable, upstreamFailed } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isRecord } from "../../lib/json.js";
import type { UnknownWords } from "../../lib/unknown-words.js";
import { GENERATION_TIMEOUT_MS, HOPS_HEADER } from "../../limits.js";
import {
  endSession,
  inSession,
  type McpRequests,
  type McpServerAddress,
  type McpSession,
  McpStatusError,
  openSession,
} from "./connection.js";
import {
  MCP_CALL_TIMEOUT_MS,
  MCP_CONNECT_TIMEOUT_MS,
  MCP_CONNECTIONS_MAX,
  MCP_ERROR_CHARS_MAX,
  MCP_LIST_BYTES_MAX,
  MCP_LIST_CACHE_MS,
  MCP_LIST_TIMEOUT_MS,
  MCP_RESULT_BYTES_MAX,
  MCP_TOOL_NAME_CHARS_MAX,
  MCP_TOOL_PAGES_MAX,
  MCP_TOOLS_MAX,
} from "./limits.js";
import type { LoopbackClient } from "./loopback-client.js";
import {
  MCP_SERVER_IDS,
  type McpCallOptions,
  type McpServerId,
  type McpTool,
  type McpToolResult,
  type McpToolServers,
} from "./mcp-tools.js";
import { RpcError, type RpcFields } from "./rpc.js";
import { McpSessions } from "./sessions.js";

export interface McpServersOptions {
  readonly urls: Readonly<Partial<Record<McpServerId, string>>>;
  /** Sent as bearer tokens. */
  readonly keys?: Readonly<Partial<Record<McpServerId, string>>>;
  readonly loopback: LoopbackClient;
  readonly clock: Clock;
  readonly unknownWords: Pick<UnknownWords, "note">;
  readonly timeouts?: { readonly listMs: number; readonly callMs: number };
}

interface CachedTools {
  readonly tools: Promise<readonly McpTool[]>;
  readonly expiresAt: number;
}

export class McpServers implements McpToolServers {
  private readonly agent = new Agent({
    connections: MCP_CONNECTIONS_MAX,
    connect: { timeout: MCP_CONNECT_TIMEOUT_MS },
    headersTimeout: GENERATION_TIMEOUT_MS,
    bodyTimeout: GENERATION_TIMEOUT_MS,
  });
  private readonly sessions = new McpSessions();
  private readonly lists = new Map<McpServerId, CachedTools>();
  private readonly timeouts: NonNullable<McpServersOptions["timeouts"]>;

  constructor(private readonly options: McpServersOptions) {
    this.timeouts = options.timeouts ?? { listMs: MCP_LIST_TIMEOUT_MS, callMs: MCP_CALL_TIMEOUT_MS };
  }

  /** A server's tools are the same for all callers, and are cached for a minute. */
  async listTools(server: McpServerId, options: McpCallOptions): Promise<readonly McpTool[]> {
    const address = this.addressOf(server, options);
    const now = this.options.clock.now().getTime();
    let cached = this.lists.get(server);
    if (cached === undefined || cached.expiresAt <= now) {
      cached = { tools: this.explain(server, () => this.fetchTools(server, address)), expiresAt: now + MCP_LIST_CACHE_MS };
      this.remember(server, cached);
    }
    return unlessAborted(cached.tools, options.signal);
  }

  async callTool(
    server: McpServerId,
    tool: string,
    args: Readonly<Record<string, unknown>>,
    options: McpCallOptions,
  ): Promise<McpToolResult> {
    const address = this.addressOf(server, options);
    const exchange = { bytesMax: MCP_RESULT_BYTES_MAX, timeoutMs: this.timeouts.callMs, signal: options.signal };
    const call = (session: McpSession) => inSession(address, session, exchange, (requests) => callOnce(requests, tool, args));
    const answered = this.explain(server, () =>
      server === "sluice" ? call(OWN_SESSION) : this.callInSession(server, address, options.runToken, call),
    );
    const result = await unlessAborted(answered, options.signal);
    for (const type of new Set(result.content.map((block) => block.type))) this.noteContent(server, type);
    return result;
  }

  /** Those that `MCP_SERVERS` names, and this gateway itself. */
  available(): readonly McpServerId[] {
    return MCP_SERVER_IDS.filter((server) => server === "sluice" || this.options.urls[server] !== undefined);
  }

  endRun(runToken: string): void {
    this.sessions.endRun(runToken);
  }

  /** Closes all connections and aborts their calls. */
  async close(): Promise<void> {
    await this.sessions.close();
    await this.agent.destroy();
  }

  private addressOf(server: McpServerId, { runToken, hops }: McpCallOptions): McpServerAddress {
    const { urls, keys = {}, loopback } = this.options;
    if (server === "sluice") {
      const headers = { authorization: `Bearer ${runToken}`, ...(hops !== undefined && { [HOPS_HEADER]: String(hops) }) };
      return { url: loopback.urlOf("/mcp"), headers, fetch: (url, init) => loopback.fetch(url, init) };
    }
    const url = urls[server];
    if (url === undefined) throw serviceUnavailable(`This gateway has no MCP server ${server}.`);
    const key = keys[server];
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    return { url: new URL(url), headers, fetch: (target, init) => fetch(target, { ...init, dispatcher: this.agent }) };
  }

  /** Shared by all waiting callers, so none of their signals ends it. */
  private async fetchTools(server: McpServerId, address: McpServerAddress): Promise<readonly McpTool[]> {
    const exchange = { bytesMax: MCP_LIST_BYTES_MAX, timeoutMs: this.timeouts.listMs, signal: NEVER };
    const session = server === "sluice" ? OWN_SESSION : await openSession(address, exchange);
    try {
      const leaveOut = (name: string) => this.options.unknownWords.note(server, "mcp-tool", name);
      return await inSession(address, session, exchange, (requests) => listAll(requests, leaveOut));
    } finally {
      void endSession(address, session);
    }
  }

  private noteContent(server: McpServerId, type: unknown): void {
    if (typeof type === "string" && CONTENT_TYPES.has(type)) return;
    this.options.unknownWords.note(server, "mcp-content", typeof type === "string" ? type : "(without a type)");
  }

  private remember(server: McpServerId, cached: CachedTools): void {
    this.lists.set(server, cached);
    cached.tools.catch(() => {
      if (this.lists.get(server) === cached) this.lists.delete(server);
    });
  }

  /** Retries in a new session when the server no longer knows the kept one: the call was not executed then. */
  private async callInSession(
    server: McpServerId,
    address: McpServerAddress,
    runToken: string,
    call: (session: McpSession) => Promise<McpToolResult>,
  ): Promise<McpToolResult> {
    const greeting = { bytesMax: MCP_LIST_BYTES_MAX, timeoutMs: this.timeouts.listMs, signal: NEVER };
    const ends = { open: () => openSession(address, greeting), end: (session: McpSession) => endSession(address, session) };
    const attempt = () =>
      this.sessions.use(runToken, server, ends, (session) =>
        call(session).catch((error: unknown) => {
          if (!isForgotten(error, session)) throw error;
          this.sessions.forget(runToken, server, session);
          return null;
        }),
      );
    const result = (await attempt()) ?? (await attempt());
    if (result === null) throw new Error("The server does not know the session that it has just begun.");
    return result;
  }

  /** Logs the server's fault; callers learn only which server it was. */
  private async explain<Result>(server: McpServerId, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw upstreamFailed(`The MCP server ${server} did not answer, or not as the protocol asks.`, { cause: error });
    }
  }
}

/** Types with a form of their own for models; other blocks are shown as JSON. */
const CONTENT_TYPES: ReadonlySet<string> = new Set(["text", "image", "audio", "resource", "resource_link"]);
/** For a tool without a schema. */
const NO_ARGUMENTS = { type: "object", properties: {} } as const;
/** The gateway's own server has no sessions. */
const OWN_SESSION: McpSession = { id: "", protocolVersion: undefined };
const NEVER = new AbortController().signal;
const QUESTION_UNANSWERED = "The tool asks its user a question, and nobody can answer it here.";

/** Leaves out malformed tools, and calls `leaveOut` with the name of each. */
async function listAll(requests: McpRequests, leaveOut: (name: string) => void): Promise<readonly McpTool[]> {
  const tools: McpTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MCP_TOOL_PAGES_MAX; page += 1) {
    const { tools: listed, nextCursor } = await requests.request("tools/list", cursor === undefined ? {} : { cursor });
    if (!Array.isArray(listed)) throw new Error("The list of tools is none.");
    for (const item of listed) {
      const tool = toTool(item);
      if (tool === null) leaveOut(isRecord(item) && typeof item.name === "string" ? item.name : "(without a name)");
      else tools.push(tool);
    }
    if (tools.length > MCP_TOOLS_MAX) throw new Error(`The server has more than ${MCP_TOOLS_MAX} tools.`);
    if (typeof nextCursor !== "string" || nextCursor === "") return tools;
    cursor = nextCursor;
  }
  throw new Error(`The list of tools has more than ${MCP_TOOL_PAGES_MAX} pages.`);
}

/** Null for a tool that cannot be offered to a model or called. */
function toTool(item: unknown): McpTool | null {
  if (!isRecord(item)) return null;
  const { name, description, inputSchema = NO_ARGUMENTS } = item;
  if (typeof name !== "string" || name === "" || name.length > MCP_TOOL_NAME_CHARS_MAX || !isRecord(inputSchema)) return null;
  if (inputSchema.type !== undefined && inputSchema.type !== "object") return null;
  return { name, description: typeof description === "string" ? description : null, inputSchema: { ...inputSchema, type: "object" } };
}

/** A JSON-RPC error is a failed tool result, so that the model can adapt. */
async function callOnce(requests: McpRequests, name: string, args: Readonly<Record<string, unknown>>): Promise<McpToolResult> {
  try {
    return toToolResult(await requests.request("tools/call", { name, arguments: args }));
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const text = `MCP error ${error.code}: ${error.message}`;
    return { isError: true, content: [{ type: "text", text: text.slice(0, MCP_ERROR_CHARS_MAX) }] };
  }
}

/** Reads a result of any shape: blocks and structured results that are no objects become text of their JSON. */
function toToolResult({ content, structuredContent, isError, toolResult, resultType }: RpcFields): McpToolResult {
  if (resultType === "input_required") return { isError: true, content: [{ type: "text", text: QUESTION_UNANSWERED }] };
  const blocks = Array.isArray(content) ? content : content === undefined || content === null ? [] : [content];
  // The field's name in the first protocol revision.
  const structured = structuredContent ?? toolResult;
  const isStructured = isRecord(structured);
  const said = isStructured || structured === undefined || structured === null ? blocks : [...blocks, structured];
  return {
    isError: isError === true,
    content: said.map((block) =>
      isRecord(block) ? block : { type: "text", text: typeof block === "string" ? block : JSON.stringify(block) },
    ),
    structuredContent: isStructured ? structured : undefined,
  };
}

/** Streamable HTTP, "Session Management": 404 means that the session has ended. */
function isForgotten(error: unknown, session: McpSession): boolean {
  return session.id !== "" && error instanceof McpStatusError && error.status === 404;
}

/** As `promise`, for one of several waiting callers: rejects early with its signal's reason. */
async function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  let leave: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (leave) signal.removeEventListener("abort", leave);
  }
}
