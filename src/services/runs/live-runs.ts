/** Changes of a run and of the runs below it as a subscription: calls, holds, questions, runs that begin and end. */
import { setTimeout as sleep } from "node:timers/promises";
import type { RequestContext } from "../../context.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireAccount } from "../access/permissions.js";
import { mapEvents, queueOf } from "../accounts/live.js";
import { inTreeOf } from "../api-keys/api-key-tree.js";
import { RUN_CHANGES_MS } from "./limits.js";
import type { Runs } from "./runs.js";

export class LiveRuns {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly runs: Runs,
  ) {}

  /** Yields at once, and when the run or a run below it has changed; changes within a moment are one. Rejects with NOT_FOUND. */
  changes(ctx: RequestContext, id: string): AsyncIterableIterator<{ readonly runId: string }> {
    const { accountId } = requireAccount(ctx);
    const source = queueOf(this.events, ctx, "run-changed", accountId, 1);
    const notice = () => source.push({ accountId, runId: id, change: "spent" });
    source.onClose(this.events.listenToAccount("balance-changed", accountId, notice));
    source.onClose(this.events.listenToAccount("usage-recorded", accountId, notice));
    source.onClose(this.events.listenToAccount("api-key-changed", accountId, notice));
    source.onClose(this.events.onGap(notice));
    let last: string | null = null;
    notice();
    return mapEvents(source, async () => {
      if (last === null) await this.runs.get(ctx, id, {});
      else await sleep(RUN_CHANGES_MS);
      const state = await this.stateOf(id);
      if (state === last) return null;
      last = state;
      return { runId: id };
    });
  }

  /** A text that differs when something of the tree differs. */
  private async stateOf(id: string): Promise<string> {
    const { prisma } = this.database;
    const where = inTreeOf(id);
    const [sums, asking] = await Promise.all([
      prisma.apiKey.aggregate({
        where,
        _count: { id: true, revokedAt: true },
        _sum: { spentNanocredits: true, heldNanocredits: true, budgetNanocredits: true },
      }),
      prisma.run.aggregate({ where: { key: where, askedNanocredits: { not: null } }, _count: true, _max: { askedAt: true } }),
    ]);
    return [
      ...[sums._count.id, sums._count.revokedAt, sums._sum.spentNanocredits, sums._sum.heldNanocredits],
      ...[asking._count, asking._max.askedAt?.getTime(), sums._sum.budgetNanocredits],
    ].join(" ");
  }
}
