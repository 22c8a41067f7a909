/**
 * A streamed answer from its first pull to the settlement. Lazy: nothing is called before the first pull, and
 * nothing is read ahead.
 *
 * 1. The first pull opens it: plan, limits and safety, hold, candidates in turn until one begins. A failure until
 *    then is an ordinary error.
 * 2. Each pull reads until an item can be delivered. Withheld items follow once the charge is committed.
 * 3. An early end (a disconnect, a failing upstream, a timeout without a pull) ends it once: the delivered part is
 *    charged, or nothing.
 */
import { upstreamFailed } from "../../errors.js";
import type { Pulled, PulledIterator } from "../../fast/pull.js";
import { toCallerError } from "./failures.js";
import type { Receipt } from "./receipt.js";
import type { Candidate } from "./routing/candidate.js";
import type { GenerationRun } from "./run.js";

export interface StreamSource<Opened, Item> {
  /** Plans it and checks limits and safety features. */
  admit(): Promise<GenerationRun> | GenerationRun;
  /** Holds the estimate; resolves when an upstream has begun to answer. */
  open(run: GenerationRun): Promise<StreamReader<Opened, Item>>;
}

/** An answer that has begun. */
export interface StreamReader<Opened, Item> {
  readonly opened: Opened;
  readonly served: Candidate;
  /** Synchronous when an item is available. `keptWaitingMs`: see ReaderPatience. */
  read(keptWaitingMs: number): Delivery<Item> | Promise<Delivery<Item>>;
  /** Charges the delivered part, or releases; resolves afterwards. */
  endEarly(patience: ReaderPatience): Promise<void>;
}

export interface Delivery<Item> {
  /** Null: nothing to deliver yet. */
  readonly item: Item | null;
  /** It was charged, and nothing follows. */
  readonly isLast: boolean;
  /** Thrown after the last item: why it ended. */
  readonly refusal?: unknown;
}

export interface ReaderPatience {
  /** No pull was pending at its end. */
  readonly isIdle: boolean;
  /** How long the reader has kept the stream waiting, in milliseconds. */
  readonly keptWaitingMs: number;
}

function ignore(): void {}

const DONE = { done: true, value: undefined } as const;

export class GenerationStream<Opened, Item> {
  /**
   * Resolves when an upstream has begun to answer and the hold is committed; rejects with the AppError otherwise, which `events` then
   * throws too.
   */
  readonly opened: Promise<Opened>;
  /** Settles after limits, safety features and balance were checked; `opened` has the result. */
  readonly admitted: Promise<void>;
  /** Throws an AppError when the answer fails; `return()` closes the upstream and charges the delivered part. */
  readonly events: AsyncIterableIterator<Item> & PulledIterator<Item>;
  private run: GenerationRun | null = null;
  private opening: Promise<StreamReader<Opened, Item>> | null = null;
  /** Once it is open. */
  private reader: StreamReader<Opened, Item> | null = null;
  private ending: Promise<void> | null = null;
  /** Of its reader. */
  private leaving: Promise<void> | null = null;
  private noteAdmitted = () => {};
  private noteOpened: (opened: Opened) => void = () => {};
  private noteRefused: (error: unknown) => void = () => {};
  private hasLeft = false;
  private isEnded = false;
  private isPulling = false;
  /** The last pending work. */
  private pending: Promise<unknown> = Promise.resolve();
  /** Thrown by the next pull: a failure without a pending pull, or one that follows delivered items. */
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
    // `events` throws it too.
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

  /** After its end, if something was charged. */
  receipt(): Receipt | null {
    return this.run?.receipt ?? null;
  }

  /** Resolves when it is charged after its reader left, which may take until the rest of it is read. */
  async settled(): Promise<void> {
    await this.leaving;
  }

  /** Times so far, in milliseconds. */
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
      const reported = run ? await withdraw(run, error) : error;
      this.noteRefused(reported);
      this.noteAdmitted();
      throw reported;
    }
  }

  /** Applies the time limit while the reader does not pull. */
  private followClock(run: GenerationRun): void {
    const { cancellation } = run;
    const handleEvent = () => {
      if (this.isPulling || this.isEnded) return;
      this.failure = { reason: run.toCallerError(cancellation.reason) };
      void this.end();
    };
    cancellation.addEventListener("abort", { handleEvent });
  }

  /** Throws and rejects as `events`. */
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

  /** Reads until an item can be delivered. */
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

  /** Null when there is nothing to deliver yet. */
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

  /** After a disconnect: ends at once, also during a pending read, without waiting for a rest that is still read. */
  private async leave(): Promise<IteratorResult<Item>> {
    this.hasLeft = true;
    const { run } = this;
    run?.cancellation.leave();
    const ended = this.endUnread();
    this.leaving ??= ended;
    if (!run || run.cancellation.aborted) await ended;
    return DONE;
  }

  private async endUnread(): Promise<void> {
    await this.pending.catch(ignore);
    if (this.opening) return this.end();
    // It was never pulled.
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

/** Ends a run without output, and returns the error for its reader, even if ending fails. */
async function withdraw(run: GenerationRun, error: unknown): Promise<unknown> {
  try {
    await run.release();
    return run.toCallerError(error);
  } catch (failure) {
    return failure;
  } finally {
    run.end();
  }
}
