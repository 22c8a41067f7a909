/** The six servers (docs/spec/mcp.md#servers); configuration maps all but `sluice` to a URL. */
export const MCP_SERVER_IDS = ["ffmpeg", "computer", "sluice", "search", "integrations", "ada"] as const;
export type McpServerId = (typeof MCP_SERVER_IDS)[number];

export interface McpTool {
  readonly name: string;
  readonly description: string | null;
  /** A JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

export interface McpToolResult {
  readonly isError: boolean;
  readonly content: readonly Readonly<Record<string, unknown>>[];
  readonly structuredContent?: Readonly<Record<string, unknown>> | undefined;
}

export interface McpCallOptions {
  /** Credential for `sluice`, so that it generates for the agent's caller; no other server sees it. */
  readonly runToken: string;
  readonly signal: AbortSignal;
  /** Hops of the agent's own request, passed to `sluice` so that agents cannot cause loops. */
  readonly hops?: number | undefined;
}

export interface McpToolServers {
  /** Rejects with SERVICE_UNAVAILABLE for a server that is not mapped, UPSTREAM_ERROR for one that does not answer. */
  listTools(server: McpServerId, options: McpCallOptions): Promise<readonly McpTool[]>;
  /** As `listTools`. A tool that fails is a result with `isError`. */
  callTool(server: McpServerId, tool: string, args: Readonly<Record<string, unknown>>, options: McpCallOptions): Promise<McpToolResult>;
  /** Ends the run's sessions; without this call they expire. */
  endRun(runToken: string): void;
}
