/** The charge that a chat is opened with, and what it is opened by. */
import type { RequestContext } from "../../../context.js";
import { NO_USAGE } from "../../../lib/usage.js";
import type { Catalog } from "../../catalog/catalog.js";
import { type Credits, type OpenCharge, payerOf } from "../../credits/credits.js";
import type { OutputEstimates } from "../../credits/output-estimates.js";
import type { Admission } from "../admission.js";
import type { AgentProviders } from "../agent-providers.js";
import type { HealthReporter } from "../health-reporter.js";
import type { RunningGenerations } from "../running-generations.js";
import type { Upstreams } from "../upstreams.js";
import type { ProviderOf } from "./chat-attempts.js";
import { type ChatPlan, toLedgerRecord } from "./chat-plan.js";

export interface ChatDependencies {
  readonly catalog: Catalog;
  readonly credits: Credits;
  readonly estimates: OutputEstimates;
  readonly upstreams: Upstreams;
  readonly agents: AgentProviders;
  readonly admission: Admission;
  readonly healthReporter: HealthReporter;
  readonly running: RunningGenerations;
  /** A generation's total, in milliseconds. */
  readonly totalMs: number;
}

/** An agent that the gateway runs answers by itself; every other model has an upstream. */
export function chatProviderFor({ upstreams, agents }: ChatDependencies, ctx: RequestContext, generationId: string): ProviderOf {
  return (model) => {
    const isRunHere = model.agentType === "prompt_agent" || model.agentType === "code_agent";
    return isRunHere ? agents.chat(model, { ctx, generationId }) : upstreams.chat(ctx, model);
  };
}

export function openCharge(credits: Credits, plan: ChatPlan): OpenCharge {
  const { caller } = plan;
  return credits.open({
    generationId: plan.generationId,
    payer: payerOf(caller),
    estimate: plan.hold.estimate,
    least: plan.hold.least,
    most: plan.hold.most,
    paidOnly: plan.model.paidOnly,
    isFree: plan.isFree,
    record: toLedgerRecord(plan, {
      modelUsed: plan.model.id,
      usage: NO_USAGE,
      usageSource: "partial",
      status: "cancelled",
      firstTokenMs: null,
    }),
  });
}
