/**
 * What callers are charged for the generations that an agent asks for while it answers: told beside the agent's own cost, which is
 * nothing. Only for display: the usage rows are what counts.
 */
import { LRUCache } from "lru-cache";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { AGENT_RUNS_NOTED_MAX, RUN_TOKEN_MS } from "../../limits.js";
import type { Model } from "../catalog/model.js";

export class ChildCosts {
  /** By the agent's generation, in nanocredits. */
  private readonly sums = new LRUCache<string, bigint>({ max: AGENT_RUNS_NOTED_MAX, ttl: RUN_TOKEN_MS });

  add({ run }: KeyCaller | SessionCaller, nanocredits: bigint): void {
    if (run && nanocredits > 0n) this.sums.set(run.parentRequestId, (this.sums.get(run.parentRequestId) ?? 0n) + nanocredits);
  }

  /** What has been charged so far; undefined for a model that asks for none. */
  of({ agentType }: Model, generationId: string): bigint | undefined {
    return agentType === "prompt_agent" || agentType === "code_agent" ? (this.sums.get(generationId) ?? 0n) : undefined;
  }
}
