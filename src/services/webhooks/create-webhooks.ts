/** Composes webhooks and low-balance notices. */

import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import type { OutboundGuard } from "../../lib/outbound-guard.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { ApiKeyRows } from "../api-keys/api-key-rows.js";
import type { Catalog } from "../catalog/catalog.js";
import { LowBalance } from "../credits/low-balance.js";
import type { SecretBox } from "../secrets/secret-box.js";
import { WebhookCatchUp } from "./catch-up.js";
import { WebhookDispatcher } from "./dispatcher.js";
import { LimitNotices } from "./limit-notices.js";
import { WEBHOOK_SWEEP_MS } from "./limits.js";
import { WebhookListeners } from "./listeners.js";
import { LowBalanceWatch } from "./low-balance-watch.js";
import { WebhookNotices } from "./notices.js";
import { WebhookQueue } from "./queue.js";
import { EndpointSecrets, WebhookSender } from "./sender.js";
import { Webhooks } from "./webhooks.js";

export interface WebhookServices {
  readonly webhooks: Webhooks;
  readonly lowBalance: LowBalance;
  readonly webhookWork: WebhookWork;
}

export interface WebhookWork {
  readonly notices: WebhookNotices;
  readonly dispatcher: WebhookDispatcher;
  readonly queue: Pick<WebhookQueue, "countPending">;
  open(): Promise<void>;
  /** Queues noticed events and waits a bounded time for sends under way. */
  close(): Promise<void>;
}

export interface WebhookDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly ownEvents: Events;
  readonly outbound: OutboundGuard;
  readonly catalog: Pick<Catalog, "idOf">;
}

export function createWebhooks(
  { catalog, database, events, ownEvents, outbound }: WebhookDependencies,
  box: SecretBox,
  clock: Clock,
  log: Logger,
  /** Per attempt, in milliseconds. */
  timeoutMs?: number,
): WebhookServices {
  const queue = new WebhookQueue(database, clock);
  const sender = new WebhookSender(outbound, timeoutMs);
  const secrets = new EndpointSecrets(box, clock);
  const listeners = new WebhookListeners(database, events, log);
  const dispatcher = new WebhookDispatcher({ queue, sender, secrets, events, clock, log, isIdle: () => listeners.isEmpty });
  const onQueued = () => dispatcher.wake();
  const apiKeyRows = new ApiKeyRows(catalog);
  const catchUp = new WebhookCatchUp(database, queue, apiKeyRows, clock);
  const notices = new WebhookNotices({ database, listeners, queue, apiKeyRows, catchUp, events, ownEvents, log, onQueued });
  const watch = new LowBalanceWatch({ database, events, clock, log, onQueued });
  const limitNotices = new LimitNotices({ listeners, queue, events, log, onQueued });
  const sweeps = new Repeated(() => queue.sweep(), log, "could not sweep the log of webhooks; it is tried again");
  return {
    webhooks: new Webhooks({ database, queue, sender, secrets, listeners, events, clock, onQueued }),
    lowBalance: new LowBalance(database),
    webhookWork: {
      notices,
      dispatcher,
      queue,
      open: async () => {
        await listeners.open();
        notices.start();
        watch.start();
        limitNotices.start();
        dispatcher.start();
        sweeps.every(WEBHOOK_SWEEP_MS);
      },
      close: async () => {
        await sweeps.close();
        await watch.close();
        await limitNotices.close();
        await notices.close();
        await listeners.close();
        await dispatcher.close();
      },
    },
  };
}
