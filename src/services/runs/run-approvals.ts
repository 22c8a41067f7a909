/**
 * Lets calls at the limit of their run wait for the payer (docs/spec/runs.md#asking). The run shows the credits that a call lacks;
 * `run-changed` tells subscribers and webhooks of every process. A call goes on when the payer approves enough, or when other calls leave enough unused.
 */
import type { Logger } from "pino";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { AppError } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { parseNanocredits } from "../../lib/money.js";
import type { CallEnd } from "../../providers/provider.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { RUN_APPROVAL_WAIT_MS, RUN_CREDITS_LOOK_MS, WAITING_CALLS_MAX, WAITING_CALLS_OF_RUN_MAX } from "./limits.js";

export interface RunApprovalsDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: RUN_APPROVAL_WAIT_MS. */
  readonly waitMs?: number;
}

type Change = "look" | "time" | "end";

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

  constructor(private readonly deps: RunApprovalsDependencies) {}

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
      await this.forget([...asked]);
      this.add(caller.runIds, -1);
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
    const now = this.deps.clock.now().toISOString();
    for (const { runId, lacking } of shortages) {
      asked.add(runId);
      // Announced once, and again when more is lacking.
      const isNews = await this.deps.database.prisma.$executeRaw`
        UPDATE run SET asked_nanocredits = ${lacking}::bigint, asked_at = ${now}::timestamptz
        WHERE id = ${runId}::uuid AND (asked_nanocredits IS NULL OR asked_nanocredits < ${lacking}::bigint)`;
      if (isNews > 0) this.deps.events.publish("run-changed", { accountId, runId, change: "asked" });
    }
  }

  /** The last call that waits here takes the question back. Never rejects: an approval does the same. */
  private async forget(asked: readonly string[]): Promise<void> {
    const alone = asked.filter((id) => this.waiting.get(id) === 1);
    if (alone.length === 0) return;
    try {
      await this.deps.database.prisma.run.updateMany({ where: { id: { in: alone } }, data: { askedNanocredits: null } });
    } catch (error) {
      this.deps.log.warn({ err: error, runIds: alone }, "runs go on asking for credits that no call waits for");
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
        if (change === "approved" && runIds.includes(runId)) resolve("look");
      }),
      events.listenToAccount("balance-changed", accountId, lookSoon),
      events.listenToAccount("usage-recorded", accountId, lookSoon),
      events.onGap(lookSoon),
    ];
    if (end.aborted) resolve("end");
    else end.addEventListener("abort", ended);
    const stop = () => {
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
