/**
 * An answer that is passed on while it is made, from its first reading to the settlement. Its reader drives it: nothing is asked for before
 * the first pull, and nothing is read ahead.
 *
 * 1. The first pull opens it: plan, limits and safety, hold, upstreams in turn until one begins. Until then a failure is an ordinary error.
 * 2. Each pull reads on until something may go on. What is withheld goes out once the charge is committed.
 * 3. Whatever ends it early, a reader who leaves, an upstream that fails, time that runs out while nobody pulls, ends it once: what was
 *    delivered is charged, or nothing is.
 */
import { upstreamFailed } from "../../errors.js";
import type { Pulled, PulledIterator } from "../../lib/pull.js";
import type { Model } from "../catalog/model.js";
import { toCallerError } from "./failures.js";
import type { Receipt } from "./receipt.js";
import type { GenerationRun } from "./run.js";

export interface StreamSource<Opened, Item> {
  /** Plans it and passes the limits and safety features. */
  admit(): Promise<GenerationRun> | GenerationRun;
  /** What is expected is set aside: resolves when an upstream has begun to answer. */
  open(run: GenerationRun): Promise<StreamReader<Opened, Item>>;
}

/** An answer that has begun. */
export interface StreamReader<Opened, Item> {
  readonly opened: Opened;
  /** Who answers. */
  readonly served: Model;
  /** At once, when what is to be delivered is here. `keptWaitingMs`: see ReaderPatience. */
  read(keptWaitingMs: number): Delivery<Item> | Promise<Delivery<Item>>;
  /** Charges what was delivered, or releases; resolves when that is done. */
  endEarly(patience: ReaderPatience): Promise<void>;
}

export interface Delivery<Item> {
  /** Null: nothing may go on yet. */
  readonly item: Item | null;
  /** It has been charged, and nothing follows. */
  readonly isLast: boolean;
  /** Told after the last item: why nothing follows. */
  readonly refusal?: unknown;
}

export interface ReaderPatience {
  /** Nobody was asking for more when it ended. */
  readonly isIdle: boolean;
  /** How long the reader has kept the stream waiting, in milliseconds. */
  readonly keptWaitingMs: number;
}

function ignore(): void {}

const DONE = { done: true, value: undefined } as const;

export class GenerationStream<Opened, Item> {
  /** An upstream has begun to answer and the hold is committed; rejects with the AppError otherwise, which `events` then throws too. */
  readonly opened: Promise<Opened>;
  /** Limits, safety features and the balance have been looked at; `opened` tells what came of it. */
  readonly admitted: Promise<void>;
  /** Throws an AppError when the answer fails on the way; `return()` closes the upstream and charges what was delivered. */
  readonly events: AsyncIterableIterator<Item> & PulledIterator<Item>;
  private run: GenerationRun | null = null;
  private opening: Promise<StreamReader<Opened, Item>> | null = null;
  /** Once it is open. */
  private reader: StreamReader<Opened, Item> | null = null;
  private ending: Promise<void> | null = null;
  private noteAdmitted = () => {};
  private noteOpened: (opened: Opened) => void = () => {};
  private noteRefused: (error: unknown) => void = () => {};
  private hasLeft = false;
  private isEnded = false;
  private isPulling = false;
  /** What was last waited for. */
  private pending: Promise<unknown> = Promise.resolve();
  /** Thrown by the next pull: it came while nobody was asking, or is to follow what has been given out. */
  private failure: { readonly reason: unknown } | null = null;
  private keptWaitingMs = 0;
  private handedOutAt: number | null = null;
  private readonly startedAt = performance.now();

  constructor(private readonly source: StreamSource<Opened, Item>) {
    this.admitted = new Promise((resolve) => {
      this.noteAdmitted = resolve;
    });
    this.opened = new Promise((resolve, reject) => {
      this.noteOpened = resolve;
      this.noteRefused = reject;
    });
    // Whoever reads it is told by `events`, too.
    this.opened.catch(() => undefined);
    this.events = {
      next: async () => {
        const { done, value } = await this.pull();
        return done ? DONE : { done: false, value };
      },
      pull: () => this.pull(),
      return: () => this.leave(),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** Once it has ended and something was charged. */
  receipt(): Receipt | null {
    return this.run?.receipt ?? null;
  }

  /** Where the time has gone until now, in milliseconds. */
  timing(): Pick<Receipt, "gatewayMs" | "upstreamMs"> {
    return this.run?.timing() ?? { gatewayMs: performance.now() - this.startedAt, upstreamMs: 0 };
  }

  private async open(): Promise<StreamReader<Opened, Item>> {
    let run: GenerationRun | null = null;
    try {
      const admitting = this.source.admit();
      run = admitting instanceof Promise ? await admitting : admitting;
      this.run = run;
      if (this.hasLeft) run.cancellation.leave();
      await run.hold();
      this.noteAdmitted();
      const reader = await this.source.open(run);
      await run.committed();
      this.followClock(run);
      this.noteOpened(reader.opened);
      return reader;
    } catch (error) {
      this.isEnded = true;
      const told = run ? await withdraw(run, error) : error;
      this.noteRefused(told);
      this.noteAdmitted();
      throw told;
    }
  }

  /** Time runs out while the reader is waited for: nobody may ever ask for more. */
  private followClock(run: GenerationRun): void {
    const { cancellation } = run;
    const handleEvent = () => {
      if (this.isPulling || this.isEnded) return;
      this.failure = { reason: run.told(cancellation.reason) };
      void this.end();
    };
    cancellation.addEventListener("abort", { handleEvent });
  }

  /** Throws and rejects as `events` do. */
  private pull(): Pulled<Item> | Promise<Pulled<Item>> {
    if (this.failure) {
      const { reason } = this.failure;
      this.failure = null;
      throw reason;
    }
    if (this.isEnded) return DONE;
    this.isPulling = true;
    if (this.handedOutAt !== null) this.keptWaitingMs += performance.now() - this.handedOutAt;
    const pulled = this.reader === null ? this.pullFirst() : this.pullFrom(this.reader);
    if (pulled instanceof Promise) this.pending = pulled;
    return pulled;
  }

  private async pullFirst(): Promise<Pulled<Item>> {
    try {
      this.reader = await this.begin();
    } catch (error) {
      this.noteHandedOut();
      throw error;
    }
    return this.pullFrom(this.reader);
  }

  private begin(): Promise<StreamReader<Opened, Item>> {
    this.opening ??= this.open();
    return this.opening;
  }

  /** Reads on until something may go on. */
  private pullFrom(reader: StreamReader<Opened, Item>): Pulled<Item> | Promise<Pulled<Item>> {
    for (;;) {
      let delivery: Delivery<Item> | Promise<Delivery<Item>>;
      try {
        delivery = reader.read(this.keptWaitingMs);
      } catch (error) {
        return this.breakOff(reader, error);
      }
      if (delivery instanceof Promise) {
        return delivery.then(
          (delivered) => this.deliver(delivered) ?? this.pullFrom(reader),
          (error: unknown) => this.breakOff(reader, error),
        );
      }
      const pulled = this.deliver(delivery);
      if (pulled !== null) return pulled;
    }
  }

  /** Null when there is nothing to hand out yet. */
  private deliver({ item, isLast, refusal }: Delivery<Item>): Pulled<Item> | null {
    if (isLast) this.conclude(refusal);
    if (item === null && !isLast) return null;
    this.noteHandedOut();
    return item === null ? DONE : { done: false, value: item, isLast: isLast && !refusal };
  }

  private noteHandedOut(): void {
    this.isPulling = false;
    this.handedOutAt = performance.now();
  }

  private async breakOff(reader: StreamReader<Opened, Item>, error: unknown): Promise<never> {
    this.isEnded = true;
    try {
      await reader.endEarly({ isIdle: false, keptWaitingMs: this.keptWaitingMs });
    } finally {
      this.run?.end();
      this.noteHandedOut();
    }
    throw toCallerError(error, reader.served);
  }

  private conclude(refusal: unknown): void {
    this.isEnded = true;
    if (refusal) this.failure = { reason: refusal };
    this.run?.end();
  }

  /** The caller leaves: at once, also while an upstream is being waited for, and without waiting for a rest that is read all the same. */
  private async leave(): Promise<IteratorResult<Item>> {
    this.hasLeft = true;
    const { run } = this;
    run?.cancellation.leave();
    const ended = this.endUnread();
    if (!run || run.cancellation.aborted) await ended;
    return DONE;
  }

  private async endUnread(): Promise<void> {
    await this.pending.catch(ignore);
    if (this.opening) return this.end();
    // Nobody has ever asked for it.
    this.isEnded = true;
    this.noteRefused(upstreamFailed("The caller left before the answer came."));
    this.noteAdmitted();
  }

  private end(): Promise<void> {
    if (this.isEnded || !this.opening) return this.ending ?? Promise.resolve();
    this.isEnded = true;
    this.ending = this.opening
      .then((reader) => reader.endEarly({ isIdle: true, keptWaitingMs: this.keptWaitingMs }))
      .catch(() => undefined)
      .finally(() => this.run?.end());
    return this.ending;
  }
}

/** Ends a run of which nothing came, and answers what its reader is told: whoever waits is told something, whatever fails here. */
async function withdraw(run: GenerationRun, error: unknown): Promise<unknown> {
  try {
    await run.release();
    return run.told(error);
  } catch (failure) {
    return failure;
  } finally {
    run.end();
  }
}
