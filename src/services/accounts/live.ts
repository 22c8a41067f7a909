/** Live account data: events of subscriptions, sent once they are committed. */
import type { RequestContext } from "../../context.js";
import type { AccountChannel, EventChannels, Events } from "../../store/events.js";
import { requireKeyManager, requirePermission } from "../access/permissions.js";
import type { LowBalanceNotice } from "../credits/low-balance.js";
import type { UsageRecords, UsageRow } from "../usage/usage.js";

/** Events that a slow subscriber may fall behind by; beyond that the oldest are dropped. */
const BACKLOG_MAX = 1_000;

export class LiveAccount {
  /** Reads under way by row id: a row is read once for all subscribers of its account. */
  private readonly reading = new Map<string, Promise<UsageRow>>();

  constructor(
    private readonly events: Events,
    private readonly usage: UsageRecords,
  ) {}

  /** Yields each usage row of the account once it is written. */
  usageRecorded(ctx: RequestContext): AsyncIterableIterator<UsageRow> {
    const { accountId } = requirePermission(ctx, "usage");
    const source = queueOf(this.events, ctx, "usage-recorded", accountId);
    return mapEvents(source, ({ usageId }) => this.read(ctx, usageId));
  }

  private read(ctx: RequestContext, usageId: string): Promise<UsageRow> {
    const known = this.reading.get(usageId);
    if (known) return known;
    const reading = this.usage.get(ctx, usageId).finally(() => this.reading.delete(usageId));
    this.reading.set(usageId, reading);
    return reading;
  }

  /** Yields when the balance changes. A burst is one event, as only the newest balance matters. */
  balanceChanged(ctx: RequestContext): AsyncIterableIterator<{ readonly accountId: string }> {
    const { accountId } = requirePermission(ctx, "balance");
    const source = queueOf(this.events, ctx, "balance-changed", accountId, 1);
    // An event that was missed may have been a change.
    source.onClose(this.events.onGap(() => source.push({ accountId })));
    return mapEvents(source, async () => ({ accountId }));
  }

  /** Yields each percentage of a limit that usage reaches. */
  usageLimitReached(ctx: RequestContext): AsyncIterableIterator<EventChannels["usage-limit-reached"]> {
    const { accountId } = requireKeyManager(ctx);
    return mapEvents(queueOf(this.events, ctx, "usage-limit-reached", accountId), async (reached) => reached);
  }

  /** Yields once each time that the balance falls below the account's notification threshold. */
  balanceLow(ctx: RequestContext): AsyncIterableIterator<LowBalanceNotice> {
    const { accountId } = requirePermission(ctx, "balance");
    const source = queueOf(this.events, ctx, "balance-low", accountId);
    return mapEvents(source, async ({ balance, threshold, since }) => ({
      ...{ accountId, balance: BigInt(balance), threshold: BigInt(threshold) },
      since: new Date(since),
    }));
  }
}

/** Queues the events of one account from now until the client disconnects. */
export function queueOf<C extends AccountChannel>(
  events: Events,
  ctx: RequestContext,
  channel: C,
  accountId: string,
  backlogMax = BACKLOG_MAX,
): EventQueue<EventChannels[C]> {
  const queue = new EventQueue<EventChannels[C]>(backlogMax);
  queue.onClose(events.listenToAccount(channel, accountId, (payload) => queue.push(payload)));
  queue.closeWith(ctx.signal);
  return queue;
}

/**
 * A look at one thing of the account now, after each event that concerns it, and when one may have been missed; until the client
 * disconnects. Only its current state matters, so many events are one look.
 */
export function looksAt<C extends AccountChannel>(
  events: Events,
  ctx: RequestContext,
  channel: C,
  accountId: string,
  concerns: (payload: EventChannels[C]) => boolean,
): EventQueue<true> {
  const looks = new EventQueue<true>(1);
  const look = () => looks.push(true);
  const stopListening = events.listenToAccount(channel, accountId, (payload) => {
    if (concerns(payload)) look();
  });
  looks.onClose(stopListening);
  looks.onClose(events.onGap(look));
  looks.closeWith(ctx.signal);
  look();
  return looks;
}

/** A bounded queue between a pushing source and a pulling reader. The oldest item is dropped when it is full. */
export class EventQueue<Item> {
  private items: Item[] = [];
  private isClosed = false;
  private wake: (() => void) | null = null;
  private closers: (() => void)[] = [];

  constructor(private readonly itemsMax: number) {}

  push(item: Item): void {
    if (this.isClosed) return;
    this.items.push(item);
    if (this.items.length > this.itemsMax) this.items.shift();
    this.wake?.();
  }

  onClose(closer: () => void): void {
    if (this.isClosed) closer();
    else this.closers.push(closer);
  }

  /** Closes when the client disconnects. */
  closeWith(signal: AbortSignal): void {
    const leave = () => this.close();
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    this.onClose(() => signal.removeEventListener("abort", leave));
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const closer of this.closers) closer();
    this.wake?.();
  }

  /** Undefined once the queue is closed. */
  async next(): Promise<Item | undefined> {
    while (this.items.length === 0 && !this.isClosed) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    return this.isClosed ? undefined : this.items.shift();
  }
}

/**
 * Maps an iterator, leaving out items that map to null. Its `return()` ends a pending `next()` at once, which that of an async generator
 * does not.
 */
export function mapEvents<Item, Result>(
  queue: EventQueue<Item>,
  map: (item: Item) => Promise<Result | null>,
): AsyncIterableIterator<Result> {
  return {
    async next() {
      for (;;) {
        const item = await queue.next();
        if (item === undefined) return { done: true, value: undefined };
        const value = await map(item);
        if (value !== null) return { done: false, value };
      }
    },
    async return() {
      queue.close();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
