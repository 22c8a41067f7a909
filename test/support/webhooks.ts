/** The webhooks of one process, without the rest of the gateway: on any database, with a clock that a test moves. */
import { randomUUID } from "node:crypto";
import type { Caller, RequestContext } from "../../src/context.js";
import { OutboundGuard, type OutboundGuardOptions } from "../../src/lib/outbound-guard.js";
import { SecretBox } from "../../src/services/secrets/secret-box.js";
import { createWebhooks, type WebhookServices } from "../../src/services/webhooks/create-webhooks.js";
import type { WebhookEvent } from "../../src/services/webhooks/messages.js";
import { WebhookQueue } from "../../src/services/webhooks/queue.js";
import type { Database } from "../../src/store/database.js";
import { createMemoryEvents, type Events } from "../../src/store/events.js";
import { silentLog } from "./database.js";

/** The same for every process of a test, as in a deployment. */
const KEY = Buffer.alloc(32, 7);

/** Goes by itself until it is stopped. */
export class MovedClock {
  private movedMs = 0;
  private stoppedAt: number | null = null;

  now(): Date {
    return new Date((this.stoppedAt ?? Date.now()) + this.movedMs);
  }

  move(ms: number): void {
    this.movedMs += ms;
  }

  stop(): void {
    this.stoppedAt = Date.now();
  }

  goOn(): void {
    this.stoppedAt = null;
  }
}

export interface WebhookProcess extends WebhookServices {
  readonly queue: WebhookQueue;
  readonly events: Events;
  readonly ownEvents: Events;
  readonly clock: MovedClock;
  /** Resolves when everything noticed so far is queued, and everything due has been tried. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export interface WebhookProcessOptions {
  /** Shared by processes that hear each other. */
  readonly events?: Events;
  readonly clock?: MovedClock;
  readonly outbound?: Partial<OutboundGuardOptions>;
  /** Of one try. A busy machine is no failure. */
  readonly timeoutMs?: number;
  /** False: nothing goes on by itself. */
  readonly isOpen?: boolean;
}

export async function openWebhookProcess(database: Database, options: WebhookProcessOptions = {}): Promise<WebhookProcess> {
  const { events = createMemoryEvents(silentLog), clock = new MovedClock(), timeoutMs = 30_000, isOpen = true } = options;
  const ownEvents = createMemoryEvents(silentLog);
  const outbound = new OutboundGuard({ allowHosts: ["127.0.0.1"], ...options.outbound });
  const created = createWebhooks(
    { catalog: { idOf: (name) => name }, database, events, ownEvents, outbound },
    new SecretBox(() => [KEY]),
    clock,
    silentLog,
    timeoutMs,
  );
  const { notices, dispatcher } = created.webhookWork;
  if (isOpen) await created.webhookWork.open();
  let closing: Promise<void> | null = null;
  return {
    ...created,
    queue: new WebhookQueue(database, clock),
    events,
    ownEvents,
    clock,
    settled: async () => {
      await notices.settled();
      dispatcher.wake();
      await dispatcher.settled();
    },
    close: () => {
      closing ??= created.webhookWork.close().then(() => outbound.close());
      return closing;
    },
  };
}

/** A browser with a session of the account. */
export function signedIn(accountId: string): RequestContext {
  const caller: Caller = { kind: "session", accountId, isOperator: false, sessionId: randomUUID() };
  return { caller, requestId: "test", clientAddress: "127.0.0.1", signal: new AbortController().signal, log: silentLog };
}

export async function createEndpoint(
  { webhooks }: WebhookServices,
  accountId: string,
  url: string,
  events: readonly WebhookEvent[] = ["usage.recorded"],
): Promise<{ readonly id: string; readonly secret: string }> {
  const { endpoint, secret } = await webhooks.createEndpoint(signedIn(accountId), { url, events: [...events] });
  return { id: endpoint.id, secret };
}
