/** Alerts about models that their upstream retires, for the accounts that have used them lately. */
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Catalog } from "../catalog/catalog.js";
import { ALERTS_PAGE_ROWS, ALERTS_PAGES_MAX, MODEL_USE_DAYS } from "./limits.js";
import type { AlertRaiser } from "./raiser.js";
import { MODEL_NOTICE_DAYS } from "./rules.js";

const DAY_MS = 86_400_000;

export class ModelAlerts {
  constructor(
    private readonly database: Database,
    private readonly raiser: AlertRaiser,
    private readonly catalog: Pick<Catalog, "models">,
    private readonly clock: Clock,
  ) {}

  /**
   * Evaluates every model of the operator's catalog that is retired within the days of an account's rule, for a bounded number of accounts
   * that have no alert of it yet.
   */
  async evaluate(): Promise<void> {
    const now = this.clock.now().getTime();
    const since = new Date(now - MODEL_USE_DAYS * DAY_MS).toISOString().slice(0, 10);
    let pages = 0;
    for (const { id, title, retiresAt } of this.catalog.models) {
      if (retiresAt === null) continue;
      const daysLeft = Math.max(0, Math.ceil((retiresAt.getTime() - now) / DAY_MS));
      const occurrence = `${id} ${retiresAt.toISOString()}`;
      for (let count = ALERTS_PAGE_ROWS; count === ALERTS_PAGE_ROWS && pages < ALERTS_PAGES_MAX; pages += 1) {
        const users = await this.database.prisma.$queryRaw<{ readonly accountId: string }[]>`
          SELECT DISTINCT u.account_id::text AS "accountId" FROM usage_daily u
          WHERE u.model = ${id} AND u.day >= ${since}::date
            AND NOT EXISTS (SELECT FROM alert a WHERE a.account_id = u.account_id AND a.kind = 'model_deprecated' AND a.occurrence = ${occurrence})
            AND coalesce((SELECT CASE WHEN r.is_enabled THEN coalesce((r.parameters ->> 'days')::integer, ${MODEL_NOTICE_DAYS}) ELSE -1 END
              FROM alert_rule r WHERE r.account_id = u.account_id AND r.kind = 'model_deprecated'), ${MODEL_NOTICE_DAYS}) >= ${daysLeft}
          LIMIT ${ALERTS_PAGE_ROWS}`;
        const details = { model: id, retiresAt: retiresAt.toISOString() };
        const subject = { subjectId: id, subjectName: title };
        const raised = await this.raiser.raise(
          "model_deprecated",
          users.map(({ accountId }) => ({ accountId, occurrence, details, ...subject })),
        );
        count = raised === 0 ? 0 : users.length;
      }
    }
  }
}
