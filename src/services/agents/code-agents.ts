/**
 * Code agents at work (docs/spec/agents.md#code-agents): the agent's script is asked like an upstream that speaks the Responses
 * format, so that what it answers is read, streamed, metered and recorded like any upstream's answer. Only that no connection is made:
 * the request goes into a process of its own, and the answer comes out of it.
 */
import { serviceUnavailable, unauthenticated } from "../../errors.js";
import type { UpstreamPool, UpstreamRequest, UpstreamResponse } from "../../providers/http.js";
import { OpenAiClient } from "../../providers/openai/client.js";
import { ResponsesChatProvider } from "../../providers/openai-endpoint/chat.js";
import type { ChatProvider, UpstreamTimeouts } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { AgentCall, AgentProviders } from "../generation/chat/chat.js";
import type { LoopbackClient } from "../mcp/loopback-client.js";
import type { McpToolServers } from "../mcp/mcp-tools.js";
import { CodeAgentHost } from "./code-agent-host.js";
import type { CodeScripts } from "./code-scripts.js";
import { CODE_RUN_OUTPUT_BYTES_MAX } from "./limits.js";
import type { RunLimits } from "./run-limits.js";
import type { RunTokens } from "./run-tokens.js";
import type { SandboxRunner } from "./sandbox/sandbox-runner.js";

export interface CodeAgentDependencies {
  readonly scripts: CodeScripts;
  readonly sandboxRunner: SandboxRunner;
  readonly runTokens: RunTokens;
  readonly runLimits: RunLimits;
  readonly loopback: LoopbackClient;
  readonly mcpServers: McpToolServers;
  readonly addresses: () => { readonly baseUrl: string };
  readonly timeouts: UpstreamTimeouts;
}

export class CodeAgents implements AgentProviders {
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
    // An agent knows itself by the name that it is called by.
    return {
      complete: (asked) => provider.complete({ ...asked, upstreamModel: model.id }),
      stream: (asked) => provider.stream({ ...asked, upstreamModel: model.id }),
    };
  }

  private async run(model: Model, call: AgentCall, request: UpstreamRequest): Promise<UpstreamResponse> {
    const { sandboxRunner, scripts, runTokens, runLimits, loopback, mcpServers } = this.deps;
    const { ctx, generationId } = call;
    if (ctx.caller.kind === "anonymous") throw unauthenticated("An agent works for somebody.");
    const script = await scripts.find(model.communityModelId ?? "");
    if (script === null) throw serviceUnavailable(`${model.id} is not deployed.`);
    const host = new CodeAgentHost(loopback, mcpServers, runTokens.issue(ctx.caller, await runLimits.begin(call)), ctx.hops);
    const headers = [...pairsOf(request.headers), ["x-request-id", ctx.requestId] as const];
    const task = { script, request: { url: this.addressOf(), headers, body: String(request.body ?? "") } };
    const log = ctx.log.child({ agent: model.id, generationId });
    return sandboxRunner.run(task, { owner: model.owner ?? model.id, host, signal: request.signal, log });
  }

  private addressOf(): string {
    return `${this.deps.addresses().baseUrl}/v1/responses`;
  }
}

/** What the agent is told of the request; there is no Authorization among what is sent to an upstream without a key. */
function pairsOf(headers: readonly string[]): (readonly [string, string])[] {
  return headers.flatMap((name, index) => {
    const value = headers[index + 1];
    const isTold = index % 2 === 0 && (name === "accept" || name === "content-type");
    return isTold && value !== undefined ? [[name, value] as const] : [];
  });
}
