/**
 * Events for listeners in any process (docs/architecture.md#stores). An event is a hint to look or a copy for display; it may be lost.
 * `openEvents` chooses the transport to other processes.
 */
import { EventEmitter } from "node:events";
import type { Logger } from "pino";

/** Every channel and its payload, a JSON value, because it is sent to other processes. */
export interface EventChannels {
  /** A key was created, updated or revoked: caches drop it. */
  "api-key-changed": { readonly accountId: string; readonly apiKeyId: string; readonly change: string };
  /** A session ended: caches drop it. */
  "session-changed": { readonly accountId: string; readonly sessionId: string };
  /** An account was suspended or restored: each process ends its generations, or takes new ones. */
  "account-suspension-changed": { readonly accountId: string; readonly isSuspended: boolean };
  /** A vendor key was created, changed, deleted, refused or accepted again: callers of the account are reread. */
  "vendor-keys-changed": { readonly accountId: string };
  /** A run was created, a call of it asks for more credits, or no call asks any more, or more was approved. */
  "run-changed": { readonly accountId: string; readonly runId: string; readonly change: string };
  /** A usage row was written. */
  "usage-recorded": { readonly accountId: string; readonly usageId: string };
  /** Refused and failed requests were written to the request log, at most FAILURES_ANNOUNCED_MAX of one account at once. */
  "requests-failed": { readonly accountId: string; readonly failureIds: readonly string[] };
  /** A bucket or its holds changed. */
  "balance-changed": { readonly accountId: string };
  /** A charge earned the account a share. */
  "earning-recorded": { readonly accountId: string; readonly generationId: string; readonly share: "app" | "model" };
  /** A top-up was paid. */
  "top-up-completed": { readonly accountId: string; readonly topUpId: string };
  /** A top-up was refunded, disputed, or its dispute was won; or an automatic one failed. */
  "top-up-changed": { readonly accountId: string; readonly topUpId: string };
  /** A payment of a top-up was refused or given up; `reason` is the processor's. */
  "top-up-failed": { readonly accountId: string; readonly topUpId: string; readonly reason: string };
  /** An alert was raised that is not silenced. */
  "alert-raised": { readonly accountId: string; readonly alertId: string };
  /** A hold was refused because of leases of the account: each process releases unused credits. */
  "lease-wanted": { readonly accountId: string };
  /** A limit that renews was created, changed or deleted: callers of the account are reread. An empty account: a limit of a model. */
  "usage-limits-changed": { readonly accountId: string };
  /** A request needs an amount of a limit that another process has claimed: each process gives free amounts back. */
  "usage-limit-wanted": { readonly accountId: string; readonly limitId: string };
  /** The usage of a limit's window reached a percentage of it. Decimal amounts, `at` as ISO 8601. */
  "usage-limit-reached": {
    readonly accountId: string;
    readonly limitId: string;
    readonly apiKeyId: string | null;
    readonly model: string | null;
    readonly metric: "credits" | "requests" | "tokens" | "concurrency";
    readonly percent: number;
    readonly amount: string;
    readonly spent: string;
    readonly at: string;
  };
  /** A person decided on a device, or the device fetched its key. */
  "device-authorization-changed": { readonly deviceAuthorizationId: string };
  /** A balance fell below its account's threshold. Amounts in nanocredits, `since` as ISO 8601. */
  "balance-low": { readonly accountId: string; readonly balance: string; readonly threshold: string; readonly since: string };
  "webhooks-changed": { readonly accountId: string };
  /** An account has another handle, so its registered models have other ids. */
  "account-renamed": { readonly accountId: string };
  /** A registered model was created, changed or deleted: caches reread it. */
  "community-model-changed": { readonly accountId: string; readonly modelId: string; readonly change: string };
  /** The health of a registered model changed; the account is its owner's. */
  "model-health-changed": { readonly accountId: string; readonly modelId: string };
  /** A client cancelled a call of one of the gateway's MCP tools. */
  "tool-call-cancelled": { readonly accountId: string; readonly call: string };
  /** A background response has new events, was cancelled, deleted, or ended. */
  "stored-response-changed": { readonly accountId: string; readonly responseId: string; readonly status: string };
  /** A key of an upstream cools down, or an upstream's circuit has opened; until then, in milliseconds since 1970. */
  "route-health-changed": {
    readonly kind: "key" | "circuit";
    readonly id: string;
    readonly code: "credential_refused" | "payment_required" | "rate_limited" | "circuit_open" | "limit_reached";
    readonly until: number;
  };
  /** An operator changed the routes of a model: each process rereads the changes. */
  "routes-changed": { readonly modelId: string };
  /** Median times of a route, in milliseconds. */
  "route-times-measured": { readonly id: string; readonly firstMs: number | null; readonly tokenMs: number | null };
  /** A generation job progressed or ended. */
  "generation-changed": { readonly accountId: string; readonly generationId: string; readonly status: string };
}

export type EventChannel = keyof EventChannels;
export type AccountChannel = { [C in EventChannel]: EventChannels[C] extends { readonly accountId: string } ? C : never }[EventChannel];

export interface Events {
  /** Never throws and never waits: this process's listeners were called on return, other processes follow. */
  publish<C extends EventChannel>(channel: C, payload: EventChannels[C]): void;
  /** Calls `listener` for each event until the returned function is called. */
  listen<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void;
  /** As `listen`, for events of one account: other accounts' events cost nothing, however many listeners there are. */
  listenToAccount<C extends AccountChannel>(channel: C, accountId: string, listener: (payload: EventChannels[C]) => void): () => void;
  /** As `listen`, for events of other processes only. */
  listenToOthers<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void;
  /**
   * Calls `listener` each time that this process is connected again after it may have missed events, until the returned function is called.
   * Everything that events keep up to date must then be refetched.
   */
  onGap(listener: () => void): () => void;
  /**
   * Calls `listener` whenever events may have been missed: at once when the connection is lost, several times in two seconds during an
   * outage, and when it is back. Everything that grants a right and relies on events (keys, sessions, registered models) is then dropped or
   * refetched, so that a revoked right ends within a second even if its event is lost.
   */
  onDoubt(listener: () => void): () => void;
  /** Sends the pending events for a bounded time; listeners are no longer called. */
  close(): Promise<void>;
}

/**
 * For holders of a revocable right: calls `listener` for each event that `concerns` it, and whenever one may have been missed, until the
 * returned function is called.
 */
export function listenOrDoubt<C extends EventChannel>(
  events: Events,
  channel: C,
  concerns: (payload: EventChannels[C]) => boolean,
  listener: () => void,
): () => void {
  const stopListening = events.listen(channel, (payload) => {
    if (concerns(payload)) listener();
  });
  const stopDoubts = events.onDoubt(listener);
  return () => {
    stopListening();
    stopDoubts();
  };
}

/** Events of one process, without other publishers and gaps. */
export function createMemoryEvents(log: Logger): Events {
  return new LocalEvents(log);
}

const GAP = Symbol("gap");
const DOUBT = Symbol("doubt");

/** The listeners of this process; every implementation delivers to them. */
export class LocalEvents implements Events {
  private readonly emitter = new EventEmitter().setMaxListeners(0);

  constructor(private readonly log: Logger) {}

  publish<C extends EventChannel>(channel: C, payload: EventChannels[C]): void {
    this.emitter.emit(channel, payload);
    if ("accountId" in payload) this.emitter.emit(accountEvent(channel, payload.accountId), payload);
  }

  listen<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void {
    return this.add(channel, listener);
  }

  listenToAccount<C extends AccountChannel>(channel: C, accountId: string, listener: (payload: EventChannels[C]) => void): () => void {
    return this.add(accountEvent(channel, accountId), listener);
  }

  /** There are no other processes. */
  listenToOthers(): () => void {
    return () => undefined;
  }

  onGap(listener: () => void): () => void {
    return this.add(GAP, listener);
  }

  onDoubt(listener: () => void): () => void {
    return this.add(DOUBT, listener);
  }

  announceGap(): void {
    this.emitter.emit(GAP);
  }

  announceDoubt(): void {
    this.emitter.emit(DOUBT);
  }

  async close(): Promise<void> {
    this.emitter.removeAllListeners();
  }

  /** An error in a listener must not affect the publisher or other listeners. */
  private add<Payload extends readonly unknown[]>(name: string | symbol, listener: (...payload: Payload) => void): () => void {
    const guarded = (...payload: Payload) => {
      try {
        listener(...payload);
      } catch (error) {
        this.log.error({ err: error, event: String(name) }, "a listener failed");
      }
    };
    this.emitter.on(name, guarded);
    return () => {
      this.emitter.off(name, guarded);
    };
  }
}

function accountEvent(channel: EventChannel, accountId: string): string {
  return `${channel} of ${accountId}`;
}
