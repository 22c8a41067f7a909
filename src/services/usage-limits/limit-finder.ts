/** The limits of callers: read with a credential, kept for each account, and dropped in all processes when one changes. */
import type { Logger } from "pino";
import type { CallerLimit } from "../../context.js";
import { groupBy } from "../../lib/collections.js";
import { KeptReads } from "../../lib/kept-reads.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { UsageLimitModel } from "../../store/generated/prisma/models.js";
import { LIMIT_ACCOUNTS_MAX, MODEL_LIMITS_LOOK_MS, MODEL_LIMITS_MAX, USAGE_LIMITS_PER_ACCOUNT_MAX } from "./limits.js";

const MINUTE_MS = 60_000;
const PERIOD_MINUTES = { hour: 60, day: 1_440, week: 10_080, month: 44_640 } as const;

interface KnownLimit extends CallerLimit {
  readonly apiKeyId: string | null;
}

export class LimitFinder {
  private readonly accounts = new KeptReads(LIMIT_ACCOUNTS_MAX, (accountId) => this.read(accountId));
  /** By canonical id. */
  private models: ReadonlyMap<string, readonly CallerLimit[]> = new Map();
  private readonly reading: Repeated;

  constructor(
    private readonly database: Database,
    events: Events,
    log: Logger,
  ) {
    this.reading = new Repeated(() => this.load(), log, "limits of models could not be read; that is repeated").every(MODEL_LIMITS_LOOK_MS);
    events.listen("usage-limits-changed", ({ accountId }) => {
      this.accounts.forget(accountId);
      if (accountId === "") this.reread();
    });
    events.onDoubt(() => {
      this.accounts.forgetAll();
      this.reread();
    });
  }

  /** Reads the limits of models, which are kept in memory. */
  async load(): Promise<void> {
    const rows = await this.find({ accountId: null }, MODEL_LIMITS_MAX);
    this.models = groupBy(rows, ({ model }) => model ?? "");
  }

  close(): Promise<void> {
    return this.reading.close();
  }

  /** Those of the model, over all accounts. Undefined: none. */
  ofModel(modelId: string): readonly CallerLimit[] | undefined {
    return this.models.get(modelId);
  }

  /** Any model has limits over all accounts. */
  get hasModels(): boolean {
    return this.models.size > 0;
  }

  /** Twice, as a read under way may have missed the change. */
  private reread(): void {
    void this.reading.now().then(() => this.reading.now());
  }

  /** Those of the account and of these keys, in the order of their ids. Undefined: none. */
  async of(accountId: string, apiKeyIds: readonly string[]): Promise<readonly CallerLimit[] | undefined> {
    const all = await this.accounts.get(accountId);
    const found = all.filter(({ apiKeyId }) => apiKeyId === null || apiKeyIds.includes(apiKeyId));
    return found.length === 0 ? undefined : found;
  }

  private read(accountId: string): Promise<readonly KnownLimit[]> {
    // Twice: operators' limits of the account are beside those of its keys.
    return this.find({ accountId }, 2 * USAGE_LIMITS_PER_ACCOUNT_MAX);
  }

  private async find(where: { readonly accountId: string | null }, take: number): Promise<readonly KnownLimit[]> {
    const { accountId } = where;
    const rows = await this.database.prisma.usageLimit.findMany({
      where,
      select: { id: true, apiKeyId: true, metric: true, model: true, period: true, minutes: true, isRolling: true, alertAt: true },
      orderBy: { id: "asc" },
      take,
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
