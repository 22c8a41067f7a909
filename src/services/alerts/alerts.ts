/** Alerts of an account for its owners (docs/spec/alerts.md): listed, acknowledged and silenced; and their rules. */
import type { RequestContext } from "../../context.js";
import { conflict, notFound, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { AlertModel, AlertSilenceModel } from "../../store/generated/prisma/models.js";
import { requireKeyManager, requirePermission } from "../access/permissions.js";
import { mapEvents, queueOf } from "../accounts/live.js";
import { SILENCED_SUBJECTS_MAX } from "./limits.js";
import {
  ALERT_KINDS,
  type AlertKind,
  type AlertRule,
  foreignParameters,
  ruleOf,
  type SilenceAlertsInput,
  toStored,
  type UnsilenceAlertsInput,
  type UpdateAlertRuleInput,
} from "./rules.js";

export type AlertRow = AlertModel;
export type AlertSilenceRow = AlertSilenceModel;

export interface AlertFilter {
  readonly kinds?: readonly AlertKind[] | null | undefined;
  readonly isAcknowledged?: boolean | null | undefined;
}

export class Alerts {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /** Lists alerts, newest first, silenced ones included. */
  async list(ctx: RequestContext, page: PageRequest, filter: AlertFilter = {}): Promise<Page<AlertModel>> {
    const { accountId } = requirePermission(ctx, "usage");
    const { alert } = this.database.prisma;
    const { kinds, isAcknowledged } = filter;
    const where = {
      accountId,
      ...(kinds && { kind: { in: [...kinds] } }),
      ...(isAcknowledged != null && { acknowledgedAt: isAcknowledged ? { not: null } : null }),
    };
    const { where: older, ...query } = newestFirst(page);
    const rows = await alert.findMany({ where: { AND: [where, older] }, ...query });
    return toPage(rows, page, () => alert.count({ where, take: COUNT_TAKE }));
  }

  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<AlertModel[]> {
    const { accountId } = requirePermission(ctx, "usage");
    return this.database.prisma.alert.findMany({ where: { id: { in: ids.filter(isUuid) }, accountId } });
  }

  /** Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string): Promise<AlertModel> {
    const [row] = await this.getMany(ctx, [id]);
    if (!row) throw notFound("alert");
    return row;
  }

  /** Marks an alert as seen, once: the time of the first acknowledgement stays. Rejects with NOT_FOUND. */
  async acknowledge(ctx: RequestContext, id: string): Promise<AlertModel> {
    const { accountId } = requireKeyManager(ctx);
    if (!isUuid(id)) throw notFound("alert");
    const { alert } = this.database.prisma;
    await alert.updateMany({ where: { id, accountId, acknowledgedAt: null }, data: { acknowledgedAt: this.clock.now() } });
    const row = await alert.findFirst({ where: { id, accountId } });
    if (!row) throw notFound("alert");
    return row;
  }

  /** The rule of each kind. */
  async rules(ctx: RequestContext): Promise<AlertRule[]> {
    const { accountId } = requirePermission(ctx, "usage");
    const stored = await this.database.prisma.alertRule.findMany({ where: { accountId } });
    const byKind = new Map(stored.map((rule) => [rule.kind, rule]));
    return ALERT_KINDS.map((kind) => ruleOf(kind, byKind.get(kind)));
  }

  /** Changes the stated fields. Throws BAD_REQUEST for a parameter that the kind does not have. */
  async updateRule(ctx: RequestContext, kind: AlertKind, input: UpdateAlertRuleInput): Promise<AlertRule> {
    const { accountId } = requireKeyManager(ctx);
    const [foreign] = foreignParameters(kind, input);
    if (foreign !== undefined) throw wrongField(foreign, `is no parameter of the rule ${kind}`);
    return this.database.prisma.$transaction(async (transaction) => {
      await lockName(transaction, `alert rules of ${accountId}`);
      const where = { accountId_kind: { accountId, kind } };
      const before = ruleOf(kind, (await transaction.alertRule.findUnique({ where })) ?? undefined);
      const { isEnabled, percents, days, minimumSpend } = input;
      const parameters = toStored({
        percents: percents ?? before.percents,
        days: days ?? before.days,
        minimumSpend: minimumSpend ?? before.minimumSpend,
      });
      const data = { isEnabled: isEnabled ?? before.isEnabled, parameters };
      const rule = await transaction.alertRule.upsert({ where, create: { accountId, kind, ...data }, update: data });
      return ruleOf(kind, rule);
    });
  }

  /** Silences that have not ended. */
  async silences(ctx: RequestContext): Promise<AlertSilenceModel[]> {
    const { accountId } = requirePermission(ctx, "usage");
    return this.database.prisma.alertSilence.findMany({
      where: { accountId, OR: [{ until: null }, { until: { gt: this.clock.now() } }] },
      orderBy: [{ kind: "asc" }, { subjectId: "asc" }],
    });
  }

  /** Lists such alerts from now on without delivering them. A silence of the same subject is replaced. */
  async silence(ctx: RequestContext, { kind, subjectId, until }: SilenceAlertsInput): Promise<AlertSilenceModel> {
    const { accountId } = requireKeyManager(ctx);
    const now = this.clock.now();
    const end = until == null ? null : new Date(until);
    if (end !== null && end <= now) throw wrongField("until", "must be in the future");
    return this.database.prisma.$transaction(async (transaction) => {
      await lockName(transaction, `alert rules of ${accountId}`);
      const { alertSilence } = transaction;
      await alertSilence.deleteMany({ where: { accountId, until: { lte: now } } });
      const key = { accountId, kind, subjectId: subjectId ?? "" };
      const where = { accountId_kind_subjectId: key };
      const others = await alertSilence.count({ where: { accountId, NOT: key }, take: SILENCED_SUBJECTS_MAX });
      if (others >= SILENCED_SUBJECTS_MAX) throw conflict(`An account has at most ${SILENCED_SUBJECTS_MAX} silences: end some of them.`);
      return alertSilence.upsert({ where, create: { ...key, until: end }, update: { until: end } });
    });
  }

  /** Ends a silence. Rejects with NOT_FOUND where there is none. */
  async unsilence(ctx: RequestContext, { kind, subjectId }: UnsilenceAlertsInput): Promise<void> {
    const { accountId } = requireKeyManager(ctx);
    const { count } = await this.database.prisma.alertSilence.deleteMany({ where: { accountId, kind, subjectId: subjectId ?? "" } });
    if (count === 0) throw notFound("silence");
  }

  /** Yields the id of each alert of the account that is raised and not silenced. */
  raised(ctx: RequestContext): AsyncIterableIterator<{ readonly alertId: string }> {
    const { accountId } = requirePermission(ctx, "usage");
    return mapEvents(queueOf(this.events, ctx, "alert-raised", accountId), async ({ alertId }) => ({ alertId }));
  }
}
