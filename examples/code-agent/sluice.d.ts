/** What a Sluice code agent is given. Copy this file beside your agent.ts; it is needed by editors only. */

export interface AgentInput {
  /** What the agent was asked: a POST whose body is a request of OpenAI's Responses format. It has no Authorization and no Cookie. */
  readonly request: Request;
  /**
   * A fetch that reaches this gateway alone, as whoever called the agent and at their expense: `sluice("/v1/responses", { ... })`.
   * Generation and catalog routes; no account, and no agents.
   */
  readonly sluice: (path: string, init?: RequestInit) => Promise<Response>;
  /** Calls a tool of an MCP server: `mcp("sluice", "list_models", { modality: "text" })`. */
  readonly mcp: (server: McpServer, tool: string, args?: Readonly<Record<string, unknown>>) => Promise<ToolResult>;
}

/** `sluice` is the gateway itself; the others are there when its operator has set them up. */
export type McpServer = "ffmpeg" | "computer" | "sluice" | "search" | "integrations" | "ada";

export interface ToolResult {
  readonly isError: boolean;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
}

/** The default export of agent.ts. Its answer is a response of OpenAI's Responses format, as JSON or as a stream of events. */
export type Agent = (input: AgentInput) => Response | Promise<Response>;

/** As much of the request's body as most agents read; whatever else the caller sent is there too. */
export interface ResponsesRequest {
  /** The agent's own id. */
  readonly model: string;
  readonly instructions?: string;
  readonly input: string | readonly InputItem[];
  readonly stream?: boolean;
  readonly temperature?: number;
  readonly max_output_tokens?: number;
}

/** Messages have a role and content; there are other items, such as calls of tools. */
export interface InputItem {
  readonly type?: string;
  readonly role?: "user" | "assistant" | "system" | "developer";
  readonly content?: string | readonly { readonly type: string; readonly text?: string }[];
}
