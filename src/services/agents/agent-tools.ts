/** The tools of a prompt agent's servers: offered to its model, and called. */
import { createHash } from "node:crypto";
import { AppError } from "../../errors.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { JSON_BOUNDS } from "../../limits.js";
import type { McpCallOptions, McpServerId, McpTool, McpToolServers } from "../mcp/mcp-tools.js";
import { AGENT_TOOLS_MAX, TOOL_NAME_CHARS_MAX } from "./limits.js";
import type { ToolCall } from "./model-steps.js";
import { failedResult, type Senses, type ShownResult, showResult } from "./tool-results.js";

interface Offered {
  readonly server: McpServerId;
  readonly tool: McpTool;
}

/** OpenAI's form of a tool. */
export interface DeclaredTool {
  readonly [field: string]: unknown;
  readonly type: "function";
  readonly function: { readonly name: string; readonly description?: string; readonly parameters: Readonly<Record<string, unknown>> };
}

const HASH_CHARS = 8;

export class AgentTools {
  /** By the name that the model sees. */
  private readonly offered: ReadonlyMap<string, Offered>;
  readonly leftOut: number;

  private constructor(
    private readonly servers: McpToolServers,
    private readonly options: McpCallOptions,
    all: readonly Offered[],
  ) {
    this.offered = new Map(all.slice(0, AGENT_TOOLS_MAX).map((one) => [toolName(one.server, one.tool.name), one]));
    this.leftOut = Math.max(0, all.length - AGENT_TOOLS_MAX);
  }

  /** Rejects with SERVICE_UNAVAILABLE when one of the servers is not set up, UPSTREAM_ERROR when one does not answer. */
  static async open(servers: McpToolServers, ids: readonly McpServerId[], options: McpCallOptions): Promise<AgentTools> {
    const lists = await Promise.all(
      ids.map(async (server) => (await servers.listTools(server, options)).map((tool): Offered => ({ server, tool }))),
    );
    return new AgentTools(servers, options, lists.flat());
  }

  get declared(): readonly DeclaredTool[] {
    return [...this.offered].map(([name, { tool }]) => {
      const { $schema: _, ...parameters } = tool.inputSchema;
      return { type: "function", function: { name, ...(tool.description !== null && { description: tool.description }), parameters } };
    });
  }

  /** Returns failures as results that explain them, so that the model can adapt. Rejects only when the call is aborted. */
  async call({ name, arguments: json }: ToolCall, senses: Senses): Promise<ShownResult> {
    const { signal } = this.options;
    const offered = this.offered.get(name);
    if (!offered) return failedResult(`there is no tool ${name}.`);
    const args = parseArguments(json);
    if (args === null) return failedResult("its arguments must be a JSON object.");
    try {
      return showResult(await this.servers.callTool(offered.server, offered.tool.name, args, this.options), senses);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AppError) return failedResult(error.message);
      throw error;
    }
  }
}

/** `mcp__<server>__<tool>`. A name that upstreams do not accept is shortened, always to the same name. */
export function toolName(server: string, tool: string): string {
  const name = `mcp__${server}__${tool}`;
  const allowed = name.replace(/[^A-Za-z0-9_-]/g, "_");
  if (allowed === name && name.length <= TOOL_NAME_CHARS_MAX) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${allowed.slice(0, TOOL_NAME_CHARS_MAX - HASH_CHARS - 1)}_${hash}`;
}

function parseArguments(json: string): Readonly<Record<string, unknown>> | null {
  if (json.trim() === "") return {};
  try {
    const value = new BoundedJson(JSON_BOUNDS).parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
