/**
 * Turns events into queued deliveries: noticed at least once, queued exactly once.
 *
 * 1. Commits of this process and key events are noticed at once. Noticing does not wait, and costs an account without webhooks one
 *    look into a map.
 * 2. Events noticed within a moment are read and queued together.
 * 3. At intervals the books are searched for events since the last search by any process: a process that is killed between a charge
 *    and its queueing loses nothing.
 */
import type { Logger } from "pino";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { ApiKeyRows } from "../api-keys/api-key-rows.js";
import type { WebhookCatchUp } from "./catch-up.js";
import {
  WEBHOOK_CATCH_UP_MS,
  WEBHOOK_CATCH_UP_START_MS,
  WEBHOOK_NOTICE_MS,
  WEBHOOK_NOTICED_MAX,
  WEBHOOK_QUEUED_AT_ONCE_MAX,
} from "./limits.js";
import type { WebhookListeners } from "./listeners.js";
import { ASKING_RUN, apiKeyMessage, runMessage, usageMessage, type WebhookMessage } from "./messages.js";
import type { QueuedMessage, WebhookQueue } from "./queue.js";

export interface NoticesDependencies {
  readonly database: Database;
  readonly listeners: WebhookListeners;
  readonly queue: WebhookQueue;
  readonly apiKeyRows: ApiKeyRows;
  readonly catchUp: WebhookCatchUp;
  /** Events of all processes. */
  readonly events: Events;
  /** Commits of this process. */
  readonly ownEvents: Events;
  readonly log: Logger;
  readonly onQueued: () => void;
}

export class WebhookNotices {
  private readonly usage = new Set<string>();
  private readonly apiKeys = new Set<string>();
  private readonly runs = new Set<string>();
  private timer: NodeJS.Timeout | null = null;
  private working: Promise<void> = Promise.resolve();
  private enders: (() => void)[] = [];

  constructor(private readonly deps: NoticesDependencies) {}

  start(): void {
    const { events, ownEvents } = this.deps;
    const catchUpTimer = setInterval(() => this.catchUp(0), WEBHOOK_CATCH_UP_MS).unref();
    this.enders = [
      ownEvents.listen("usage-recorded", ({ accountId, usageId }) => this.noticeUsage(accountId, usageId)),
      events.listen("api-key-changed", ({ apiKeyId }) => this.noticeApiKey(apiKeyId)),
      events.listen("run-changed", ({ accountId, runId, change }) => {
        if (change === "asked" && this.deps.listeners.has(accountId)) this.notice(this.runs, runId);
      }),
      () => clearInterval(catchUpTimer),
    ];
    this.catchUp(WEBHOOK_CATCH_UP_START_MS);
  }

  /** Queues noticed events, and stops noticing. */
  async close(): Promise<void> {
    for (const end of this.enders) end();
    if (this.timer) clearTimeout(this.timer);
    this.work(() => this.queueNoticed());
    await this.working;
  }

  /** Resolves when everything that was noticed so far is queued. */
  async settled(): Promise<void> {
    this.work(() => this.queueNoticed());
    await this.working;
  }

  /** Searches the books, at least the last `sinceMs`. */
  catchUp(sinceMs: number): void {
    if (this.deps.listeners.isEmpty) return;
    this.work(async () => {
      if ((await this.deps.catchUp.run(sinceMs)) > 0) this.deps.onQueued();
    });
  }

  private noticeUsage(accountId: string, usageId: string): void {
    if (this.deps.listeners.has(accountId)) this.notice(this.usage, usageId);
  }

  private noticeApiKey(apiKeyId: string): void {
    if (!this.deps.listeners.isEmpty) this.notice(this.apiKeys, apiKeyId);
  }

  private notice(noticed: Set<string>, id: string): void {
    noticed.add(id);
    if (noticed.size > WEBHOOK_NOTICED_MAX) noticed.delete(noticed.values().next().value as string);
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.work(() => this.queueNoticed());
    }, WEBHOOK_NOTICE_MS).unref();
  }

  /** Runs tasks one after another. Failed ones are made up for by catching up. */
  private work(task: () => Promise<void>): void {
    this.working = this.working
      .then(task)
      .catch((error: unknown) => this.deps.log.warn({ err: error }, "webhooks could not be queued; it is caught up with"));
  }

  /** Number of noticed events that are not queued yet. */
  get noticed(): number {
    return this.usage.size + this.apiKeys.size + this.runs.size;
  }

  private async queueNoticed(): Promise<void> {
    const { queue, listeners, onQueued } = this.deps;
    await listeners.settled();
    let added = 0;
    while (this.noticed > 0) {
      added += await queue.add(await this.usageMessages(take(this.usage)));
      added += await queue.add(await this.apiKeyMessages(take(this.apiKeys)));
      added += await queue.add(await this.runMessages(take(this.runs)));
    }
    if (added > 0) onQueued();
  }

  private async usageMessages(ids: string[]): Promise<QueuedMessage[]> {
    if (ids.length === 0) return [];
    const rows = await this.deps.database.prisma.usageRecord.findMany({ where: { id: { in: ids } } });
    return rows.flatMap((row) => this.addressed(row.accountId, usageMessage(row)));
  }

  private async apiKeyMessages(ids: string[]): Promise<QueuedMessage[]> {
    if (ids.length === 0) return [];
    const rows = await this.deps.database.prisma.apiKey.findMany({ where: { id: { in: ids } } });
    const accounts = new Map(rows.map(({ id, accountId }) => [id, accountId]));
    const keys = await this.deps.apiKeyRows.all(this.deps.database.prisma, rows);
    return keys.flatMap((key) => {
      const accountId = accounts.get(key.id) ?? "";
      const revoked = key.revokedAt ? this.addressed(accountId, apiKeyMessage("api_key.revoked", key)) : [];
      return [...this.addressed(accountId, apiKeyMessage("api_key.created", key)), ...revoked];
    });
  }

  /** Not caught up with: a call whose process is killed waits no more. */
  private async runMessages(ids: string[]): Promise<QueuedMessage[]> {
    if (ids.length === 0) return [];
    const rows = await this.deps.database.prisma.run.findMany({ where: { id: { in: ids } }, select: ASKING_RUN });
    return rows.flatMap((row) => {
      const message = runMessage(row);
      return message === null ? [] : this.addressed(row.accountId, message);
    });
  }

  private addressed(accountId: string, message: WebhookMessage): QueuedMessage[] {
    if (message.event === "webhook.test") return [];
    return this.deps.listeners.of(accountId, message.event, message.timestamp).map(({ id }) => ({ endpointId: id, message }));
  }
}

function take(noticed: Set<string>): string[] {
  const taken = [...noticed].slice(0, WEBHOOK_QUEUED_AT_ONCE_MAX);
  for (const id of taken) noticed.delete(id);
  return taken;
}
