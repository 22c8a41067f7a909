/**
 * Events: what has just happened, told to whoever listens in any process (docs/architecture.md#stores). An event is a hint to
 * look or a copy for display; nothing that must not be lost travels here. `openEvents` chooses how they reach other processes.
 */
import { EventEmitter } from "node:events";
import type { Logger } from "pino";

/** Every channel and what it carries. Payloads are JSON values, because they are sent to other processes. */
export interface EventChannels {
  /** A key was made (created), changed (updated) or revoked: caches drop it. */
  "api-key-changed": { readonly accountId: string; readonly apiKeyId: string; readonly change: string };
  /** A session ended: caches drop it. */
  "session-changed": { readonly accountId: string; readonly sessionId: string };
  /** A usage row was written. */
  "usage-recorded": { readonly accountId: string; readonly usageId: string };
  /** A bucket or what is held of it changed. */
  "balance-changed": { readonly accountId: string };
  /** A hold is refused because of what processes have leased of the account: each gives back what it does not need. */
  "lease-wanted": { readonly accountId: string };
  /** Somebody decided on a device, or it fetched its key. */
  "device-authorization-changed": { readonly deviceAuthorizationId: string };
  /** A balance fell below what its account wants to be told of. Amounts in nanocredits, `since` as ISO 8601. */
  "balance-low": { readonly accountId: string; readonly balance: string; readonly threshold: string; readonly since: string };
  /** Somebody has begun or ended to listen to an account's webhooks. */
  "webhooks-changed": { readonly accountId: string };
  /** An account has another handle: what it has registered has other ids. */
  "account-renamed": { readonly accountId: string };
  /** A registered model was created, changed or deleted: whoever keeps it in memory looks again. */
  "community-model-changed": { readonly accountId: string; readonly modelId: string; readonly change: string };
  /** The health of a registered model was counted anew; the account is its owner's. */
  "model-health-changed": { readonly accountId: string; readonly modelId: string };
  /** Somebody gave up a call of one of the gateway's own MCP tools. */
  "tool-call-cancelled": { readonly accountId: string; readonly call: string };
  /** A generation job got further or came to its end. */
  "generation-changed": { readonly accountId: string; readonly generationId: string; readonly status: string };
}

export type EventChannel = keyof EventChannels;
/** Those that tell of one account. */
export type AccountChannel = { [C in EventChannel]: EventChannels[C] extends { readonly accountId: string } ? C : never }[EventChannel];

export interface Events {
  /** Never throws and never waits: this process's listeners have been called when it returns, other processes hear soon. */
  publish<C extends EventChannel>(channel: C, payload: EventChannels[C]): void;
  /** Calls `listener` for each event until the returned function is called. */
  listen<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void;
  /** As `listen`, for the events of one account: costs the others nothing, however many listen. */
  listenToAccount<C extends AccountChannel>(channel: C, accountId: string, listener: (payload: EventChannels[C]) => void): () => void;
  /** As `listen`, for what other processes publish alone: what this one does it knows better itself. */
  listenToOthers<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void;
  /**
   * Calls `listener` each time that this process hears the others again after it may have missed some of what they said,
   * until the returned function is called. Whatever is kept up to date by events must then be looked up anew.
   */
  onGap(listener: () => void): () => void;
  /**
   * Calls `listener` whenever others may have said something that this process has not been told: at once when they are not heard any
   * more, several times in two seconds as long as that lasts, and when they are heard again. Whatever grants a right and is kept up
   * to date by events (keys, sessions, what is registered) is dropped or looked up anew then, so that a right that is
   * taken away ends within a second although nobody hears of it.
   */
  onDoubt(listener: () => void): () => void;
  /** Tells other processes what they have not been told yet, for a bounded time; nobody is called any more. */
  close(): Promise<void>;
}

/**
 * For whoever relies on a right that an event takes away: calls `listener` for each event that `concerns` it, and whenever one may have
 * been unheard, until the returned function is called.
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

/** Events of one process: nobody else publishes, so there are no gaps. */
export function createMemoryEvents(log: Logger): Events {
  return new LocalEvents(log);
}

const GAP = Symbol("gap");
const DOUBT = Symbol("doubt");

/** The listeners of this process, to whom every implementation delivers. */
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

  /** There are none. */
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

  /** What goes wrong in a listener is not the publisher's fault, nor the next listener's. */
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
