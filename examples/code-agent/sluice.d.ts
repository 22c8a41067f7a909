/** The arguments of a Sluice code agent. Copy this file beside your agent.ts; only editors need it. */

export interface AgentInput {
  /** The request to the agent: a POST whose body is a request of OpenAI's Responses format. It has no Authorization and no Cookie. */
  readonly request: Request;
  /**
   * A fetch that reaches only this gateway, as the agent's caller and at their expense: `sluice("/v1/responses", { ... })`.
   * Generation and catalog routes; no account, and no agents.
   */
  readonly sluice: (path: string, init?: RequestInit) => Promise<Response>;
  /** Calls a tool of an MCP server: `mcp("sluice", "list_models", { modality: "text" })`. */
  readonly mcp: (server: McpServer, tool: string, args?: Readonly<Record<string, unknown>>) => Promise<ToolResult>;
}

/** `sluice` is the gateway itself; the others are available when its operator has configured them. */
export type McpServer = "ffmpeg" | "computer" | "sluice" | "search" | "integrations" | "ada";

export interface ToolResult {
  readonly isError: boolean;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
}

/** The default export of agent.ts. Its answer is a response of OpenAI's Responses format, as JSON or as a stream of events. */
export type Agent = (input: AgentInput) => Response | Promise<Response>;

/** The commonly used part of the request's body. All other fields that the caller sent are also present. */
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
