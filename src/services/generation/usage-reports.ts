/** Reports implausible usage, which was charged up to the bound: a metric, and log lines for the operator. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { BOUNDED_USAGE_LOG_MS } from "../../limits.js";
import type { Model } from "../catalog/model.js";
import type { BillableQuantities } from "../catalog/pricing.js";

/** The reported and the charged usage. */
export interface BoundedReport {
  readonly generationId: string;
  readonly reported: BillableQuantities;
  readonly charged: BillableQuantities;
}

interface LastLine {
  readonly at: number;
  /** Count since the last line. */
  unlogged: number;
}

/** Unspecified: models whose last line is remembered. */
const MODELS_MAX = 1_000;

export class BoundedUsage {
  private readonly lines = new Map<string, LastLine>();

  constructor(
    private readonly log: Logger,
    private readonly metrics: { usageBounded(called: Pick<Model, "id" | "isCommunity">): void },
    private readonly clock: Clock,
  ) {}

  /** Logs the first report of a model, then at most one per interval. */
  note(model: Pick<Model, "id" | "upstreamId" | "isCommunity">, report: BoundedReport): void {
    this.metrics.usageBounded(model);
    const now = this.clock.now().getTime();
    const last = this.lines.get(model.id);
    if (last && now - last.at < BOUNDED_USAGE_LOG_MS) {
      last.unlogged += 1;
      return;
    }
    if (this.lines.size >= MODELS_MAX && !last) this.lines.clear();
    this.lines.set(model.id, { at: now, unlogged: 0 });
    const { generationId, reported, charged } = report;
    const amounts = { reported: nonZero(reported), charged: nonZero(charged) };
    const line = { event: "usage-bounded", model: model.id, upstream: model.upstreamId, generationId, ...amounts };
    this.log.warn({ ...line, unlogged: last?.unlogged ?? 0 }, "an upstream reported more usage than is plausible; the bound was charged");
  }
}

function nonZero(amounts: BillableQuantities): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0));
}
