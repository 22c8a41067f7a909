/** Tools of MCP servers, as agents use them: the seam between agents and the servers' client. */

/** The six servers (docs/spec/mcp.md#servers); all but `sluice` are mapped to a URL by configuration. */
export const MCP_SERVER_IDS = ["ffmpeg", "computer", "sluice", "search", "integrations", "ada"] as const;
export type McpServerId = (typeof MCP_SERVER_IDS)[number];

export interface McpTool {
  readonly name: string;
  readonly description: string | null;
  /** A JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** A tool's answer; its content blocks are MCP's. */
export interface McpToolResult {
  readonly isError: boolean;
  readonly content: readonly Readonly<Record<string, unknown>>[];
  readonly structuredContent?: Readonly<Record<string, unknown>> | undefined;
}

export interface McpCallOptions {
  /** What `sluice` is called with, so that it generates for the agent's caller; no other server sees it. */
  readonly runToken: string;
  readonly signal: AbortSignal;
  /** As of the agent's own request: `sluice` is told, so that agents cannot help models to go in circles either. */
  readonly hops?: number | undefined;
}

export interface McpToolServers {
  /** Rejects with SERVICE_UNAVAILABLE for a server that is not mapped, UPSTREAM_ERROR for one that does not answer. */
  listTools(server: McpServerId, options: McpCallOptions): Promise<readonly McpTool[]>;
  /** As `listTools`. A tool that fails is a result with `isError`. */
  callTool(server: McpServerId, tool: string, args: Readonly<Record<string, unknown>>, options: McpCallOptions): Promise<McpToolResult>;
  /** Nothing more is called with this token: what servers keep for the run is given up. Without it that happens after a while. */
  endRun(runToken: string): void;
}
