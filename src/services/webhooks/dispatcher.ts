/**
 * Sends queued deliveries.
 *
 * 1. `wake` looks for due deliveries: after queueing, after each attempt, and every few seconds for retries and for those that other
 *    processes queued or abandoned.
 * 2. As many as may run at once are leased, a few per host, so that a slow receiver delays only itself.
 * 3. Each is signed and sent, and the result is stored; a failure is retried at growing intervals.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import type { Events } from "../../store/events.js";
import {
  WEBHOOK_CONTENDED_MS,
  WEBHOOK_DRAIN_MS,
  WEBHOOK_POLL_MS,
  WEBHOOK_TRIES_AT_ONCE_MAX,
  WEBHOOK_TRIES_PER_HOST_MAX,
} from "./limits.js";
import type { DueDelivery, LeasedDelivery, WebhookQueue } from "./queue.js";
import { type EndpointSecrets, signWebhook, type WebhookSender } from "./sender.js";

export interface DispatcherDependencies {
  readonly queue: WebhookQueue;
  readonly sender: WebhookSender;
  readonly secrets: EndpointSecrets;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  /** True when nothing can be due. */
  readonly isIdle: () => boolean;
}

export class WebhookDispatcher {
  private timer: NodeJS.Timeout | null = null;
  private looking: Promise<void> | null = null;
  private isLookDue = false;
  private isFailing = false;
  private isClosed = false;
  private readonly leaving = new AbortController();
  private readonly tries = new Set<Promise<void>>();
  private readonly hosts = new Map<string, number>();

  constructor(private readonly deps: DispatcherDependencies) {}

  start(): void {
    this.timer = setInterval(() => {
      if (!this.deps.isIdle()) this.wake();
    }, WEBHOOK_POLL_MS).unref();
    this.wake();
  }

  /** Never waits, never throws. */
  wake(): void {
    if (this.isClosed) return;
    this.isLookDue = true;
    this.looking ??= this.look().finally(() => {
      this.looking = null;
      // Requested between the last look and now.
      if (this.isLookDue) this.wake();
    });
  }

  /** Resolves when nothing is due and nothing is being sent. */
  async settled(): Promise<void> {
    while (this.looking || this.tries.size > 0) await Promise.all([this.looking, ...this.tries]);
  }

  /** Waits a bounded time for sends under way; releases the rest. */
  async close(): Promise<void> {
    this.isClosed = true;
    if (this.timer) clearInterval(this.timer);
    await this.looking;
    const patience = setTimeout(() => this.leaving.abort(), WEBHOOK_DRAIN_MS);
    await Promise.all(this.tries);
    clearTimeout(patience);
    await this.deps.sender.close();
  }

  private async look(): Promise<void> {
    try {
      while (this.isLookDue && !this.isClosed) {
        this.isLookDue = false;
        if (await this.takeSome()) this.isLookDue = true;
        this.isFailing = false;
      }
    } catch (error) {
      // Logged once, as it is retried every few seconds and an outage may be long.
      if (!this.isFailing) this.deps.log.warn({ err: error }, "could not look for webhooks that are due; it is tried again");
      this.isFailing = true;
    }
  }

  /** True when there may be more. */
  private async takeSome(): Promise<boolean> {
    const { queue } = this.deps;
    const free = WEBHOOK_TRIES_AT_ONCE_MAX - this.tries.size;
    if (free <= 0) return false;
    const busy = [...this.hosts].filter(([, tries]) => tries >= WEBHOOK_TRIES_PER_HOST_MAX).map(([host]) => host);
    const chosen = this.choose(await queue.findDue(busy, free));
    if (chosen.length === 0 || this.isClosed) return false;
    const leased = await queue.lease(chosen.map(({ id }) => id));
    for (const delivery of leased) this.begin(delivery);
    if (leased.length > 0) return true;
    // Other processes have the rest leased, or are leasing it: look again afterwards.
    setTimeout(() => this.wake(), WEBHOOK_CONTENDED_MS).unref();
    return false;
  }

  /** Several endpoints may share a host. */
  private choose(due: readonly DueDelivery[]): readonly DueDelivery[] {
    const planned = new Map(this.hosts);
    return due.filter(({ host }) => {
      const tries = (planned.get(host) ?? 0) + 1;
      if (tries > WEBHOOK_TRIES_PER_HOST_MAX) return false;
      planned.set(host, tries);
      return true;
    });
  }

  private begin(delivery: LeasedDelivery): void {
    const { host } = new URL(delivery.url);
    this.hosts.set(host, (this.hosts.get(host) ?? 0) + 1);
    const running = this.deliver(delivery)
      .catch((error: unknown) => this.deps.log.warn({ err: error, delivery: delivery.id }, "a webhook's outcome could not be written down"))
      .finally(() => {
        const left = (this.hosts.get(host) ?? 1) - 1;
        if (left > 0) this.hosts.set(host, left);
        else this.hosts.delete(host);
        this.tries.delete(running);
        this.wake();
      });
    this.tries.add(running);
  }

  private async deliver(delivery: LeasedDelivery): Promise<void> {
    const { queue, events, log } = this.deps;
    const result = await this.send(delivery);
    if (result === null) return queue.giveBack(delivery);
    const disabled = await queue.conclude(delivery, result);
    if (disabled === null) return;
    log.info({ endpoint: delivery.endpointId, reason: disabled }, "a webhook endpoint was disabled");
    events.publish("webhooks-changed", { accountId: delivery.accountId });
  }

  /** Null: aborted because the gateway stops. */
  private async send(delivery: LeasedDelivery) {
    const { secrets, sender, clock, log } = this.deps;
    const { type, timestamp, data } = delivery.body;
    const body = JSON.stringify({ type, timestamp, data });
    try {
      const headers = signWebhook(secrets.open(delivery), { id: delivery.id, body, sentAt: clock.now() });
      return await sender.send(delivery.url, body, headers, this.leaving.signal);
    } catch (error) {
      if (this.leaving.signal.aborted) return null;
      log.error({ err: error, endpoint: delivery.endpointId }, "a webhook could not be signed");
      return { status: null, error: "The message could not be signed." };
    }
  }
}
