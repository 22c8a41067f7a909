/**
 * Events that other processes have not been told of yet. Those of some milliseconds share a message, and at most one sending is
 * under way, so that a busy gateway sends no more often than a quiet one. Nothing here waits, throws or grows without bound.
 */
import type { EventMessages } from "./messages.js";

/** How long live events are collected. Nobody who watches notices, and a thousand charges a second become fifty messages. */
const COLLECT_MS = 20;
/** Live events that wait while more happens than can be sent. */
const LIVE_EVENTS_MAX = 10_000;
/** Dropped together, because finding the oldest of a large set costs more than dropping it. */
const LIVE_EVENTS_DROPPED_AT_ONCE = 1_000;
/** As much as one statement or pipeline carries: about 900 usage rows. */
const MESSAGES_PER_SENDING_MAX = 16;
/** What cannot be sent although the connection stands is tried again this much later. */
const RETRY_MS = 250;
/** How long a process that stops goes on telling. */
const DRAIN_MS = 1_000;

/** `send` has resolved when the messages are out, and rejects within seconds otherwise. */
export class EventOutbox {
  /** Must arrive: kept until sent, however long that takes. Equal events wait once, so there are no more than keys that changed. */
  private readonly kept = new Set<string>();
  /** For display: sent at most once, the oldest go first when there are too many. */
  private readonly live = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private isSending = false;
  private canSend = false;
  private isClosed = false;
  private isDropping = false;
  private whenDone: (() => void) | undefined;

  constructor(
    private readonly messages: EventMessages,
    private readonly send: (messages: readonly string[]) => Promise<void>,
    /** Called when events begin to be dropped, not for each. */
    private readonly onDropping: () => void,
  ) {}

  add(event: string, mustArrive: boolean): void {
    if (this.isClosed) return;
    if (mustArrive) {
      this.kept.add(event);
      this.scheduleNow();
    } else {
      this.live.add(event);
      if (this.live.size > LIVE_EVENTS_MAX) this.dropOldest();
      this.schedule(COLLECT_MS);
    }
  }

  /** Nothing is sent before the first call: the connection stands. */
  resume(): void {
    this.canSend = true;
    this.scheduleNow();
  }

  /** The connection is lost. What happens until `resume` waits. */
  pause(): void {
    this.canSend = false;
  }

  /** Sends what there is, if that is possible in time, and takes nothing more. */
  async close(): Promise<void> {
    this.isClosed = true;
    if (!this.isSending && (this.isEmpty || !this.canSend)) return;
    let deadline: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.whenDone = resolve;
      deadline = setTimeout(resolve, DRAIN_MS);
      this.scheduleNow();
    });
    clearTimeout(deadline);
    clearTimeout(this.timer);
    this.canSend = false;
  }

  private get isEmpty(): boolean {
    return this.kept.size === 0 && this.live.size === 0;
  }

  private schedule(delayMs: number): void {
    if (this.isSending || !this.canSend || this.isEmpty) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.sendNext();
    }, delayMs);
  }

  private scheduleNow(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.schedule(0);
  }

  private async sendNext(): Promise<void> {
    if (this.isSending || !this.canSend) return;
    const mustArrive = [...this.kept];
    this.isSending = true;
    try {
      await this.send(this.takeMessages());
      this.isSending = false;
      if (this.isEmpty) this.becomeIdle();
      else this.schedule(this.isClosed || this.kept.size > 0 ? 0 : COLLECT_MS);
    } catch {
      // They may have been heard all the same: what must arrive may arrive twice, a live event would show twice.
      this.isSending = false;
      for (const event of mustArrive) this.kept.add(event);
      this.schedule(RETRY_MS);
    }
  }

  private takeMessages(): string[] {
    const messages: string[] = [];
    while (messages.length < MESSAGES_PER_SENDING_MAX) {
      const message = this.messages.pack(this.kept) ?? this.messages.pack(this.live);
      if (message === undefined) break;
      messages.push(message);
    }
    return messages;
  }

  private dropOldest(): void {
    let count = 0;
    for (const event of this.live) {
      if (count === LIVE_EVENTS_DROPPED_AT_ONCE) break;
      this.live.delete(event);
      count += 1;
    }
    if (!this.isDropping) this.onDropping();
    this.isDropping = true;
  }

  private becomeIdle(): void {
    this.isDropping = false;
    this.whenDone?.();
  }
}
