/**
 * Events of several processes. A process's own listeners are called directly when it publishes; events of other processes arrive over a
 * transport, which may be interrupted.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { type AccountChannel, type EventChannel, type EventChannels, type Events, LocalEvents } from "../events.js";
import { EventMessages, EventOutbox, encodeEvent } from "./outbox.js";
import type { EventTransport, OpenTransport } from "./transport.js";

/** Events that caches rely on: a missed one leaves stale data. All others are for display. */
const MUST_ARRIVE: ReadonlySet<EventChannel> = new Set<EventChannel>([
  "api-key-changed",
  "session-changed",
  "community-model-changed",
  "account-renamed",
  "vendor-keys-changed",
  "usage-limits-changed",
]);
/** Greatest age of the proof of a connection: a responsive server gives several in this time. */
const PROOF_MS = 500;
/** Interval of checking that, and of calling listeners during an outage: together below a second. */
const DOUBT_LOOK_MS = 200;
const DOUBT_MS = 700;
/** How long a start waits for the transport before it continues without it. */
const START_WAIT_MS = 1_000;

/** See `openEvents`. */
export async function openSharedEvents(openTransport: OpenTransport, log: Logger): Promise<Events> {
  const events = new SharedEvents(openTransport, log);
  await events.waitUntilHeard();
  return events;
}

class SharedEvents implements Events {
  private readonly local: LocalEvents;
  /** The part of `local`'s events that came from other processes. */
  private readonly others: LocalEvents;
  private readonly messages = new EventMessages(randomUUID());
  private readonly outbox: EventOutbox;
  private readonly transport: EventTransport;
  /** Caches first, so that other listeners find no stale data. */
  private readonly foreign: Pick<Events, "publish"> = {
    publish: (channel, payload) => {
      this.others.publish(channel, payload);
      this.local.publish(channel, payload);
    },
  };
  private readonly doubtTimer: NodeJS.Timeout;
  /** All events of others before this time were received. */
  private heardUpTo = performance.now();
  private doubtedAt = Number.NEGATIVE_INFINITY;
  private isDown = false;
  private isSendFailing = false;
  private hasConnected: () => void = () => undefined;
  private readonly connected = new Promise<void>((resolve) => {
    this.hasConnected = resolve;
  });

  constructor(
    openTransport: OpenTransport,
    private readonly log: Logger,
  ) {
    this.local = new LocalEvents(log);
    this.others = new LocalEvents(log);
    this.outbox = new EventOutbox(
      this.messages,
      (texts) => this.send(texts),
      () => log.warn("more happens than other processes can be shown live: the oldest of it is left out"),
    );
    this.transport = openTransport({
      onUp: () => this.onUp(),
      onDown: (error) => this.onDown(error),
      onAlive: (sentAt) => {
        this.heardUpTo = sentAt;
      },
      onMessage: (text) => this.onMessage(text),
    });
    this.doubtTimer = setInterval(() => this.lookForDoubt(), DOUBT_LOOK_MS).unref();
  }

  async waitUntilHeard(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.onDown(new Error(`no connection within ${START_WAIT_MS} ms`));
        resolve();
      }, START_WAIT_MS);
    });
    await Promise.race([this.connected, tooLate]);
    clearTimeout(timer);
  }

  publish<C extends EventChannel>(channel: C, payload: EventChannels[C]): void {
    this.local.publish(channel, payload);
    this.outbox.add(encodeEvent(channel, payload), MUST_ARRIVE.has(channel));
  }

  listen<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void {
    return this.local.listen(channel, listener);
  }

  listenToAccount<C extends AccountChannel>(channel: C, accountId: string, listener: (payload: EventChannels[C]) => void): () => void {
    return this.local.listenToAccount(channel, accountId, listener);
  }

  listenToOthers<C extends EventChannel>(channel: C, listener: (payload: EventChannels[C]) => void): () => void {
    return this.others.listen(channel, listener);
  }

  onGap(listener: () => void): () => void {
    return this.local.onGap(listener);
  }

  onDoubt(listener: () => void): () => void {
    return this.local.onDoubt(listener);
  }

  async close(): Promise<void> {
    clearInterval(this.doubtTimer);
    await Promise.all([this.local.close(), this.others.close()]);
    await this.outbox.close();
    await this.transport.close();
  }

  private async send(texts: readonly string[]): Promise<void> {
    try {
      await this.transport.send(texts);
      this.isSendFailing = false;
    } catch (error) {
      if (!this.isSendFailing) this.log.warn({ reason: reasonOf(error) }, "events could not be sent to other processes");
      this.isSendFailing = true;
      throw error;
    }
  }

  private onUp(): void {
    this.outbox.resume();
    this.hasConnected();
    this.heardUpTo = performance.now();
    if (!this.isDown) return;
    this.isDown = false;
    this.log.info("other processes are heard again");
    this.local.announceDoubt();
    this.local.announceGap();
  }

  private onDown(error: unknown): void {
    this.outbox.pause();
    if (this.isDown) return;
    this.isDown = true;
    this.log.warn({ reason: reasonOf(error) }, "other processes are not heard: keys and sessions are looked up again every second");
    this.doubt();
  }

  /** A silent connection is not reported as down at once. */
  private lookForDoubt(): void {
    const now = performance.now();
    if (!this.isDown && now - this.heardUpTo <= PROOF_MS) return;
    if (now - this.doubtedAt > DOUBT_MS - DOUBT_LOOK_MS) this.doubt();
  }

  private doubt(): void {
    this.doubtedAt = performance.now();
    this.local.announceDoubt();
  }

  private onMessage(text: string): void {
    if (!this.messages.deliver(text, this.foreign)) this.log.debug("what arrived among the events is none");
  }
}

/** The message only: other fields of a client's error may contain its password. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
