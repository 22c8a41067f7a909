/**
 * The queue of deliveries, shared by every process on the database. A row is leased to the process that sends it; no transaction
 * is open while it does. A lease that has run out is anybody's, so a message may come twice, always with the same id.
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
  /** With the port, as the URL has it. */
  readonly host: string;
}

export interface LeasedDelivery {
  /** The message's id. */
  readonly id: string;
  readonly endpointId: string;
  readonly accountId: string;
  readonly url: string;
  readonly secret: Uint8Array;
  readonly previousSecret: Uint8Array | null;
  readonly previousSecretExpiresAt: Date | null;
  readonly body: WebhookBody;
  /** This try included. */
  readonly attempts: number;
}

export type DisabledReason = "gone" | "failing";

export class WebhookQueue {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Returns how many were new. What an endpoint has in its log already, and what is for one that is gone, is passed over. */
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
   * What is due, oldest first, a few of each endpoint; nothing for the hosts that have enough to do. Goes from one waiting
   * endpoint to the next by the index: the backlog of one does not stand before another's.
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
      CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM webhook_delivery
        WHERE endpoint_id = e.id AND status = 'pending' AND next_attempt_at <= ${now}::timestamptz
          AND (leased_until IS NULL OR leased_until <= ${now}::timestamptz)
        ORDER BY next_attempt_at LIMIT ${WEBHOOK_TRIES_PER_HOST_MAX}
      ) d
      WHERE split_part(e.url, '/', 3) <> ALL (${[...busyHosts]}::text[])
      ORDER BY d.next_attempt_at LIMIT ${limit}`;
  }

  /** How many messages are still to be sent, by any process; not counted beyond that many. */
  async countPending(most: number): Promise<number> {
    const [row] = await this.database.prisma.$queryRaw<{ readonly pending: number }[]>`
      SELECT count(*)::int AS pending FROM (SELECT 1 FROM webhook_delivery WHERE status = 'pending' LIMIT ${most}) waiting`;
    return row?.pending ?? 0;
  }

  /** Those of `ids` that no other process has taken meanwhile: they are this one's until the lease runs out. */
  async lease(ids: readonly string[]): Promise<readonly LeasedDelivery[]> {
    const now = this.now();
    const until = this.now(WEBHOOK_LEASE_MS);
    return this.database.prisma.$queryRaw<LeasedDelivery[]>`
      UPDATE webhook_delivery d SET leased_until = ${until}::timestamptz, attempts = d.attempts + 1
      FROM webhook_endpoint e
      WHERE e.id = d.endpoint_id AND e.is_enabled AND d.id IN (
        SELECT id FROM webhook_delivery
        WHERE id = ANY (${[...ids]}::uuid[]) AND status = 'pending' AND next_attempt_at <= ${now}::timestamptz
          AND (leased_until IS NULL OR leased_until <= ${now}::timestamptz)
        FOR UPDATE SKIP LOCKED)
      RETURNING d.id::text, d.endpoint_id::text AS "endpointId", e.account_id::text AS "accountId", e.url, e.secret,
        e.previous_secret AS "previousSecret", e.previous_secret_expires_at AS "previousSecretExpiresAt", d.payload AS body, d.attempts`;
  }

  /** Writes down how a try went. Returns why the endpoint is disabled from now on, or null. */
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

  /** Gives back what was not tried to its end, as if it had not been begun. */
  async giveBack({ id, attempts }: LeasedDelivery): Promise<void> {
    await this.database.prisma.webhookDelivery.updateMany({
      where: { id, status: "pending", attempts },
      data: { leasedUntil: null, attempts: attempts - 1 },
    });
  }

  /** Nothing waits for an endpoint that is disabled: its owner sees in the log what has not come. */
  async failPending(endpointId: string): Promise<void> {
    await this.database.prisma.webhookDelivery.updateMany({
      where: { endpointId, status: "pending" },
      data: { status: "failed", lastError: DISABLED, finishedAt: this.clock.now(), leasedUntil: null },
    });
  }

  /** Takes old deliveries out of the log. Returns how many. */
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

  /** Only by the process whose lease it is: after another has begun the next try, this one has nothing to say any more. */
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
