/**
 * Runs prompt agents: each answers a chat by calling its base model, with its tools, as its caller. Its generations are held, charged and
 * recorded as the caller's own, under the agent's generation; the agent itself costs nothing.
 */
import { setMaxListeners } from "node:events";
import { type AgentRun, deriveContext, type KeyCaller, type RequestContext, type SessionCaller } from "../../context.js";
import { AppError } from "../../errors.js";
import type { ChatChunkObject, ChatCompletion, ChatDelta } from "../../formats/openai-chat/schema.js";
import type { ChatChunk, ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import type { Clock } from "../../lib/clock.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { formatSseEvent } from "../../lib/sse.js";
import { type ChatAnswer, type ChatCall, type ChatProvider, toSignal } from "../../providers/provider.js";
import { requireCaller } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model } from "../catalog/model.js";
import type { ChatCompletions } from "../generation/chat/chat.js";
import type { AgentCall, AgentProviders } from "../generation/upstreams.js";
import type { McpToolServers } from "../mcp/mcp-tools.js";
import { AgentTools } from "./agent-tools.js";
import { type RunStep, runStreamedStep, runWholeStep } from "./model-steps.js";
import type { PromptDefinitions } from "./prompt-definitions.js";
import { baseModelGone, type RunEnd, runPromptAgent } from "./prompt-run.js";
import type { BoundedRun, RunLimits } from "./run-limits.js";
import type { RunTokens } from "./run-tokens.js";

export interface PromptAgentsDependencies {
  readonly chat: ChatCompletions;
  readonly catalog: Catalog;
  readonly definitions: PromptDefinitions;
  readonly servers: McpToolServers;
  readonly runTokens: Pick<RunTokens, "issue">;
  readonly runLimits: RunLimits;
  readonly clock: Clock;
}

type Deltas = AsyncGenerator<readonly ChatDelta[], RunEnd>;

/** Its abort signal is passed on to tools. */
interface AgentRequest extends ChatCall {
  readonly signal: AbortSignal;
}

interface StartedRun extends BoundedRun {
  readonly token: string;
}

interface BegunRun {
  readonly deltas: Deltas;
  /** One sentence per option that has no effect. */
  readonly warnings: readonly string[];
}

export class PromptAgents implements Pick<AgentProviders, "chat"> {
  constructor(private readonly deps: PromptAgentsDependencies) {}

  chat(model: Model, call: AgentCall): ChatProvider {
    return {
      complete: (request) => this.complete(model, call, withSignal(request)),
      stream: async (request) => this.stream(model, call, withSignal(request)),
    };
  }

  private async complete(model: Model, agentCall: AgentCall, request: AgentRequest): Promise<ChatAnswer> {
    return this.atWork(agentCall, request, async (run) => {
      const { deltas, warnings } = await this.begin(model, agentCall, request, run, runWholeStep(this.deps.chat));
      const message: Record<string, string> = {};
      for (;;) {
        const { done, value } = await deltas.next();
        if (!done) for (const delta of value) append(message, delta);
        else {
          const { content = "", ...more } = message;
          const choice = { index: 0, message: { role: "assistant", content, ...more }, logprobs: null, finish_reason: value.finishReason };
          const completion: ChatCompletion = { ...this.head(model, agentCall), object: "chat.completion", choices: [choice] };
          return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: null, warnings };
        }
      }
    });
  }

  /** Yields nothing before the model has answered, so that a failure until then has its own status. */
  private async *stream(model: Model, agentCall: AgentCall, request: AgentRequest): AsyncGenerator<ChatChunkBatch> {
    const head = { ...this.head(model, agentCall), object: "chat.completion.chunk" };
    const run = await this.startRun(agentCall);
    let deltas: Deltas | null = null;
    try {
      const begun = await this.begin(model, agentCall, request, run, runStreamedStep(this.deps.chat));
      ({ deltas } = begun);
      let first: Partial<ChatChunk> | null = { warnings: begun.warnings };
      for (;;) {
        const { done, value } = await deltas.next();
        const pieces = done ? [{ delta: {}, finish_reason: value.finishReason }] : value.map((delta) => ({ delta, finish_reason: null }));
        yield pieces.map(({ delta, finish_reason }) => {
          const role = first && { role: "assistant" };
          const chunk = toChunk({ ...head, choices: [{ index: 0, delta: { ...role, ...delta }, logprobs: null, finish_reason }] });
          const made = { ...chunk, ...first };
          first = null;
          return made;
        });
        if (done) return;
      }
    } catch (error) {
      request.signal.throwIfAborted();
      throw error;
    } finally {
      await deltas?.return({ finishReason: "stop" });
      this.deps.servers.endRun(run.token);
    }
  }

  private async atWork<Result>(call: AgentCall, { signal }: AgentRequest, work: (run: StartedRun) => Promise<Result>): Promise<Result> {
    const run = await this.startRun(call);
    try {
      return await work(run);
    } catch (error) {
      // The agent's own generations fail for the same reason, with their own messages.
      signal.throwIfAborted();
      throw error;
    } finally {
      this.deps.servers.endRun(run.token);
    }
  }

  private async startRun(call: AgentCall): Promise<StartedRun> {
    const run = await this.deps.runLimits.begin(call);
    return { ...run, token: this.deps.runTokens.issue(requireCaller(call.ctx), run) };
  }

  private async begin(
    model: Model,
    call: AgentCall,
    request: AgentRequest,
    { token: runToken, ...run }: StartedRun,
    runStep: RunStep,
  ): Promise<BegunRun> {
    const { body, signal } = request;
    // Every tool call under way listens to it.
    setMaxListeners(0, signal);
    const { systemPrompt, baseModel, mcpServers } = await this.deps.definitions.find(model);
    const ctx = contextOf(call, run, signal);
    const base = this.resolveBase(ctx, baseModel);
    const tools = await AgentTools.open(this.deps.servers, mcpServers, { runToken, signal, hops: ctx.hops });
    return { deltas: runPromptAgent({ ctx, runStep, base, systemPrompt, tools, body }), warnings: warningsOf(request, tools) };
  }

  /** Throws SERVICE_UNAVAILABLE when the model is gone, FORBIDDEN when the caller's key may not use it. */
  private resolveBase(ctx: RequestContext, baseModel: string): Model {
    try {
      return this.deps.catalog.resolve(ctx.caller, baseModel, "text");
    } catch (error) {
      throw error instanceof AppError && error.code === "BAD_REQUEST" ? baseModelGone(error) : error;
    }
  }

  private head(model: Model, { generationId }: AgentCall) {
    return { id: `chatcmpl-${generationId}`, created: Math.floor(this.deps.clock.now().getTime() / 1000), model: model.id };
  }
}

function withSignal(request: ChatCall): AgentRequest {
  return { ...request, signal: toSignal(request.signal) };
}

/** The context of the agent's generations: they belong to its caller, have their own ids, and end with the agent's. */
function contextOf({ ctx }: AgentCall, run: AgentRun, signal: AbortSignal): RequestContext {
  const caller: KeyCaller | SessionCaller = { ...requireCaller(ctx), run };
  return deriveContext(ctx, { caller, signal, note: undefined, maxCost: undefined, wishes: undefined });
}

function warningsOf({ body }: ChatCall, { leftOut }: AgentTools): readonly string[] {
  const { tools, functions, n } = body;
  return [
    ...([tools, functions].some((list) => Array.isArray(list) && list.length > 0) ? ["tools: an agent uses its own."] : []),
    ...(typeof n === "number" && n > 1 ? ["n: an agent answers once."] : []),
    ...(leftOut > 0 ? [`The agent's servers have ${leftOut} tools more than a model is offered.`] : []),
  ];
}

function append(message: Record<string, string>, delta: ChatDelta): void {
  for (const [name, value] of Object.entries(delta)) {
    if (typeof value === "string") setOwnValue(message, name, (ownValue(message, name) ?? "") + value);
  }
}

function toChunk(object: ChatChunkObject): ChatChunk {
  return { object, bytes: formatSseEvent(JSON.stringify(object)), usage: null };
}
