/**
 * Queues deliveries that are missing, by reading the books. The time up to which that is done is in the database, so that nothing is lost
 * while no process runs. Processes may do it concurrently: each event is queued once.
 */
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { ApiKeyRows } from "../api-keys/api-key-rows.js";
import { WEBHOOK_CATCH_UP_DAYS_MAX, WEBHOOK_CATCH_UP_OVERLAP_MS, WEBHOOK_QUEUED_AT_ONCE_MAX } from "./limits.js";
import { apiKeyMessage, usageMessage } from "./messages.js";
import type { QueuedMessage, WebhookQueue } from "./queue.js";

const CAUGHT_UP_TO = "webhooks-caught-up-to";
const DAY_MS = 24 * 60 * 60 * 1000;

interface Missing {
  readonly endpointId: string;
  readonly id: string;
}

export class WebhookCatchUp {
  constructor(
    private readonly database: Database,
    private readonly queue: WebhookQueue,
    private readonly apiKeyRows: ApiKeyRows,
    private readonly clock: Clock,
  ) {}

  /** Queues deliveries missing since the last run, and at least those of the last `sinceMs`. Returns their number. */
  async run(sinceMs: number): Promise<number> {
    const now = this.clock.now().getTime();
    const last = await this.lastTime();
    const wanted = Math.min(now - sinceMs, (last ?? now) - WEBHOOK_CATCH_UP_OVERLAP_MS);
    const since = new Date(Math.max(wanted, now - WEBHOOK_CATCH_UP_DAYS_MAX * DAY_MS)).toISOString();
    let added = 0;
    for (const step of [() => this.queueUsage(since), () => this.queueCreated(since), () => this.queueRevoked(since)]) {
      // When a full page adds nothing, another process is at work.
      for (let page = await step(); page.found > 0; page = await step()) {
        added += page.added;
        if (page.found < WEBHOOK_QUEUED_AT_ONCE_MAX || page.added === 0) break;
      }
    }
    await this.noteTime(now);
    return added;
  }

  private async queueUsage(since: string) {
    const missing = await this.database.prisma.$queryRaw<Missing[]>`
      SELECT e.id::text AS "endpointId", u.id::text FROM webhook_endpoint e
      JOIN usage_record u ON u.account_id = e.account_id AND u.timestamp >= greatest(${since}::timestamptz, e.listens_since)
      WHERE e.is_enabled AND 'usage.recorded' = ANY (e.events) AND NOT EXISTS (
        SELECT 1 FROM webhook_delivery d WHERE d.endpoint_id = e.id AND d.event = 'usage.recorded' AND d.event_key = u.id::text)
      LIMIT ${WEBHOOK_QUEUED_AT_ONCE_MAX}`;
    const rows = await this.database.prisma.usageRecord.findMany({ where: { id: { in: missing.map(({ id }) => id) } } });
    return this.add(missing, new Map(rows.map((row) => [row.id, usageMessage(row)])));
  }

  private async queueCreated(since: string) {
    const missing = await this.database.prisma.$queryRaw<Missing[]>`
      SELECT e.id::text AS "endpointId", k.id::text FROM webhook_endpoint e
      JOIN api_key k ON k.account_id = e.account_id AND k.created_at >= greatest(${since}::timestamptz, e.listens_since)
      WHERE e.is_enabled AND 'api_key.created' = ANY (e.events) AND NOT EXISTS (
        SELECT 1 FROM webhook_delivery d WHERE d.endpoint_id = e.id AND d.event = 'api_key.created' AND d.event_key = k.id::text)
      LIMIT ${WEBHOOK_QUEUED_AT_ONCE_MAX}`;
    return this.addKeys("api_key.created", missing);
  }

  private async queueRevoked(since: string) {
    const missing = await this.database.prisma.$queryRaw<Missing[]>`
      SELECT e.id::text AS "endpointId", k.id::text FROM webhook_endpoint e
      JOIN api_key k ON k.account_id = e.account_id AND k.revoked_at >= greatest(${since}::timestamptz, e.listens_since)
      WHERE e.is_enabled AND 'api_key.revoked' = ANY (e.events) AND NOT EXISTS (
        SELECT 1 FROM webhook_delivery d WHERE d.endpoint_id = e.id AND d.event = 'api_key.revoked' AND d.event_key = k.id::text)
      LIMIT ${WEBHOOK_QUEUED_AT_ONCE_MAX}`;
    return this.addKeys("api_key.revoked", missing);
  }

  private async addKeys(event: "api_key.created" | "api_key.revoked", missing: readonly Missing[]) {
    const rows = await this.database.prisma.apiKey.findMany({ where: { id: { in: missing.map(({ id }) => id) } } });
    const keys = await this.apiKeyRows.all(this.database.prisma, rows);
    return this.add(missing, new Map(keys.map((key) => [key.id, apiKeyMessage(event, key)])));
  }

  private async add(missing: readonly Missing[], messages: ReadonlyMap<string, QueuedMessage["message"]>) {
    const queued = missing.flatMap(({ endpointId, id }) => {
      const message = messages.get(id);
      return message ? [{ endpointId, message }] : [];
    });
    return { found: missing.length, added: await this.queue.add(queued) };
  }

  /** Milliseconds since the last run; null: never. */
  private async lastTime(): Promise<number | null> {
    const stored = await this.database.prisma.deploymentSetting.findUnique({ where: { name: CAUGHT_UP_TO } });
    return stored && Date.parse(stored.value);
  }

  private async noteTime(time: number): Promise<void> {
    const value = new Date(time).toISOString();
    await this.database.prisma.$executeRaw`
      INSERT INTO deployment_setting (name, value) VALUES (${CAUGHT_UP_TO}, ${value})
      ON CONFLICT (name) DO UPDATE SET value = greatest(deployment_setting.value, excluded.value)`;
  }
}
