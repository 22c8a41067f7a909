/**
 * This process's recent activity for operators: settlements by the second, model calls, errors. Kept in bounded memory only, and costs a
 * generation a few additions.
 *
 * It must hold no secret and no prompt: an error is its code, and its request id finds it in the log.
 */
import { least } from "../../lib/collections.js";
import type { RequestEnd, RequestNote } from "../../lib/request-note.js";

const SECOND_MS = 1_000;

/** Committed settlements per second. */
export interface SettlementCounts {
  /** The last finished second, in seconds since 1970. */
  readonly until: number;
  /** Per second up to it, oldest first. */
  readonly counts: readonly number[];
}

/** Unspecified: seconds reported. */
export const SETTLEMENT_SECONDS = 120;

export class SettlementSeries {
  /** One more than is reported: the current second. */
  private readonly counts = new Uint32Array(SETTLEMENT_SECONDS + 1);
  private second: number;

  /** `time`: milliseconds since 1970. */
  constructor(private readonly time: () => number = Date.now) {
    this.second = this.currentSecond();
  }

  add(): void {
    const now = this.currentSecond();
    if (now !== this.second) this.moveTo(now);
    const place = now % this.counts.length;
    this.counts[place] = (this.counts[place] ?? 0) + 1;
  }

  read(): SettlementCounts {
    const now = this.currentSecond();
    if (now !== this.second) this.moveTo(now);
    const counts = Array.from({ length: SETTLEMENT_SECONDS }, (_, index) => this.counts[(now + 1 + index) % this.counts.length] ?? 0);
    return { until: now - 1, counts };
  }

  private moveTo(now: number): void {
    clearPassed(this.counts, this.second, now);
    this.second = now;
  }

  private currentSecond(): number {
    return Math.floor(this.time() / SECOND_MS);
  }
}

/** Empties the ring places of the steps since `before`. A clock that was set back starts over. */
function clearPassed(counts: Uint32Array, before: number, now: number): void {
  if (now < before || now - before >= counts.length) counts.fill(0);
  else for (let step = before + 1; step <= now; step += 1) counts[step % counts.length] = 0;
}

/** Adds up all processes, to the last second that all of them report. */
export function addUpSettlements(each: readonly SettlementCounts[]): SettlementCounts {
  const until = least(each.map((one) => one.until));
  const counts = new Array<number>(SETTLEMENT_SECONDS).fill(0);
  for (const one of each) {
    const later = one.until - until;
    for (let index = Math.max(0, later); index < SETTLEMENT_SECONDS; index += 1) {
      counts[index] = (counts[index] ?? 0) + (one.counts[index - later] ?? 0);
    }
  }
  return { until, counts };
}

/** An answer that failed through the gateway or an upstream. */
export interface RecentError {
  readonly at: Date;
  readonly code: string;
  readonly requestId: string | null;
  readonly method: string;
  /** The path's pattern; null: none matched. */
  readonly route: string | null;
  readonly status: number;
  /** The name of a GraphQL operation, or its kind. */
  readonly operation: string | null;
  /** The canonical id of the requested model. */
  readonly model: string | null;
}

/** Unspecified: per kind, so that an upstream's outage does not push out the gateway's own errors. */
export const RECENT_ERRORS_MAX = 50;
/** Clients name operations, and accounts name models: with this bound an error takes less than a kilobyte. */
const TEXT_CHARS_MAX = 200;
const OWN_ERROR = "INTERNAL_ERROR";
const OTHERS_ERRORS: ReadonlySet<string> = new Set(["UPSTREAM_ERROR", "UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE"]);

export class RecentErrors {
  private readonly own: RecentError[] = [];
  private readonly others: RecentError[] = [];

  note({ code, requestId, route, operation, model }: RequestNote, { method, status }: RequestEnd): void {
    if (code === null || (code !== OWN_ERROR && !OTHERS_ERRORS.has(code))) return;
    const ring = code === OWN_ERROR ? this.own : this.others;
    const shortened = { operation: operation?.slice(0, TEXT_CHARS_MAX) ?? null, model: model?.slice(0, TEXT_CHARS_MAX) ?? null };
    ring.push({ at: new Date(), code, requestId, method, route, status, ...shortened });
    if (ring.length > RECENT_ERRORS_MAX) ring.shift();
  }

  read(): RecentError[] {
    return [...this.own, ...this.others];
  }
}

export interface ModelCalls {
  readonly modelId: string;
  readonly answered: number;
  readonly failed: number;
  readonly lastFailure: { readonly at: Date; readonly reason: string } | null;
}

/** Unspecified: the counted minutes, and the step. */
export const MODEL_CALLS_MINUTES = 60;
const STEP_MS = 5 * 60_000;
const STEPS = (MODEL_CALLS_MINUTES * 60_000) / STEP_MS;
/** Accounts register models: beyond this the one that was first called is dropped. */
const MODELS_MAX = 1_000;

class CallCounts {
  readonly answered = new Uint32Array(STEPS);
  readonly failed = new Uint32Array(STEPS);
  lastFailure: ModelCalls["lastFailure"] = null;
  private step = 0;

  constructor(private readonly time: () => number) {}

  /** Current place in both lists. */
  place(): number {
    const now = Math.floor(this.time() / STEP_MS);
    if (now !== this.step) {
      clearPassed(this.answered, this.step, now);
      clearPassed(this.failed, this.step, now);
      this.step = now;
    }
    return now % STEPS;
  }
}

export class RecentModelCalls {
  private readonly models = new Map<string, CallCounts>();

  /** `time`: milliseconds since 1970. */
  constructor(private readonly time: () => number = Date.now) {}

  answered(modelId: string): void {
    const { answered, place } = this.countsAt(modelId);
    answered[place] = (answered[place] ?? 0) + 1;
  }

  /** Counts a failure that is not the caller's fault. `reason` is from a closed list. */
  failed(modelId: string, reason: string): void {
    const { counts, failed, place } = this.countsAt(modelId);
    failed[place] = (failed[place] ?? 0) + 1;
    counts.lastFailure = { at: new Date(this.time()), reason };
  }

  read(): ModelCalls[] {
    return [...this.models].flatMap(([modelId, counts]) => {
      counts.place();
      const [answered, failed] = [sum(counts.answered), sum(counts.failed)];
      return answered + failed === 0 ? [] : [{ modelId, answered, failed, lastFailure: counts.lastFailure }];
    });
  }

  private countsAt(modelId: string) {
    let counts = this.models.get(modelId);
    if (!counts) {
      counts = new CallCounts(this.time);
      this.models.set(modelId, counts);
      if (this.models.size > MODELS_MAX) this.models.delete(this.models.keys().next().value ?? "");
    }
    return { counts, answered: counts.answered, failed: counts.failed, place: counts.place() };
  }
}

function sum(counts: Uint32Array): number {
  return counts.reduce((total, count) => total + count, 0);
}

export function addUpModelCalls(each: readonly (readonly ModelCalls[])[]): ModelCalls[] {
  const models = new Map<string, ModelCalls>();
  for (const calls of each.flat()) {
    const before = models.get(calls.modelId);
    if (!before) {
      models.set(calls.modelId, calls);
      continue;
    }
    const { modelId, answered, failed, lastFailure } = calls;
    const isLater = lastFailure !== null && (before.lastFailure === null || lastFailure.at > before.lastFailure.at);
    models.set(modelId, {
      ...{ modelId, answered: before.answered + answered, failed: before.failed + failed },
      lastFailure: isLater ? lastFailure : before.lastFailure,
    });
  }
  return [...models.values()];
}
