/** The limits of callers: read with a credential, kept for each account, and dropped in all processes when one changes. */
import type { CallerLimit } from "../../context.js";
import { KeptReads } from "../../lib/kept-reads.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { UsageLimitModel } from "../../store/generated/prisma/models.js";
import { LIMIT_ACCOUNTS_MAX, USAGE_LIMITS_PER_ACCOUNT_MAX } from "./limits.js";

const MINUTE_MS = 60_000;
const PERIOD_MINUTES = { hour: 60, day: 1_440, week: 10_080, month: 44_640 } as const;

interface KnownLimit extends CallerLimit {
  readonly apiKeyId: string | null;
}

export class LimitFinder {
  private readonly accounts = new KeptReads(LIMIT_ACCOUNTS_MAX, (accountId) => this.read(accountId));

  constructor(
    private readonly database: Database,
    events: Events,
  ) {
    events.listen("usage-limits-changed", ({ accountId }) => this.accounts.forget(accountId));
    events.onDoubt(() => this.accounts.forgetAll());
  }

  /** Those of the account and of these keys, in the order of their ids. Undefined: none. */
  async of(accountId: string, apiKeyIds: readonly string[]): Promise<readonly CallerLimit[] | undefined> {
    const all = await this.accounts.get(accountId);
    const found = all.filter(({ apiKeyId }) => apiKeyId === null || apiKeyIds.includes(apiKeyId));
    return found.length === 0 ? undefined : found;
  }

  private async read(accountId: string): Promise<readonly KnownLimit[]> {
    const rows = await this.database.prisma.usageLimit.findMany({
      where: { accountId },
      select: { id: true, apiKeyId: true, metric: true, model: true, period: true, minutes: true, isRolling: true, alertAt: true },
      orderBy: { id: "asc" },
      // Twice: operators' limits of the account are beside those of its keys.
      take: 2 * USAGE_LIMITS_PER_ACCOUNT_MAX,
    });
    return rows.map(({ id, apiKeyId, metric, model, alertAt, ...window }) => {
      const isOfKey = apiKeyId !== null;
      return { id, accountId, apiKeyId, metric, model, isOfKey, rollingMs: rollingMsOf(window), hasAlerts: alertAt.length > 0 };
    });
  }
}

function rollingMsOf({ period, minutes, isRolling }: Pick<UsageLimitModel, "period" | "minutes" | "isRolling">): number | null {
  if (!isRolling) return null;
  return MINUTE_MS * (minutes ?? (period === null ? 0 : PERIOD_MINUTES[period]));
}
