/** Changes of an owner's models as a subscription, with each scheduled change when it takes effect. */
import type { RequestContext } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { EventQueue } from "../accounts/live.js";
import type { ModelChange } from "./repository.js";

export interface AnnouncedChange {
  readonly modelId: string;
  readonly change: ModelChange;
}

export interface WatchDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
}

/** Changes that a slow subscriber may fall behind by; beyond that the oldest are dropped. */
const BACKLOG_MAX = 1_000;
/** The longest that a timer waits (Node: 2^31 - 1 ms). */
const TIMER_MS_MAX = 2_147_483_647;

/** Ends with the context's signal. */
export function watchModels(
  ctx: RequestContext,
  accountId: string,
  { database, events, clock }: WatchDependencies,
): EventQueue<AnnouncedChange> {
  const queue = new EventQueue<AnnouncedChange>(BACKLOG_MAX);
  const alarm = new DueAlarm(database, clock, accountId, ctx, (modelId) => queue.push({ modelId, change: "updated" }));
  queue.onClose(
    events.listenToAccount("community-model-changed", accountId, ({ modelId, change }) => {
      queue.push({ modelId, change: change as ModelChange });
      alarm.set();
    }),
  );
  queue.onClose(() => alarm.close());
  if (ctx.signal.aborted) queue.close();
  else ctx.signal.addEventListener("abort", () => queue.close(), { once: true });
  alarm.set();
  return queue;
}

/** Reports each of an account's models whose scheduled change takes effect. */
class DueAlarm {
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;
  /** Changes that took effect until then have been reported. */
  private reportedUpTo: Date;
  private looking: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly accountId: string,
    private readonly ctx: RequestContext,
    private readonly ring: (modelId: string) => void,
  ) {
    this.reportedUpTo = clock.now();
  }

  /** Looks for due changes and waits for the next one. Looks run one after another. */
  set(): void {
    this.looking = this.looking
      .then(() => this.look())
      .catch((error: unknown) => this.ctx.log.warn({ err: error }, "could not look for scheduled changes of models"));
  }

  close(): void {
    this.isClosed = true;
    if (this.timer) clearTimeout(this.timer);
  }

  private async look(): Promise<void> {
    if (this.isClosed) return;
    const { accountId, reportedUpTo } = this;
    const scheduled = await this.database.prisma.communityModel.findMany({
      where: { accountId, pendingEffectiveAt: { gt: reportedUpTo } },
      select: { id: true, pendingEffectiveAt: true },
      orderBy: { pendingEffectiveAt: "asc" },
    });
    if (this.isClosed) return;
    const now = this.clock.now();
    const times = scheduled.map(({ id, pendingEffectiveAt }) => ({ id, at: pendingEffectiveAt ?? now }));
    for (const { id, at } of times) if (at <= now) this.ring(id);
    if (now > this.reportedUpTo) this.reportedUpTo = now;
    const next = times.find(({ at }) => at > now);
    if (this.timer) clearTimeout(this.timer);
    this.timer = next ? setTimeout(() => this.set(), Math.min(next.at.getTime() - now.getTime(), TIMER_MS_MAX)).unref() : null;
  }
}
