/** Reports implausible usage, which was charged up to the bound: a metric, and log lines for the operator. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { LogLimit } from "../../lib/log-limit.js";
import { BOUNDED_USAGE_LOG_MS } from "../../limits.js";
import type { Model } from "../catalog/model.js";
import type { BillableQuantities } from "../catalog/pricing.js";
import type { Candidate } from "./routing/candidate.js";

export interface BoundedReport {
  readonly generationId: string;
  readonly reported: BillableQuantities;
  readonly charged: BillableQuantities;
}

export class BoundedUsage {
  private readonly limit: LogLimit;

  constructor(
    private readonly log: Logger,
    private readonly metrics: { usageBounded(called: Pick<Model, "id" | "isCommunity">): void },
    clock: Clock,
  ) {
    this.limit = new LogLimit(clock, BOUNDED_USAGE_LOG_MS);
  }

  /** Logs the first report of a model, then at most one per interval. */
  note({ model, route }: Candidate, report: BoundedReport): void {
    this.metrics.usageBounded(model);
    const unlogged = this.limit.admit(model.id);
    if (unlogged === null) return;
    const { generationId, reported, charged } = report;
    const amounts = { reported: nonZero(reported), charged: nonZero(charged) };
    const line = { event: "usage-bounded", model: model.id, upstream: route.upstreamId, generationId, ...amounts };
    this.log.warn({ ...line, unlogged }, "an upstream reported more usage than is plausible; the bound was charged");
  }
}

function nonZero(amounts: BillableQuantities): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0));
}
