/**
 * Accounts that listen to events, in memory, so that a charge of an account without webhooks costs nothing. Changes are published to every
 * process; a process that missed one rereads within a minute.
 */
import type { Logger } from "pino";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { WEBHOOK_LISTENERS_REFRESH_MS } from "./limits.js";
import type { WebhookEvent } from "./messages.js";

export interface Listener {
  readonly id: string;
  readonly accountId: string;
  readonly events: readonly string[];
  /** Earlier events are not for it. */
  readonly listensSince: Date;
}

export class WebhookListeners {
  private byAccount = new Map<string, readonly Listener[]>();
  private reading: Promise<void> = Promise.resolve();
  private enders: (() => void)[] = [];

  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly log: Logger,
  ) {}

  async open(): Promise<void> {
    const timer = setInterval(() => this.refresh(), WEBHOOK_LISTENERS_REFRESH_MS).unref();
    this.enders = [
      this.events.listen("webhooks-changed", ({ accountId }) => this.refresh(accountId)),
      this.events.onGap(() => this.refresh()),
      () => clearInterval(timer),
    ];
    await this.read();
  }

  async close(): Promise<void> {
    for (const end of this.enders) end();
    await this.reading;
  }

  /** True when no account listens to anything. */
  get isEmpty(): boolean {
    return this.byAccount.size === 0;
  }

  has(accountId: string): boolean {
    return this.byAccount.has(accountId);
  }

  of(accountId: string, event: WebhookEvent, timestamp: Date): readonly Listener[] {
    const listeners = this.byAccount.get(accountId) ?? [];
    return listeners.filter(({ events, listensSince }) => events.includes(event) && timestamp >= listensSince);
  }

  /** Resolves when the reads requested so far are done. */
  settled(): Promise<void> {
    return this.reading;
  }

  /** One after another, so that an older result does not replace a newer one. */
  private refresh(accountId?: string): void {
    this.reading = this.reading
      .then(() => this.read(accountId))
      .catch((error: unknown) => this.log.warn({ err: error }, "could not read who listens to webhooks; it is tried again"));
  }

  private async read(accountId?: string): Promise<void> {
    const rows = await this.database.prisma.webhookEndpoint.findMany({
      where: { isEnabled: true, ...(accountId !== undefined && { accountId }) },
      select: { id: true, accountId: true, events: true, listensSince: true },
    });
    if (accountId === undefined) this.byAccount.clear();
    else this.byAccount.delete(accountId);
    for (const row of rows) this.byAccount.set(row.accountId, [...(this.byAccount.get(row.accountId) ?? []), row]);
  }
}
