/** The tools of a prompt agent's servers, as the model that it asks is offered them and calls them. */
import { createHash } from "node:crypto";
import { AppError } from "../../errors.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { JSON_BOUNDS } from "../../limits.js";
import type { McpCallOptions, McpServerId, McpTool, McpToolResult, McpToolServers } from "../mcp/mcp-tools.js";
import {
  AGENT_TOOLS_MAX,
  TOOL_NAME_CHARS_MAX,
  TOOL_RESULT_CHARS_MAX,
  TOOL_RESULT_IMAGE_CHARS_MAX,
  TOOL_RESULT_IMAGES_MAX,
} from "./limits.js";
import type { ToolCall } from "./model-steps.js";

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
  /** By the name that the model knows. */
  private readonly offered: ReadonlyMap<string, Offered>;
  /** How many there are beyond those that are offered. */
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

  /** What goes wrong is a result that says so: the model may do better. Rejects only when the call is aborted. */
  async call({ name, arguments: json }: ToolCall, seesImages: boolean): Promise<ShownResult> {
    const { signal } = this.options;
    const offered = this.offered.get(name);
    if (!offered) return failedResult(`there is no tool ${name}.`);
    const args = parseArguments(json);
    if (args === null) return failedResult("its arguments must be a JSON object.");
    try {
      return showResult(await this.servers.callTool(offered.server, offered.tool.name, args, this.options), seesImages);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AppError) return failedResult(error.message);
      throw error;
    }
  }
}

/** `mcp__<server>__<tool>`. What upstreams do not take as a name is shortened, to the same name every time. */
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

// What a model is shown of a tool's answer: text, and the pictures in it where the model sees pictures. Everything is bounded.

type Block = McpToolResult["content"][number];

export interface ShownResult {
  readonly text: string;
  /** As data URLs. */
  readonly images: readonly string[];
}

/** MCP's content blocks; without any that say something, the structured content as JSON. */
export function showResult({ isError, content, structuredContent }: McpToolResult, seesImages: boolean): ShownResult {
  const images = seesImages ? content.flatMap((block) => imageOf(block) ?? []).slice(0, TOOL_RESULT_IMAGES_MAX) : [];
  const shown = new Set(images);
  const texts = content.map((block) => textOf(block, shown)).filter((text) => text !== "");
  const said = texts.length > 0 ? texts.join("\n\n") : structuredContent === undefined ? "" : JSON.stringify(structuredContent);
  const text = cut(said === "" ? "The tool answered nothing." : said);
  return { text: isError ? `The tool failed: ${text}` : text, images };
}

/** What is said in the place of a result. */
export function failedResult(reason: string): ShownResult {
  return { text: `The tool failed: ${cut(reason)}`, images: [] };
}

function textOf(block: Block, shown: ReadonlySet<string>): string {
  const { type, text, mimeType, uri, name, resource } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "image" || type === "audio") {
    const image = imageOf(block);
    if (image !== null && shown.has(image)) return `(a picture, ${String(mimeType)}: it follows)`;
    return `(${type === "image" ? "a picture" : "sound"}, ${String(mimeType)}, which cannot be shown)`;
  }
  if (type === "resource_link") return [name, uri].filter((part) => typeof part === "string").join(": ");
  if (type === "resource" && typeof resource === "object" && resource !== null) return resourceText(resource as Block);
  return JSON.stringify(block);
}

function resourceText({ uri, text, mimeType }: Block): string {
  if (typeof text === "string") return `${String(uri)}:\n${text}`;
  return `${String(uri)} (${String(mimeType)}, which cannot be shown)`;
}

function imageOf({ type, data, mimeType }: Block): string | null {
  if (type !== "image" || typeof data !== "string" || data.length > TOOL_RESULT_IMAGE_CHARS_MAX) return null;
  return `data:${String(mimeType)};base64,${data}`;
}

function cut(text: string): string {
  if (text.length <= TOOL_RESULT_CHARS_MAX) return text;
  return `${text.slice(0, TOOL_RESULT_CHARS_MAX)}\n(cut here: it has ${text.length} characters)`;
}
