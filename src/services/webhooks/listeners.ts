/**
 * Which accounts listen to which events: kept in memory, so that a charge of an account to which nobody listens costs nothing.
 * A change is told to every process; whoever missed that reads it a minute later.
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
  /** What happened before is not for it. */
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

  /** Resolves when it is known who listens. */
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

  /** Nobody listens to anything. */
  get isEmpty(): boolean {
    return this.byAccount.size === 0;
  }

  has(accountId: string): boolean {
    return this.byAccount.has(accountId);
  }

  /** Those that listen to this event of the account, and did when it happened. */
  of(accountId: string, event: WebhookEvent, timestamp: Date): readonly Listener[] {
    const listeners = this.byAccount.get(accountId) ?? [];
    return listeners.filter(({ events, listensSince }) => events.includes(event) && timestamp >= listensSince);
  }

  /** Resolves when what was asked for so far has been read. */
  settled(): Promise<void> {
    return this.reading;
  }

  /** One after the other: an older answer must not replace a newer one. */
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
