/** Queues webhooks for percentages of limits that were reached. Every process hears of one and queues it; the queue keeps one. */
import type { Logger } from "pino";
import type { Events } from "../../store/events.js";
import type { WebhookListeners } from "./listeners.js";
import { limitMessage } from "./messages.js";
import type { WebhookQueue } from "./queue.js";

export interface LimitNoticeDependencies {
  readonly listeners: WebhookListeners;
  readonly queue: WebhookQueue;
  readonly events: Events;
  readonly log: Logger;
  readonly onQueued: () => void;
}

export class LimitNotices {
  private working: Promise<void> = Promise.resolve();
  private stopListening: () => void = () => undefined;

  constructor(private readonly deps: LimitNoticeDependencies) {}

  start(): void {
    const { events, listeners, queue, log, onQueued } = this.deps;
    this.stopListening = events.listen("usage-limit-reached", (reached) => {
      if (!listeners.has(reached.accountId)) return;
      const message = limitMessage(reached);
      const queued = listeners.of(reached.accountId, "limit.reached", message.timestamp).map(({ id }) => ({ endpointId: id, message }));
      this.working = this.working
        .then(async () => {
          if ((await queue.add(queued)) > 0) onQueued();
        })
        .catch((error: unknown) => log.warn({ err: error }, "webhooks of reached limits could not be queued"));
    });
  }

  async close(): Promise<void> {
    this.stopListening();
    await this.working;
  }
}
