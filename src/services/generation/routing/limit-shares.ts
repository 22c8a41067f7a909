/**
 * The part of a process in the limits of routes that all processes keep together (docs/decisions/limits-of-routes-in-shares.md). Work in the
 * background exchanges units with the other processes; a call looks at the share that its process has, and waits for nothing.
 */

import type { CountRequest, RouteExchange, RouteStates, Share, ShareRequest } from "../../../store/route-states.js";
import type { RouteLimits } from "../../catalog/route.js";

/** Interval of exchanges, and the least time between two. */
const EXCHANGE_MS = 250;
const HURRY_MS = 10;
/** Limits that were not used since the last exchange are exchanged every so many times. */
const IDLE_EVERY = 4;
/** Before a minute, its shares are taken. */
const AHEAD_MS = 3_000;
const MINUTE_MS = 60_000;
const SHARE_TTL_MS = 150_000;
/** A share that runs low asks for that part of the limit. */
const PARTS = 8;
/** After so many exchanges without a unit, a limit is taken to be used up. */
const EMPTY_EXCHANGES = 4;
/** After an outage of the store, until every process is connected again and has stated its units. */
const REGISTERING_MS = 4_000;

/** The counts of a key's model in this process: requests and tokens of the minute, and calls under way. */
export interface CountedUse {
  readonly minute: number;
  readonly requests: number;
  readonly tokens: number;
  readonly running: number;
}

/** The limits of a process in place of those of its route; null: none. */
export interface AllowedUse {
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly concurrent: number | null;
  /** Nothing is left for any process. */
  readonly isUsedUp: boolean;
}

const NOTHING: Share = { granted: 0, isWanted: false };

/** Units of one limit that this process may use. */
class Lease {
  kept = 0;
  emptyExchanges = 0;
  private isNew = true;
  private isShort = false;
  private isWanted = false;
  private lowAt = 0;
  private wanted: number | null = 0;

  constructor(private readonly limit: number) {}

  /** Of a changed limit, with the units that the former one leaves. */
  static relimited(former: Lease | null, limit: number | null): Lease | null {
    if (limit === null) return null;
    const lease = new Lease(limit);
    // Of a lower limit, each process keeps that part of its units.
    if (former) lease.kept = limit < former.limit ? Math.floor((former.kept * limit) / former.limit) : former.kept;
    return lease;
  }

  /** Gives up units that others want. `isRegistering`: asks for none, as the others may not have stated theirs yet. */
  ask(used: number, isRegistering: boolean): Pick<ShareRequest, "limit" | "kept" | "wanted"> {
    const { limit, isNew, isShort } = this;
    // More was used while the store did not answer.
    this.kept = Math.max(this.kept, used);
    if (this.isWanted && !isShort) this.kept -= Math.ceil((this.kept - used) / 2);
    this.wanted = isRegistering ? 0 : isNew ? null : isShort ? Math.ceil(limit / PARTS) : 0;
    return { limit, kept: this.kept, wanted: this.wanted };
  }

  receive({ granted, isWanted }: Share, processes: number): void {
    this.kept += granted;
    this.isWanted = isWanted;
    if (this.wanted === 0) return;
    const isFirst = this.wanted === null;
    if (isFirst) this.lowAt = Math.floor(granted / 2);
    this.emptyExchanges = granted === 0 ? this.emptyExchanges + 1 : 0;
    this.isNew = false;
    this.isShort = isFirst ? granted < Math.floor(this.limit / processes) : granted === 0;
  }

  /** True when an exchange may bring units soon. */
  noteUse(used: number): boolean {
    if (this.kept - used > this.lowAt) return false;
    this.isShort = true;
    return this.emptyExchanges === 0;
  }

  /** The next exchange matters. */
  get isPressing(): boolean {
    return this.isNew || this.isShort || this.isWanted;
  }
}

interface Tracked {
  readonly id: string;
  limits: RouteLimits;
  /** Now. */
  readonly useOf: () => CountedUse;
  minute: number;
  requests: Lease | null;
  /** Of the next minute. */
  nextRequests: Lease | null;
  running: Lease | null;
  /** Tokens of the minute in the other processes. */
  otherTokens: number;
  isUsed: boolean;
}

interface Asked {
  readonly shares: ShareRequest[];
  readonly receivers: ((share: Share, processes: number) => void)[];
  readonly counts: CountRequest[];
  readonly countReceivers: ((others: number) => void)[];
}

export class LimitShares {
  private readonly tracked = new Map<string, Tracked>();
  /** Of the last answer. */
  private processes = 1;
  /** The store has not answered: each process keeps an equal part. */
  private isAlone = true;
  private exchanging: Promise<void> | null = null;
  private exchanges = 0;
  private hasBeenAnswered = false;
  /** Until then exchanges only state the kept units: the store may have forgotten them. */
  private registeringUntil = 0;
  private timer: NodeJS.Timeout | undefined;
  private hurryTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: RouteStates,
    private readonly processId: string,
    private readonly now: () => number,
  ) {}

  /** Takes the first shares, and goes on in the background. */
  async start(): Promise<void> {
    await this.exchange();
    this.timer = setInterval(() => void this.exchange(), EXCHANGE_MS).unref();
  }

  /** Gives back the units that were not used. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    clearTimeout(this.hurryTimer);
    this.timer = undefined;
    await this.exchanging;
    const asked = emptyAsked();
    for (const tracked of this.tracked.values()) {
      const requests = this.turn(tracked);
      const { id, minute, nextRequests, running, useOf } = tracked;
      const giveBack = (name: string, isFreedAtEnd: boolean, kept: number) =>
        asked.shares.push(shareOf(name, isFreedAtEnd, { limit: 0, kept, wanted: 0 }));
      if (requests) giveBack(requestsName(id, minute), false, useOf().requests);
      if (nextRequests) giveBack(requestsName(id, minute + 1), false, 0);
      if (running) giveBack(runningName(id), true, 0);
    }
    if (asked.shares.length > 0) await this.store.exchange(this.processId, asked.shares, []);
    await this.store.leave(this.processId);
  }

  /** `useOf` counts now. */
  track(id: string, limits: RouteLimits, useOf: () => CountedUse): void {
    const { rpm, concurrent } = limits;
    this.tracked.set(id, {
      id,
      limits,
      useOf,
      minute: this.minute,
      requests: rpm === null ? null : new Lease(rpm),
      nextRequests: null,
      running: concurrent === null ? null : new Lease(concurrent),
      otherTokens: 0,
      isUsed: true,
    });
    this.hurry();
  }

  /** An operator changed the limits. */
  relimit(id: string, limits: RouteLimits): void {
    const tracked = this.tracked.get(id);
    if (!tracked) return;
    const { rpm, tpm, concurrent } = tracked.limits;
    if (limits.rpm === rpm && limits.tpm === tpm && limits.concurrent === concurrent) return;
    tracked.limits = limits;
    if (limits.rpm !== rpm) {
      tracked.requests = Lease.relimited(this.turn(tracked), limits.rpm);
      tracked.nextRequests = null;
    }
    if (limits.concurrent !== concurrent) tracked.running = Lease.relimited(tracked.running, limits.concurrent);
    tracked.isUsed = true;
    this.hurry();
  }

  /** Null: the id is not tracked. */
  allowed(id: string): AllowedUse | null {
    const tracked = this.tracked.get(id);
    if (!tracked) return null;
    const { limits, otherTokens, running } = tracked;
    const requests = this.turn(tracked);
    const within = (lease: Lease | null, limit: number | null) =>
      lease === null || limit === null ? null : this.isAlone ? Math.max(lease.kept, this.partOf(limit)) : lease.kept;
    return {
      rpm: within(requests, limits.rpm),
      tpm: limits.tpm === null ? null : this.isAlone ? this.partOf(limits.tpm) : limits.tpm - otherTokens,
      concurrent: within(running, limits.concurrent),
      isUsedUp: requests !== null && requests.emptyExchanges >= EMPTY_EXCHANGES,
    };
  }

  /** A call began, or was refused for want of units. */
  noteUse(id: string, { requests, running }: CountedUse): void {
    const tracked = this.tracked.get(id);
    if (!tracked) return;
    tracked.isUsed = true;
    const isSoon = [this.turn(tracked)?.noteUse(requests), tracked.running?.noteUse(running)];
    if (isSoon.includes(true)) this.hurry();
  }

  /** One exchange at a time. Never rejects. */
  exchange(): Promise<void> {
    this.exchanging ??= this.exchangeOnce().finally(() => {
      this.exchanging = null;
    });
    return this.exchanging;
  }

  private async exchangeOnce(): Promise<void> {
    const asked = emptyAsked();
    const isIdleDue = this.exchanges % IDLE_EVERY === 0;
    this.exchanges += 1;
    for (const tracked of this.tracked.values()) {
      const requests = this.turn(tracked);
      const isPressing = requests?.isPressing || tracked.running?.isPressing;
      // Tokens of the others come without a call of this process.
      const isCounting = tracked.limits.tpm !== null && tracked.useOf().requests > 0;
      if (isIdleDue || tracked.isUsed || isPressing || isCounting) this.ask(tracked, asked);
    }
    if (asked.shares.length + asked.counts.length === 0 && !this.isAlone) return;
    const answer = await this.store.exchange(this.processId, asked.shares, asked.counts);
    this.receive(answer, asked);
  }

  private ask(tracked: Tracked, asked: Asked): void {
    const { id, minute, limits, requests, running, useOf } = tracked;
    const use = useOf();
    const isRegistering = this.now() < this.registeringUntil || (this.isAlone && this.hasBeenAnswered);
    tracked.isUsed = false;
    const askFor = (name: string, lease: Lease, used: number, isFreedAtEnd: boolean) => {
      asked.shares.push(shareOf(name, isFreedAtEnd, lease.ask(used, isRegistering)));
      asked.receivers.push((share, processes) => lease.receive(share, processes));
    };
    if (requests) askFor(requestsName(id, minute), requests, use.requests, false);
    if (running) askFor(runningName(id), running, use.running, true);
    if (limits.rpm !== null && tracked.nextRequests === null && (minute + 1) * MINUTE_MS - this.now() < AHEAD_MS) {
      tracked.nextRequests = new Lease(limits.rpm);
      askFor(requestsName(id, minute + 1), tracked.nextRequests, 0, false);
    }
    if (limits.tpm === null) return;
    asked.counts.push({ name: `tokens ${id} ${minute}`, own: use.tokens, ttlMs: SHARE_TTL_MS });
    asked.countReceivers.push((others) => {
      if (tracked.minute === minute) tracked.otherTokens = others;
    });
  }

  private receive(answer: RouteExchange | null, { receivers, countReceivers }: Asked): void {
    const wasAlone = this.isAlone;
    this.isAlone = answer === null;
    if (answer === null) return;
    // The first answer of all is that of the start.
    if (wasAlone && this.hasBeenAnswered) this.registeringUntil = this.now() + REGISTERING_MS;
    this.hasBeenAnswered = true;
    this.processes = answer.processes;
    for (const [index, receive] of receivers.entries()) receive(answer.shares[index] ?? NOTHING, answer.processes);
    for (const [index, receive] of countReceivers.entries()) receive(answer.counts[index] ?? 0);
  }

  /** The lease of the minute that has begun. */
  private turn(tracked: Tracked): Lease | null {
    const { minute } = this;
    if (tracked.minute === minute) return tracked.requests;
    const { rpm } = tracked.limits;
    const isNext = tracked.minute === minute - 1;
    tracked.requests = rpm === null ? null : ((isNext ? tracked.nextRequests : null) ?? new Lease(rpm));
    tracked.nextRequests = null;
    tracked.otherTokens = 0;
    tracked.minute = minute;
    return tracked.requests;
  }

  private get minute(): number {
    return Math.floor(this.now() / MINUTE_MS);
  }

  private partOf(limit: number): number {
    return Math.max(1, Math.floor(limit / this.processes));
  }

  /** Exchanges soon, once the background work has been started. */
  private hurry(): void {
    if (this.timer === undefined || this.hurryTimer !== undefined) return;
    this.hurryTimer = setTimeout(() => {
      this.hurryTimer = undefined;
      void this.exchange();
    }, HURRY_MS);
  }
}

function emptyAsked(): Asked {
  return { shares: [], receivers: [], counts: [], countReceivers: [] };
}

function shareOf(name: string, isFreedAtEnd: boolean, units: Pick<ShareRequest, "limit" | "kept" | "wanted">): ShareRequest {
  return { name, isFreedAtEnd, ttlMs: SHARE_TTL_MS, ...units };
}

function requestsName(id: string, minute: number): string {
  return `requests ${id} ${minute}`;
}

function runningName(id: string): string {
  return `running ${id}`;
}
