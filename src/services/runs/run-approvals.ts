/**
 * Lets calls at the limit of their run wait for the payer (docs/spec/runs.md#asking). The run shows the credits that a call lacks;
 * `run-changed` tells subscribers and webhooks of every process. A call goes on when the payer approves enough, or when other calls leave enough unused.
 */
import type { Logger } from "pino";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { AppError, serviceUnavailable } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { parseNanocredits } from "../../lib/money.js";
import type { CallEnd } from "../../providers/provider.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import {
  RUN_APPROVAL_WAIT_MS,
  RUN_ASKED_AGAIN_MS,
  RUN_ASKED_MS_MAX,
  RUN_CREDITS_LOOK_MS,
  WAITING_CALLS_MAX,
  WAITING_CALLS_OF_RUN_MAX,
} from "./limits.js";

export interface RunApprovalsDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: RUN_APPROVAL_WAIT_MS. */
  readonly waitMs?: number;
}

type Change = "look" | "time" | "end" | "stop";

/** A run that lacks credits for a call. */
interface Shortage {
  readonly runId: string;
  /** Nanocredits, more than 0. */
  readonly lacking: bigint;
}

interface NextChange {
  /** Resolves with the next change that may help the call, or with its end. */
  readonly promise: Promise<Change>;
  lookSoon(): void;
  stop(): void;
}

export class RunApprovals {
  /** Calls that wait here, by run. */
  private readonly waiting = new Map<string, number>();
  private count = 0;
  /** Each ends the wait of one call. */
  private readonly stops = new Set<() => void>();
  private isClosed = false;

  constructor(private readonly deps: RunApprovalsDependencies) {}

  /** Refuses waiting calls with SERVICE_UNAVAILABLE, and later ones: a gateway that stops does not wait for a payer. */
  close(): void {
    this.isClosed = true;
    for (const stop of this.stops) stop();
  }

  /**
   * After a hold that was refused for a budget: holds again with `hold` whenever that may succeed. Rejects with the last refusal when no
   * run of the caller asks, too many calls wait, or nothing has changed in time; and when the call has ended.
   */
  async holdInTime(caller: KeyCaller | SessionCaller, refusal: unknown, end: CallEnd, hold: () => Promise<void>): Promise<void> {
    if (caller.kind !== "key" || caller.runIds === undefined || neededBy(refusal) === null || !this.mayWait(caller.runIds)) throw refusal;
    const asked = new Set<string>();
    this.add(caller.runIds, 1);
    try {
      await this.holdUntil(Date.now() + (this.deps.waitMs ?? RUN_APPROVAL_WAIT_MS), { caller, refusal, end, hold, asked });
    } finally {
      this.add(caller.runIds, -1);
      await this.forget(caller.accountId, [...asked]);
    }
  }

  private async holdUntil(until: number, { caller, refusal: first, end, hold, asked }: WaitingCall): Promise<void> {
    let refusal = first;
    for (;;) {
      // Before the look, so that no change between the look and the wait is missed.
      const change = this.nextChange(caller, until, end);
      try {
        const needed = neededBy(refusal);
        const shortages = needed === null ? null : await this.shortagesOf(caller, needed);
        if (shortages === null) throw refusal;
        await this.ask(caller.accountId, shortages, asked);
        // The credits are there, in a lease or of a call that has just ended.
        if (shortages.length === 0) change.lookSoon();
        const what = await change.promise;
        if (what === "end") throw end.reason;
        if (what === "time") throw refusal;
        if (what === "stop")
          throw serviceUnavailable("The gateway is stopping, so it does not wait for more credits. Send the request again.");
      } finally {
        change.stop();
      }
      try {
        return await hold();
      } catch (error) {
        refusal = error;
      }
    }
  }

  /** Null: a key that is no run, or a run that does not ask, lacks credits too. */
  private async shortagesOf({ apiKeyId }: KeyCaller, needed: bigint): Promise<readonly Shortage[] | null> {
    const { apiKey } = this.deps.database.prisma;
    const own = await apiKey.findUnique({ where: { id: apiKeyId }, select: { ancestorIds: true } });
    if (!own) return null;
    const keys = await apiKey.findMany({
      where: { id: { in: [apiKeyId, ...own.ancestorIds] }, budgetNanocredits: { not: null } },
      select: { id: true, budgetNanocredits: true, spentNanocredits: true, heldNanocredits: true, run: { select: { onLimit: true } } },
    });
    const short = keys.flatMap(({ id, budgetNanocredits, spentNanocredits, heldNanocredits, run }) => {
      const lacking = needed - ((budgetNanocredits ?? 0n) - spentNanocredits - heldNanocredits);
      return lacking > 0n ? [{ runId: id, lacking, asks: run?.onLimit === "ask" }] : [];
    });
    return short.every(({ asks }) => asks) ? short : null;
  }

  private async ask(accountId: string, shortages: readonly Shortage[], asked: Set<string>): Promise<void> {
    const { clock, database, events } = this.deps;
    const now = clock.now();
    const [again, abandoned] = [RUN_ASKED_AGAIN_MS, RUN_ASKED_MS_MAX].map((age) => new Date(now.getTime() - age));
    for (const { runId, lacking } of shortages) {
      asked.add(runId);
      // Announced once, and again when more is lacking.
      const [asking] = await database.prisma.$queryRaw<{ isNews: boolean }[]>`
        WITH old AS (SELECT asked_nanocredits AS asked, asked_at FROM run WHERE id = ${runId}::uuid FOR UPDATE)
        UPDATE run SET asked_at = ${now}, asked_nanocredits = greatest(${lacking}::bigint, CASE WHEN old.asked_at > ${abandoned} THEN old.asked END)
        FROM old WHERE run.id = ${runId}::uuid AND (old.asked IS NULL OR old.asked < ${lacking}::bigint OR old.asked_at <= ${again})
        RETURNING (old.asked IS NULL OR old.asked < ${lacking}::bigint OR old.asked_at <= ${abandoned}) AS "isNews"`;
      if (asking?.isNews) events.publish("run-changed", { accountId, runId, change: "asked" });
    }
  }

  /** The last call that waits here takes the question back. Never rejects: an approval does the same. */
  private async forget(accountId: string, asked: readonly string[]): Promise<void> {
    const { database, events, log } = this.deps;
    const unasked = asked.filter((id) => !this.waiting.has(id));
    if (unasked.length === 0) return;
    try {
      const where = { id: { in: unasked }, askedNanocredits: { not: null } };
      const withdrawn = await database.prisma.run.updateManyAndReturn({ where, data: { askedNanocredits: null }, select: { id: true } });
      // Calls that wait in other processes, or began to wait meanwhile, ask again.
      for (const { id: runId } of withdrawn) events.publish("run-changed", { accountId, runId, change: "withdrawn" });
    } catch (error) {
      log.warn({ err: error, runIds: unasked }, "runs go on asking for credits that no call waits for");
    }
  }

  private nextChange({ accountId, runIds = [] }: KeyCaller, until: number, end: CallEnd): NextChange {
    const { events } = this.deps;
    let resolve: (change: Change) => void = () => undefined;
    const promise = new Promise<Change>((settle) => {
      resolve = settle;
    });
    const ended = { handleEvent: () => resolve("end") };
    const timer = setTimeout(() => resolve("time"), Math.max(0, until - Date.now()));
    let looking: NodeJS.Timeout | undefined;
    const lookSoon = () => {
      looking ??= setTimeout(() => resolve("look"), RUN_CREDITS_LOOK_MS);
    };
    const stops = [
      events.listenToAccount("run-changed", accountId, ({ runId, change }) => {
        if (!runIds.includes(runId)) return;
        if (change === "approved") resolve("look");
        else if (change === "withdrawn") lookSoon();
      }),
      events.listenToAccount("balance-changed", accountId, lookSoon),
      events.listenToAccount("usage-recorded", accountId, lookSoon),
      events.onGap(lookSoon),
    ];
    const stopWaiting = () => resolve("stop");
    this.stops.add(stopWaiting);
    if (end.aborted) resolve("end");
    else if (this.isClosed) stopWaiting();
    else end.addEventListener("abort", ended);
    const stop = () => {
      this.stops.delete(stopWaiting);
      clearTimeout(timer);
      clearTimeout(looking);
      end.removeEventListener("abort", ended);
      for (const stopListening of stops) stopListening();
    };
    return { promise, lookSoon, stop };
  }

  private mayWait(runIds: readonly string[]): boolean {
    return this.count < WAITING_CALLS_MAX && runIds.every((id) => (this.waiting.get(id) ?? 0) < WAITING_CALLS_OF_RUN_MAX);
  }

  private add(runIds: readonly string[], more: number): void {
    this.count += more;
    for (const id of runIds) {
      const count = (this.waiting.get(id) ?? 0) + more;
      if (count === 0) this.waiting.delete(id);
      else this.waiting.set(id, count);
    }
  }
}

interface WaitingCall {
  readonly caller: KeyCaller;
  readonly refusal: unknown;
  readonly end: CallEnd;
  readonly hold: () => Promise<void>;
  /** Runs whose payer was asked. */
  readonly asked: Set<string>;
}

/** Nanocredits that the hold of a call needed; null: its refusal was not for a budget. */
function neededBy(refusal: unknown): bigint | null {
  if (!(refusal instanceof AppError) || refusal.code !== "KEY_BUDGET_EXHAUSTED") return null;
  const { bound, required } = (refusal.details ?? {}) as Readonly<Record<string, unknown>>;
  const isOfKey = bound === "key_budget" || bound === "parent_key_budget";
  return isOfKey && typeof required === "string" ? parseNanocredits(required) : null;
}
