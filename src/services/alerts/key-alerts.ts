/** Alerts about keys: budgets that are spent, and keys that nothing uses. Keys are read in pages, by id. */
import type { Clock } from "../../lib/clock.js";
import { toCreditsNumber } from "../../lib/money.js";
import type { Database } from "../../store/database.js";
import type { Leases } from "../credits/leases.js";
import { ALERTS_PAGE_ROWS } from "./limits.js";
import type { AlertRaiser, FoundAlert } from "./raiser.js";
import { type AlertKind, type AlertRule, ruleOf } from "./rules.js";

const COLUMNS = {
  ...{ id: true, accountId: true, name: true, start: true, origin: true, expiresAt: true, createdAt: true, lastUsedAt: true },
  ...{ budgetNanocredits: true, spentNanocredits: true, type: true, isManagement: true },
} as const;

const DAY_MS = 86_400_000;
const KINDS = ["budget_reached", "key_unused"] as const satisfies readonly AlertKind[];

interface WatchedKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly origin: string;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly budgetNanocredits: bigint | null;
  readonly spentNanocredits: bigint;
  readonly type: "secret" | "publishable";
  readonly isManagement: boolean;
}

export class KeyAlerts {
  constructor(
    private readonly database: Database,
    private readonly raiser: AlertRaiser,
    private readonly leases: Pick<Leases, "fold">,
    private readonly clock: Clock,
  ) {}

  /** Evaluates the keys of one page, those after `after`. Returns the id to go on with; null: there are no more. */
  async evaluate(after: string | null): Promise<string | null> {
    const { apiKey, alertRule } = this.database.prisma;
    const where = { revokedAt: null, ...(after !== null && { id: { gt: after } }) };
    const page = { where, orderBy: { id: "asc" }, take: ALERTS_PAGE_ROWS } as const;
    const ids = await apiKey.findMany({ ...page, select: { id: true, accountId: true } });
    const accountIds = [...new Set(ids.map(({ accountId }) => accountId))];
    // Leases hold spent credits that the columns lack until they are folded.
    await this.leases.fold(accountIds);
    const keys = await apiKey.findMany({ where: { id: { in: ids.map(({ id }) => id) }, revokedAt: null }, select: COLUMNS });
    const stored = await alertRule.findMany({ where: { accountId: { in: accountIds }, kind: { in: [...KINDS] } } });
    const rules = new Map(stored.map((rule) => [`${rule.accountId} ${rule.kind}`, rule]));
    const ruleFor = (kind: AlertKind, accountId: string) => ruleOf(kind, rules.get(`${accountId} ${kind}`));
    const live = keys.filter(({ expiresAt }) => expiresAt === null || expiresAt > this.clock.now());
    await this.raiser.raise(
      "budget_reached",
      live.flatMap((key) => this.budgetOf(key, ruleFor("budget_reached", key.accountId)) ?? []),
    );
    const unused = live.filter((key) => this.isUnused(key, ruleFor("key_unused", key.accountId)));
    const apps = await this.appsOf(unused);
    await this.raiser.raise(
      "key_unused",
      unused.filter(({ id }) => !apps.has(id)).map((key) => toUnused(key, ruleFor("key_unused", key.accountId))),
    );
    return ids.length < ALERTS_PAGE_ROWS ? null : (ids.at(-1)?.id ?? null);
  }

  /** The highest percentage that is reached, once for each budget: a changed budget is another one. */
  private budgetOf(key: WatchedKey, { percents }: AlertRule): FoundAlert | null {
    const { budgetNanocredits: budget, spentNanocredits: spent } = key;
    if (budget === null || budget <= 0n || key.origin === "run") return null;
    const reached = (percents ?? []).filter((percent) => spent * 100n >= budget * BigInt(percent));
    if (reached.length === 0) return null;
    const percent = reached.reduce((highest, each) => Math.max(highest, each));
    const details = { percent, creditBudget: toCreditsNumber(budget), spent: toCreditsNumber(spent) };
    return { ...subjectOf(key), occurrence: `${key.id} ${budget} ${percent}`, details };
  }

  /** Management keys generate nothing, so their last use is not known. */
  private isUnused({ origin, isManagement, lastUsedAt, createdAt }: WatchedKey, { days }: AlertRule): boolean {
    if (days === null || origin === "run" || isManagement) return false;
    return this.clock.now().getTime() - (lastUsedAt ?? createdAt).getTime() >= days * DAY_MS;
  }

  /** Ids of app keys that people have granted keys to: those are used, the app keys only identify the app. */
  private async appsOf(keys: readonly WatchedKey[]): Promise<ReadonlySet<string | null>> {
    const ids = keys.flatMap(({ id, type }) => (type === "publishable" ? [id] : []));
    if (ids.length === 0) return new Set();
    const where = { appKeyId: { in: ids }, revokedAt: null };
    const granted = await this.database.prisma.apiKey.findMany({ where, distinct: ["appKeyId"], select: { appKeyId: true } });
    return new Set(granted.map(({ appKeyId }) => appKeyId));
  }
}

function toUnused(key: WatchedKey, { days }: AlertRule): FoundAlert {
  const details = { days, lastUsedAt: key.lastUsedAt?.toISOString() ?? null };
  return { ...subjectOf(key), occurrence: `${key.id} ${(key.lastUsedAt ?? key.createdAt).toISOString()}`, details };
}

function subjectOf({ id, accountId, name }: WatchedKey) {
  return { accountId, subjectId: id, subjectName: name };
}
