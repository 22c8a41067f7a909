/** Alerts about spend that is unusual for the hour and weekday, read from the roll-ups by hour. At most one an account and day, in UTC. */
import type { Clock } from "../../lib/clock.js";
import { toCreditsNumber } from "../../lib/money.js";
import type { Database } from "../../store/database.js";
import { ALERTS_PAGE_ROWS, SPEND_WEEKS, SPEND_WEEKS_MIN } from "./limits.js";
import type { AlertRaiser, FoundAlert } from "./raiser.js";
import { ruleOf } from "./rules.js";
import { judgeSpend } from "./spend.js";

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** The same hour of a past week and those around it. */
const AROUND = [-1, 0, 1] as const;

interface HourSpend {
  readonly accountId: string;
  readonly start: Date;
  readonly cost: string;
}

export class SpendAlerts {
  constructor(
    private readonly database: Database,
    private readonly raiser: AlertRaiser,
    private readonly clock: Clock,
  ) {}

  /** The hour under way, whose spend only grows, and the one before it. */
  hours(): readonly [Date, Date] {
    const current = Math.floor(this.clock.now().getTime() / HOUR_MS) * HOUR_MS;
    return [new Date(current), new Date(current - HOUR_MS)];
  }

  /** Evaluates the accounts of one page, those after `after`. Returns the id to go on with; null: there are no more. */
  async evaluate(hour: Date, after: string | null): Promise<string | null> {
    const { prisma } = this.database;
    const time = hour.toISOString();
    const spent = await prisma.$queryRaw<(Omit<HourSpend, "start"> & { createdAt: Date })[]>`
      SELECT r.account_id::text AS "accountId", sum(r.cost_nanocredits)::text AS cost, min(a.created_at) AS "createdAt"
      FROM usage_hour_rollup r JOIN account a ON a.id = r.account_id
      WHERE r.level = 0 AND r.model = '' AND r.start = ${time}::timestamptz
        AND r.account_id > coalesce(${after}::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
      GROUP BY r.account_id HAVING sum(r.cost_nanocredits) > 0
      ORDER BY r.account_id LIMIT ${ALERTS_PAGE_ROWS}`;
    const known = spent.filter(({ createdAt }) => createdAt.getTime() <= hour.getTime() - SPEND_WEEKS_MIN * WEEK_MS);
    const accountIds = known.map(({ accountId }) => accountId);
    const history = await this.historyOf(accountIds, hour);
    const stored = await prisma.alertRule.findMany({ where: { accountId: { in: accountIds }, kind: "spend_unusual" } });
    const rules = new Map(stored.map((rule) => [rule.accountId, rule]));
    const found = known.flatMap(({ accountId, cost, createdAt }): FoundAlert[] => {
      const { minimumSpend } = ruleOf("spend_unusual", rules.get(accountId));
      const comparable = comparableHours(hour, createdAt).map((start) => history.get(`${accountId} ${start.getTime()}`) ?? 0n);
      const { isUnusual, usual } = judgeSpend(BigInt(cost), comparable, minimumSpend ?? 0n);
      if (!isUnusual) return [];
      const details = { hour: time, spent: toCreditsNumber(BigInt(cost)), usual: toCreditsNumber(usual) };
      return [{ accountId, occurrence: time.slice(0, 10), subjectId: "", subjectName: null, details }];
    });
    await this.raiser.raise("spend_unusual", found);
    return spent.length < ALERTS_PAGE_ROWS ? null : (spent.at(-1)?.accountId ?? null);
  }

  /** Nanocredits by account and hour. */
  private async historyOf(accountIds: readonly string[], hour: Date): Promise<ReadonlyMap<string, bigint>> {
    if (accountIds.length === 0) return new Map();
    const starts = comparableHours(hour, new Date(0)).map((start) => start.toISOString());
    const rows = await this.database.prisma.$queryRaw<HourSpend[]>`
      SELECT account_id::text AS "accountId", start, sum(cost_nanocredits)::text AS cost FROM usage_hour_rollup
      WHERE account_id = ANY (${[...accountIds]}::uuid[]) AND level = 0 AND start = ANY (${starts}::timestamptz[])
      GROUP BY account_id, start`;
    return new Map(rows.map(({ accountId, start, cost }) => [`${accountId} ${start.getTime()}`, BigInt(cost)]));
  }
}

/** Since the account exists. Hours without usage are comparable too: they cost 0. */
function comparableHours(hour: Date, createdAt: Date): Date[] {
  const hours = Array.from({ length: SPEND_WEEKS }, (_, week) => hour.getTime() - (week + 1) * WEEK_MS);
  return hours.flatMap((start) => AROUND.map((step) => new Date(start + step * HOUR_MS))).filter((start) => start >= createdAt);
}
