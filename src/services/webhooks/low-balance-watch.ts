/**
 * Detects balances that fell below their account's threshold, and reports each fall once.
 *
 * The database marks the fall with the change that causes it (the trigger `account_balance_watched`). One process marks it as reported, in
 * the statement that also queues webhooks, and then notifies the subscribers. If that process is killed before, another one does it. A
 * balance that has risen again by then is not reported.
 */

import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { LowBalanceNotice } from "../credits/low-balance.js";
import { LOW_BALANCE_LOOK_MS, LOW_BALANCE_SWEEP_MS, LOW_BALANCES_AT_ONCE_MAX } from "./limits.js";
import { lowBalanceMessage, toBody } from "./messages.js";

export interface LowBalanceWatchDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onQueued: () => void;
}

export class LowBalanceWatch {
  private timer: NodeJS.Timeout | null = null;
  private readonly looks: Repeated;
  private stopListening: () => void = () => undefined;

  constructor(private readonly deps: LowBalanceWatchDependencies) {
    this.looks = new Repeated(() => this.announceFalls(), deps.log, "could not look for low balances; it is tried again");
  }

  /** Gathers balance changes into one look. */
  start(): void {
    this.stopListening = this.deps.events.listen("balance-changed", () => this.lookSoon());
    void this.looks.every(LOW_BALANCE_SWEEP_MS).now();
  }

  async close(): Promise<void> {
    this.stopListening();
    if (this.timer) clearTimeout(this.timer);
    await this.looks.close();
  }

  private lookSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.looks.now();
    }, LOW_BALANCE_LOOK_MS).unref();
  }

  private async announceFalls(): Promise<void> {
    const fallen = await this.deps.database.prisma.account.findMany({
      where: { isLowBalanceTold: false },
      select: {
        ...{ id: true, lowBalanceNanocredits: true, lowBalanceSince: true },
        ...{ tierNanocredits: true, cryptoNanocredits: true, packNanocredits: true },
      },
      take: LOW_BALANCES_AT_ONCE_MAX,
    });
    // One account at a time: a statement that locks one account's row waits for no other, and so delays no charge.
    for (const row of fallen) {
      const { id, lowBalanceNanocredits: threshold, lowBalanceSince: since } = row;
      if (threshold === null || since === null) continue;
      const balance = row.tierNanocredits + row.cryptoNanocredits + row.packNanocredits;
      await this.announceFall({ accountId: id, balance, threshold, since });
    }
  }

  private async announceFall(notice: LowBalanceNotice): Promise<void> {
    const { isMarked, queued } = await this.mark(notice);
    if (!isMarked) return;
    const { accountId, balance, threshold, since } = notice;
    const amounts = { balance: String(balance), threshold: String(threshold) };
    this.deps.events.publish("balance-low", { accountId, ...amounts, since: since.toISOString() });
    if (queued > 0) this.deps.onQueued();
  }

  /** Only one process finds it unmarked. */
  private async mark(notice: LowBalanceNotice): Promise<{ isMarked: boolean; queued: number }> {
    const message = lowBalanceMessage(notice);
    const body = JSON.stringify(toBody(message));
    const now = this.deps.clock.now().toISOString();
    const [marked] = await this.deps.database.prisma.$queryRaw<{ isMarked: boolean; queued: number }[]>`
      WITH marked AS (
        UPDATE account SET is_low_balance_told = true
        WHERE id = ${notice.accountId}::uuid AND NOT is_low_balance_told AND low_balance_since = ${notice.since.toISOString()}::timestamptz
        RETURNING id
      ), queued AS (
        INSERT INTO webhook_delivery (id, endpoint_id, event, event_key, payload, next_attempt_at, created_at)
        SELECT gen_random_uuid(), e.id, ${message.event}, ${message.key}, ${body}::jsonb, ${now}::timestamptz, ${now}::timestamptz
        FROM marked JOIN webhook_endpoint e ON e.account_id = marked.id AND e.is_enabled AND ${message.event} = ANY (e.events)
        ON CONFLICT (endpoint_id, event, event_key) DO NOTHING
        RETURNING 1
      )
      SELECT EXISTS (SELECT 1 FROM marked) AS "isMarked", (SELECT count(*)::int FROM queued) AS queued`;
    return marked ?? { isMarked: false, queued: 0 };
  }
}
