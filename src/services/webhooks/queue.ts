/**
 * The queue of deliveries, shared by all processes on the database. A row is leased to the process that sends it, without an open
 * transaction. Any process may take a row whose lease has expired, so a message may arrive twice, always with the same id.
 */
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import {
  WEBHOOK_FAILING_DAYS_MAX,
  WEBHOOK_LEASE_MS,
  WEBHOOK_LOG_DAYS,
  WEBHOOK_RETRY_DELAYS_MS,
  WEBHOOK_SWEPT_AT_ONCE_MAX,
  WEBHOOK_TRIES_PER_HOST_MAX,
} from "./limits.js";
import { toBody, type WebhookBody, type WebhookMessage } from "./messages.js";
import type { TryResult } from "./sender.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const GONE = 410;
const DISABLED = "The endpoint was disabled.";

export interface QueuedMessage {
  readonly endpointId: string;
  readonly message: WebhookMessage;
}

export interface DueDelivery {
  readonly id: string;
  /** With the port, as in the URL. */
  readonly host: string;
}

export interface LeasedDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly accountId: string;
  readonly url: string;
  readonly secret: Uint8Array;
  readonly previousSecret: Uint8Array | null;
  readonly previousSecretExpiresAt: Date | null;
  readonly body: WebhookBody;
  /** Including the current one. */
  readonly attempts: number;
}

export type DisabledReason = "gone" | "failing";

export class WebhookQueue {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Adds messages; returns the number of new ones. Skips those already in an endpoint's log, and deleted endpoints. */
  async add(messages: readonly QueuedMessage[], client: Pick<Database["prisma"], "$executeRaw"> = this.database.prisma): Promise<number> {
    if (messages.length === 0) return 0;
    const column = <Value>(read: (queued: QueuedMessage) => Value) => messages.map(read);
    const ids = column(() => createId());
    const endpointIds = column(({ endpointId }) => endpointId);
    const events = column(({ message }) => message.event);
    const keys = column(({ message }) => message.key);
    const bodies = column(({ message }) => JSON.stringify(toBody(message)));
    const now = this.now();
    return client.$executeRaw`
      INSERT INTO webhook_delivery (id, endpoint_id, event, event_key, payload, next_attempt_at, created_at)
      SELECT m.id, e.id, m.event, m.event_key, m.body::jsonb, ${now}::timestamptz, ${now}::timestamptz
      FROM unnest(${ids}::uuid[], ${endpointIds}::uuid[], ${events}::text[], ${keys}::text[], ${bodies}::text[])
           AS m(id, endpoint_id, event, event_key, body)
      JOIN webhook_endpoint e ON e.id = m.endpoint_id AND e.is_enabled
      ON CONFLICT (endpoint_id, event, event_key) DO NOTHING`;
  }

  /**
   * Due deliveries, oldest first, a few per endpoint, none for busy hosts and none of suspended accounts, whose deliveries wait. Goes from endpoint to endpoint by the index, so that one
   * backlog does not hide another.
   */
  async findDue(busyHosts: readonly string[], limit: number): Promise<readonly DueDelivery[]> {
    const now = this.now();
    return this.database.prisma.$queryRaw<DueDelivery[]>`
      WITH RECURSIVE waiting AS (
        SELECT (SELECT endpoint_id FROM webhook_delivery WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1) AS id
        UNION ALL
        SELECT (SELECT endpoint_id FROM webhook_delivery WHERE status = 'pending' AND endpoint_id > w.id ORDER BY endpoint_id LIMIT 1)
        FROM waiting w WHERE w.id IS NOT NULL
      )
      SELECT d.id::text, split_part(e.url, '/', 3) AS host FROM waiting w
      JOIN webhook_endpoint e ON e.id = w.id AND e.is_enabled
      JOIN account a ON a.id = e.account_id AND a.suspended_at IS NULL
      CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM webhook_delivery
        WHERE endpoint_id = e.id AND status = 'pending' AND next_attempt_at <= ${now}::timestamptz
          AND (leased_until IS NULL OR leased_until <= ${now}::timestamptz)
        ORDER BY next_attempt_at LIMIT ${WEBHOOK_TRIES_PER_HOST_MAX}
      ) d
      WHERE split_part(e.url, '/', 3) <> ALL (${[...busyHosts]}::text[])
      ORDER BY d.next_attempt_at LIMIT ${limit}`;
  }

  /** Counts unsent messages of all processes, up to `most`. */
  async countPending(most: number): Promise<number> {
    const [row] = await this.database.prisma.$queryRaw<{ readonly pending: number }[]>`
      SELECT count(*)::int AS pending FROM (SELECT 1 FROM webhook_delivery WHERE status = 'pending' LIMIT ${most}) waiting`;
    return row?.pending ?? 0;
  }

  /** Leases those of `ids` that no other process has taken. */
  async lease(ids: readonly string[]): Promise<readonly LeasedDelivery[]> {
    const now = this.now();
    const until = this.now(WEBHOOK_LEASE_MS);
    return this.database.prisma.$queryRaw<LeasedDelivery[]>`
      UPDATE webhook_delivery d SET leased_until = ${until}::timestamptz, attempts = d.attempts + 1
      FROM webhook_endpoint e JOIN account a ON a.id = e.account_id
      WHERE e.id = d.endpoint_id AND e.is_enabled AND a.suspended_at IS NULL AND d.id IN (
        SELECT id FROM webhook_delivery
        WHERE id = ANY (${[...ids]}::uuid[]) AND status = 'pending' AND next_attempt_at <= ${now}::timestamptz
          AND (leased_until IS NULL OR leased_until <= ${now}::timestamptz)
        FOR UPDATE SKIP LOCKED)
      RETURNING d.id::text, d.endpoint_id::text AS "endpointId", e.account_id::text AS "accountId", e.url, e.secret,
        e.previous_secret AS "previousSecret", e.previous_secret_expires_at AS "previousSecretExpiresAt", d.payload AS body, d.attempts`;
  }

  /** Stores the result of an attempt. Returns the reason when that disables the endpoint, else null. */
  async conclude(delivery: LeasedDelivery, { status, error }: TryResult): Promise<DisabledReason | null> {
    const { webhookEndpoint } = this.database.prisma;
    const { endpointId } = delivery;
    if (error === null) {
      await this.write(delivery, { status: "delivered", finishedAt: this.clock.now(), lastStatus: status, lastError: null });
      await webhookEndpoint.updateMany({ where: { id: endpointId, failingSince: { not: null } }, data: { failingSince: null } });
      return null;
    }
    const delay = status === GONE ? undefined : WEBHOOK_RETRY_DELAYS_MS[delivery.attempts - 1];
    const next =
      delay === undefined
        ? ({ status: "failed", finishedAt: this.clock.now() } as const)
        : { nextAttemptAt: new Date(this.clock.now().getTime() + delay) };
    await this.write(delivery, { ...next, lastStatus: status, lastError: error });
    await webhookEndpoint.updateMany({ where: { id: endpointId, failingSince: null }, data: { failingSince: this.clock.now() } });
    if (status === GONE) return this.disable(endpointId, "gone");
    const failedFor = new Date(this.clock.now().getTime() - WEBHOOK_FAILING_DAYS_MAX * DAY_MS);
    const failing = await webhookEndpoint.count({ where: { id: endpointId, failingSince: { lte: failedFor } } });
    return failing > 0 ? this.disable(endpointId, "failing") : null;
  }

  /** Releases an unfinished attempt as if it had not begun. */
  async giveBack({ id, attempts }: LeasedDelivery): Promise<void> {
    await this.database.prisma.webhookDelivery.updateMany({
      where: { id, status: "pending", attempts },
      data: { leasedUntil: null, attempts: attempts - 1 },
    });
  }

  /** Fails the waiting deliveries of a disabled endpoint, so that its owner sees them in the log. */
  async failPending(endpointId: string): Promise<void> {
    await this.database.prisma.webhookDelivery.updateMany({
      where: { endpointId, status: "pending" },
      data: { status: "failed", lastError: DISABLED, finishedAt: this.clock.now(), leasedUntil: null },
    });
  }

  /** Deletes old deliveries from the log. Returns their number. */
  async sweep(): Promise<number> {
    const before = this.now(-WEBHOOK_LOG_DAYS * DAY_MS);
    return this.database.prisma.$executeRaw`
      DELETE FROM webhook_delivery WHERE id IN (
        SELECT id FROM webhook_delivery WHERE finished_at < ${before}::timestamptz ORDER BY finished_at LIMIT ${WEBHOOK_SWEPT_AT_ONCE_MAX})`;
  }

  private async disable(endpointId: string, reason: DisabledReason): Promise<DisabledReason | null> {
    const { count } = await this.database.prisma.webhookEndpoint.updateMany({
      where: { id: endpointId, isEnabled: true },
      data: { isEnabled: false, disabledReason: reason },
    });
    await this.failPending(endpointId);
    return count > 0 ? reason : null;
  }

  /** Writes only under this process's lease: once another process began the next attempt, this result is stale. */
  private async write({ id, attempts }: LeasedDelivery, data: DeliveryOutcome): Promise<void> {
    await this.database.prisma.webhookDelivery.updateMany({
      where: { id, status: "pending", attempts },
      data: { ...data, leasedUntil: null },
    });
  }

  private now(plusMs = 0): string {
    return new Date(this.clock.now().getTime() + plusMs).toISOString();
  }
}

interface DeliveryOutcome {
  readonly status?: "delivered" | "failed";
  readonly finishedAt?: Date;
  readonly nextAttemptAt?: Date;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
}
