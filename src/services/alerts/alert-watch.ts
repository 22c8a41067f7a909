/**
 * Evaluates the rules of all accounts.
 *
 * 1. At intervals each process tries to claim the next evaluation by a row of the database; one succeeds.
 * 2. It reads a bounded number of pages for each rule. The next evaluation goes on behind them.
 * 3. Failed top-ups are raised when they are reported, by every process that hears of it: the database keeps one of them.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { KeyAlerts } from "./key-alerts.js";
import { ALERT_REASON_CHARS_MAX, ALERTS_KEPT_DAYS, ALERTS_PAGES_MAX, ALERTS_SWEPT_AT_ONCE_MAX, ALERTS_WATCH_MS } from "./limits.js";
import type { ModelAlerts } from "./model-alerts.js";
import type { AlertRaiser } from "./raiser.js";
import type { SpendAlerts } from "./spend-alerts.js";

/** The setting that has the time of the last claim. ISO times of one length are ordered as texts. */
const EVALUATED_AT = "alerts-evaluated-at";
/** Settings that have the last key and the last account which were evaluated; empty: all were. */
const KEYS_AFTER = "alerts-keys-after";
const SPEND_AFTER = ["alerts-spend-after", "alerts-last-spend-after"] as const;
const DAY_MS = 86_400_000;
/** Timers are not exact: a claim is due a little before its interval ends. */
const EARLY_MS = 1_000;

export interface AlertWatchParts {
  readonly database: Database;
  readonly events: Events;
  readonly raiser: AlertRaiser;
  readonly keys: KeyAlerts;
  readonly spend: SpendAlerts;
  readonly models: ModelAlerts;
  readonly clock: Clock;
  readonly log: Logger;
}

export class AlertWatch {
  private readonly runs: Repeated;
  private stopListening: () => void = () => undefined;
  private notified: Promise<unknown> = Promise.resolve();
  private isClosing = false;

  constructor(private readonly parts: AlertWatchParts) {
    this.runs = new Repeated(() => this.run(), parts.log, "alerts could not be evaluated; it is tried again");
  }

  start(): void {
    this.stopListening = this.parts.events.listen("top-up-failed", (failure) => {
      this.notified = this.notify(failure).catch((error: unknown) => this.parts.log.warn({ err: error }, "an alert could not be raised"));
    });
    this.runs.every(ALERTS_WATCH_MS);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    this.stopListening();
    await this.notified;
    await this.runs.close();
  }

  /** Raises the alert of a failed top-up, once. */
  notify({
    accountId,
    topUpId,
    reason,
  }: {
    readonly accountId: string;
    readonly topUpId: string;
    readonly reason: string;
  }): Promise<number> {
    const details = { topUpId, reason: reason.slice(0, ALERT_REASON_CHARS_MAX) };
    return this.parts.raiser.raise("top_up_failed", [{ accountId, occurrence: topUpId, subjectId: topUpId, subjectName: null, details }]);
  }

  /** Resolves false where another process has evaluated within the interval. */
  async run(): Promise<boolean> {
    if (!(await this.claim())) return false;
    const { log } = this.parts;
    for (const [name, rule] of this.rules) {
      if (this.isClosing) break;
      // A rule that fails stops no other.
      await rule().catch((error: unknown) =>
        log.warn({ err: error, rule: name }, "a rule of alerts could not be evaluated; it is tried again"),
      );
    }
    return true;
  }

  private readonly rules: readonly (readonly [name: string, evaluate: () => Promise<void>])[] = [
    ["keys", () => this.evaluateKeys()],
    ["spend", () => this.evaluateSpend()],
    ["models", () => this.parts.models.evaluate()],
    ["sweep", () => this.sweep()],
  ];

  private evaluateKeys(): Promise<void> {
    return this.evaluatePages(KEYS_AFTER, (after) => this.parts.keys.evaluate(after));
  }

  private async evaluateSpend(): Promise<void> {
    const { spend } = this.parts;
    const [current, last] = spend.hours();
    await this.evaluatePages(SPEND_AFTER[0], (after) => spend.evaluate(current, after));
    await this.evaluatePages(SPEND_AFTER[1], (after) => spend.evaluate(last, after));
  }

  /** Goes on behind the last page of the evaluation before; the setting `name` has its place. */
  private async evaluatePages(name: string, evaluate: (after: string | null) => Promise<string | null>): Promise<void> {
    const { prisma } = this.parts.database;
    const stored = await prisma.deploymentSetting.findUnique({ where: { name } });
    let after = stored?.value || null;
    for (let page = 0; page < ALERTS_PAGES_MAX && !this.isClosing; page += 1) {
      after = await evaluate(after);
      if (after === null) break;
    }
    const value = after ?? "";
    if (value !== (stored?.value ?? ""))
      await prisma.deploymentSetting.upsert({ where: { name }, create: { name, value }, update: { value } });
  }

  private async sweep(): Promise<void> {
    const before = new Date(this.parts.clock.now().getTime() - ALERTS_KEPT_DAYS * DAY_MS).toISOString();
    await this.parts.database.prisma.$executeRaw`
      DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE created_at < ${before}::timestamptz LIMIT ${ALERTS_SWEPT_AT_ONCE_MAX})`;
  }

  private async claim(): Promise<boolean> {
    const { clock, database } = this.parts;
    const now = clock.now();
    const due = new Date(now.getTime() - ALERTS_WATCH_MS + EARLY_MS).toISOString();
    const claimed = await database.prisma.$queryRaw<unknown[]>`
      INSERT INTO deployment_setting (name, value) VALUES (${EVALUATED_AT}, ${now.toISOString()})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE deployment_setting.value <= ${due}
      RETURNING name`;
    return claimed.length > 0;
  }
}
