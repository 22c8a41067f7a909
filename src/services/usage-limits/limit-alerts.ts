/**
 * Reports percentages of limits that usage has reached: once in a calendar window, and once in the length of a rolling one, by whichever
 * process marks the row. Looks after charges, gathered for a moment.
 */
import type { Logger } from "pino";
import type { CallerLimit } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { LimitTerms } from "./limit-input.js";
import { LIMIT_ALERT_LOOK_MS } from "./limits.js";
import { formatAmount } from "./usage-limits.js";

interface ReachedRow {
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly model: string | null;
  readonly metric: LimitTerms["metric"];
  readonly percent: number;
  readonly at: Date;
  readonly size: bigint;
  readonly spent: bigint;
}

export interface LimitAlertDependencies {
  readonly database: Pick<Database, "prisma">;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
}

export class LimitAlerts {
  private spent = new Set<string>();
  private timer: NodeJS.Timeout | null = null;
  private readonly looks: Repeated;

  constructor(private readonly deps: LimitAlertDependencies) {
    this.looks = new Repeated(() => this.look(), deps.log, "reached percentages of limits could not be read; the next charge repeats it");
  }

  /** A charge was counted against it. */
  noteSpent({ id, hasAlerts }: CallerLimit): void {
    if (!hasAlerts) return;
    this.spent.add(id);
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.looks.now();
    }, LIMIT_ALERT_LOOK_MS).unref();
  }

  /** Reports everything that was noted. */
  async close(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    await this.looks.now();
    await this.looks.close();
  }

  private async look(): Promise<void> {
    if (this.spent.size === 0) return;
    const ids = [...this.spent];
    this.spent = new Set();
    const now = this.deps.clock.now();
    const reached = await this.deps.database.prisma.$queryRaw<ReachedRow[]>`
      WITH used AS MATERIALIZED (
        SELECT l.*, w.since, usage_limit_spent(l, w.since, ${now}::timestamptz) AS spent,
          l.amount + CASE WHEN l.raise_until > ${now}::timestamptz THEN l.raise_amount ELSE 0 END AS size
        FROM usage_limit l
        CROSS JOIN LATERAL usage_limit_window(l.period, l.minutes, l.is_rolling, l.time_zone, ${now}::timestamptz) w
        WHERE l.id = ANY (${ids}::uuid[])
      ), marked AS (
        INSERT INTO usage_limit_alert AS a (limit_id, percent, since)
          SELECT u.id, p.percent, ${now}::timestamptz FROM used u CROSS JOIN LATERAL unnest(u.alert_at) AS p(percent)
          WHERE u.spent * 100 >= p.percent * u.size ORDER BY 1, 2
        ON CONFLICT (limit_id, percent) DO UPDATE SET since = excluded.since
          WHERE a.since <= (SELECT u.since FROM used u WHERE u.id = a.limit_id)
        RETURNING a.limit_id, a.percent, a.since
      )
      SELECT u.id, u.account_id AS "accountId", u.api_key_id AS "apiKeyId", u.model, u.metric, m.percent, m.since AS at, u.size, u.spent
      FROM marked m JOIN used u ON u.id = m.limit_id ORDER BY m.limit_id, m.percent`;
    for (const { id: limitId, at, size, spent, metric, ...row } of reached) {
      const amounts = { amount: formatAmount(metric, size), spent: formatAmount(metric, spent) };
      this.deps.events.publish("usage-limit-reached", { ...row, limitId, metric, ...amounts, at: at.toISOString() });
    }
  }
}
