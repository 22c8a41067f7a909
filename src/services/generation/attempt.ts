/**
 * Calls the candidates of a generation in turn, until one answers. With a hedge, the next route of the model is called too when a call has
 * no answer after a time; the first answer wins, and the other call is ended (docs/spec/routing.md#hedging).
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallEnd } from "../../providers/provider.js";
import type { Cancellation } from "./cancellation.js";
import { attemptCodeOf, mayFallBack, toCallerError } from "./failures.js";
import type { GenerationPlan } from "./planned-charge.js";
import type { Attempts, OpenAttempt } from "./routing/attempts.js";
import type { Candidate } from "./routing/candidate.js";

export interface Answered<Answer> extends Candidate {
  readonly answer: Answer;
}

/** `end` ends the call. */
export type CallCandidate<Answer> = (candidate: Candidate, end: CallEnd) => Promise<Answer>;

export interface Hedge<Answer> {
  /** Milliseconds without an answer until the next route is called too. */
  readonly afterMs: number;
  /** The operator's known cost of a call that lost, in nanocredits; null: unknown. */
  costOf(candidate: Candidate): bigint | null;
  /** Closes an answer that came second. */
  discard(answer: Answer): void;
}

/** The parts of a run on which its attempts depend. */
export interface AttemptedRun {
  readonly plan: GenerationPlan;
  readonly attempts: Attempts;
  readonly cancellation: Cancellation;
  noteUpstream(): void;
  noteFailure(candidate: Candidate, error: unknown): void;
}

/** Why the slower of two calls is aborted. */
class AnotherWasFaster extends Error {
  override readonly name = "AnotherWasFaster";
}

/**
 * Rejects with the first failure, that of the requested model, as a retry would meet it first, and a fallback's refusal says nothing about
 * that model. An abort of ours, such as the timeout, takes precedence.
 */
export async function attemptInTurn<Answer>(
  run: AttemptedRun,
  candidates: readonly Candidate[],
  call: CallCandidate<Answer>,
  hedge: Hedge<Answer> | null,
): Promise<Answered<Answer>> {
  const { plan, attempts, cancellation } = run;
  const turns = new Turns(run, candidates);
  for (let attempt = turns.next(); attempt !== null; attempt = turns.next()) {
    if (plan.request.hasLargeInput) await nextTurn();
    if (hedge !== null && turns.hasAnotherRoute) {
      const answered = await new Race(turns, run, call, hedge).run(attempt);
      if (answered !== null) return answered;
    } else {
      try {
        return turns.answered(attempt, await call(attempt.candidate, cancellation));
      } catch (error) {
        turns.failed(attempt, error);
      }
    }
    if (turns.isOver) break;
  }
  throw cancellation.aborted ? turns.failures.at(-1) : attempts.refusal(turns.failures[0], plan.model);
}

/** The candidates that are left, and the failures of the others. */
class Turns {
  readonly failures: unknown[] = [];
  /** Nothing more may be called. */
  isOver = false;
  private at = 0;

  constructor(
    private readonly run: AttemptedRun,
    private readonly candidates: readonly Candidate[],
  ) {
    run.attempts.othersLeft = candidates.length;
  }

  /** Begins the next attempt that is possible; null: none is left. */
  next(isTaken: ((candidate: Candidate) => boolean) | null = null): OpenAttempt | null {
    const { candidates, run } = this;
    for (; this.at < candidates.length; ) {
      const candidate = candidates[this.at] as Candidate;
      if (isTaken !== null && !isTaken(candidate)) return null;
      this.at += 1;
      run.attempts.othersLeft = candidates.length - this.at;
      const attempt = run.attempts.begin(candidate);
      if (attempt !== null) return attempt;
    }
    return null;
  }

  /** The next candidate is of the same model as the last. */
  get hasAnotherRoute(): boolean {
    const { at, candidates } = this;
    return candidates[at] !== undefined && candidates[at].model === candidates[at - 1]?.model;
  }

  answered<Answer>(attempt: OpenAttempt, answer: Answer): Answered<Answer> {
    const { model, route } = attempt.candidate;
    this.run.noteUpstream();
    this.run.attempts.answered(attempt);
    return { model, route, answer };
  }

  failed(attempt: OpenAttempt, error: unknown): void {
    const { run } = this;
    const { cancellation } = run;
    const { candidate } = attempt;
    this.failures.push(toCallerError(error, candidate));
    run.noteFailure(candidate, error);
    run.attempts.fail(attempt, attemptCodeOf(error), error, cancellation.aborted);
    this.isOver ||= cancellation.aborted || cancellation.isCallerGone || !mayFallBack(error);
  }
}

/** One call, and another from the time of the hedge. */
class Race<Answer> {
  private readonly running = new Map<OpenAttempt, AbortController>();
  private timer: NodeJS.Timeout | undefined;
  private isOver = false;
  private finish: (answered: Answered<Answer> | null) => void = () => undefined;

  constructor(
    private readonly turns: Turns,
    private readonly attempted: AttemptedRun,
    private readonly call: CallCandidate<Answer>,
    private readonly hedge: Hedge<Answer>,
  ) {}

  /** Null: every call has failed. */
  run(first: OpenAttempt): Promise<Answered<Answer> | null> {
    const { turns, attempted, hedge } = this;
    const { model } = first.candidate;
    const onEnd = { handleEvent: () => this.abortAll(attempted.cancellation.reason) };
    attempted.cancellation.addEventListener("abort", onEnd);
    this.timer = setTimeout(() => {
      if (turns.isOver || attempted.cancellation.isCallerGone) return;
      const second = turns.next((candidate) => candidate.model === model);
      if (second !== null) this.start(second, first);
    }, hedge.afterMs);
    return new Promise((resolve) => {
      this.finish = (answered) => {
        this.isOver = true;
        clearTimeout(this.timer);
        // The winner's answer is still read.
        if (answered === null) attempted.cancellation.removeEventListener("abort", onEnd);
        resolve(answered);
      };
      this.start(first, first);
    });
  }

  private start(attempt: OpenAttempt, first: OpenAttempt): void {
    const { running, turns } = this;
    const { cancellation } = this.attempted;
    const end = new AbortController();
    if (cancellation.aborted) end.abort(cancellation.reason);
    running.set(attempt, end);
    void this.called(attempt, end.signal).then(
      (answer) => {
        if (this.isOver) return this.hedge.discard(answer);
        const answered = turns.answered(attempt, answer);
        for (const [other, otherEnd] of running) if (other !== attempt) this.lose(other, otherEnd, other === first);
        this.finish(answered);
      },
      (error: unknown) => {
        if (this.isOver) return;
        running.delete(attempt);
        turns.failed(attempt, error);
        if (running.size === 0) this.finish(null);
      },
    );
  }

  private async called({ candidate }: OpenAttempt, end: CallEnd): Promise<Answer> {
    return this.call(candidate, end);
  }

  private lose(attempt: OpenAttempt, end: AbortController, wasFirst: boolean): void {
    this.running.delete(attempt);
    this.attempted.attempts.lose(attempt, this.hedge.costOf(attempt.candidate), wasFirst);
    end.abort(new AnotherWasFaster("Another route was faster."));
  }

  private abortAll(reason: unknown): void {
    for (const end of this.running.values()) end.abort(reason);
  }
}
