/** The gateway as an MCP server (docs/spec/mcp.md#gateway, /mcp): its tools, for callers with a key. It knows no transport. */
import * as z from "zod";
import { deriveContext, type RequestContext } from "../../context.js";
import { permissionDenied } from "../../errors.js";
import { isLoopbackHostname } from "../../lib/urls.js";
import { requireCaller } from "../access/permissions.js";
import type { ProtectedResources } from "../access/protected-resources.js";
import { parseInput } from "../requests/input.js";
import type { McpToolResult } from "./mcp-tools.js";
import type { ToolCallId, ToolCalls } from "./tool-calls.js";
import type { GatewayTool, Report } from "./tools/tool.js";

/** A tool as the protocol shows it. */
export interface GatewayToolEntry {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: { readonly type: "object" } & Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, boolean>>;
}

export interface GatewayToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Identifies the call in a cancellation: session and request id; null without a session. */
  readonly id: ClientCallId | null;
}

export type ClientCallId = Pick<ToolCallId, "sessionId" | "requestId">;

export interface McpGatewayOptions {
  readonly tools: readonly GatewayTool[];
  readonly calls: ToolCalls;
  readonly resources: Pick<ProtectedResources, "assertUsableAtMcp" | "mcpMetadataUrl">;
  /** The gateway's own addresses. */
  readonly ownUrls: () => readonly string[];
}

export class McpGateway {
  private entries: readonly GatewayToolEntry[] | undefined;

  constructor(private readonly options: McpGatewayOptions) {}

  /** Address of the metadata that clients sign in by (RFC 9728). */
  get metadataUrl(): string {
    return this.options.resources.mcpMetadataUrl;
  }

  /** Throws UNAUTHORIZED without a key or session, and for a key that was granted for another resource. */
  assertUsable(ctx: RequestContext): void {
    this.options.resources.assertUsableAtMcp(ctx);
  }

  /** The same for every caller. */
  listTools(ctx: RequestContext): readonly GatewayToolEntry[] {
    requireCaller(ctx);
    this.entries ??= this.options.tools.map(toEntry);
    return this.entries;
  }

  hasTool(name: string): boolean {
    return this.options.tools.some((tool) => tool.name === name);
  }

  /** Rejects with the AppErrors of the same request over REST. */
  async callTool(ctx: RequestContext, call: GatewayToolCall, report: Report | null): Promise<McpToolResult> {
    const id = call.id && { ...principalOf(ctx), ...call.id };
    const tool = this.options.tools.find(({ name }) => name === call.name);
    if (!tool) throw new Error(`There is no tool ${call.name}.`);
    if (!tool.isReadOnly && ctx.note) ctx.note.isGeneration = true;
    const input = parseInput(tool.input, withoutNulls(call.arguments));
    return this.options.calls.run(id, ctx.signal, (signal) => tool.call(deriveContext(ctx, { signal }), input, report));
  }

  cancel(ctx: RequestContext, id: ClientCallId): void {
    this.options.calls.cancel({ ...principalOf(ctx), ...id });
  }

  /**
   * Streamable HTTP, "Security Warning": pages of other sites may not call, with or without a key. Pages on this machine may, for developer
   * tools. Throws FORBIDDEN.
   */
  assertOrigin(origin: string | undefined): void {
    if (origin === undefined) return;
    const page = URL.canParse(origin) ? new URL(origin) : null;
    const isOwn = page !== null && this.options.ownUrls().some((url) => new URL(url).origin === page.origin);
    if (!isOwn && !(page && isLoopbackHostname(page.hostname))) throw permissionDenied("Pages of this origin may not use /mcp.");
  }
}

function principalOf(ctx: RequestContext): Pick<ToolCallId, "accountId" | "principalId"> {
  const caller = requireCaller(ctx);
  return { accountId: caller.accountId, principalId: caller.kind === "key" ? caller.apiKeyId : caller.sessionId };
}

/** Models that must fill in every field send null for unused ones. */
function withoutNulls(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

function toEntry({ name, title, description, input, isReadOnly }: GatewayTool): GatewayToolEntry {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  const annotations = { readOnlyHint: isReadOnly, destructiveHint: false, idempotentHint: isReadOnly, openWorldHint: !isReadOnly };
  return { name, title, description, inputSchema: inputSchema as GatewayToolEntry["inputSchema"], annotations };
}
