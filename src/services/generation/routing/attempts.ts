/** The attempts of one generation, reported to the router and in the receipt or refusal of the generation. */
import { type Attempt, attemptOf, type Candidate, NO_ATTEMPTS } from "./candidate.js";
import { type RouteReason, type Router, toReason, withReasons } from "./router.js";

/** One call of a candidate that has begun. */
export interface OpenAttempt {
  readonly candidate: Candidate;
  /** Milliseconds of `performance.now()`. */
  readonly since: number;
}

export class Attempts {
  /** Candidates that were left, in order. */
  failed: readonly Attempt[] = NO_ATTEMPTS;
  /** Candidates that may still be called after this one. */
  othersLeft = 0;
  /** The operator's known cost of hedged calls that lost, in nanocredits; null: unknown. */
  lostNanocredits: bigint | null = 0n;
  private reasons: readonly RouteReason[] = [];
  private serving: Candidate | null = null;

  constructor(private readonly router: Router) {}

  /** Null: the candidate may not be called now. */
  begin(candidate: Candidate): OpenAttempt | null {
    const wait = this.router.begin(candidate);
    if (wait === null) return { candidate, since: performance.now() };
    this.reasons = [...this.reasons, toReason(candidate.route, wait.code, wait.ms)];
    return null;
  }

  answered({ candidate, since }: OpenAttempt): void {
    this.serving = candidate;
    this.router.answered(candidate, performance.now() - since);
  }

  /** `isOurs`: the gateway ended the call, which is not the route's fault. */
  fail({ candidate, since }: OpenAttempt, code: Attempt["code"], error: unknown, isOurs: boolean): void {
    const { route } = candidate;
    this.failed = [...this.failed, attemptOf(route, code, performance.now() - since)];
    this.router.ended(candidate, 0);
    if (isOurs) return;
    this.router.failed(candidate, error, code);
    this.reasons = [...this.reasons, toReason(route, code, this.router.waitOf(route)?.ms ?? null)];
  }

  /** Another call won. `costNanocredits` is the operator's known cost; `wasFirst`: it had longer than the winner. */
  lose({ candidate, since }: OpenAttempt, costNanocredits: bigint | null, wasFirst: boolean): void {
    const ms = performance.now() - since;
    this.failed = [...this.failed, attemptOf(candidate.route, "hedged", ms)];
    const { lostNanocredits } = this;
    this.lostNanocredits = lostNanocredits === null || costNanocredits === null ? null : lostNanocredits + costNanocredits;
    this.router.lost(candidate, wasFirst ? ms : null);
  }

  /** The operator's cost of the generation, from that of the call that served. */
  withLost(costNanocredits: bigint | null): bigint | null {
    return costNanocredits === null || this.lostNanocredits === null ? null : costNanocredits + this.lostNanocredits;
  }

  /** The call that served is over. `tokens` of its prompt and answer. */
  end(tokens: number): void {
    if (this.serving !== null) this.router.ended(this.serving, tokens);
    this.serving = null;
  }

  /** The answer of a watched candidate: `ms` of its output's tokens, and all tokens. */
  measure(candidate: Candidate, ms: number, outputTokens: number, tokens: number): void {
    if (ms > 0) this.router.measured(candidate, ms, outputTokens);
    this.end(tokens);
  }

  /** The failure of all candidates, with the reasons of each for a model with several routes. `failure` is undefined when none was called. */
  refusal(failure: unknown, { routes }: Candidate["model"]): unknown {
    const isPlain = routes.length === 1 && routes[0].vendorKey === undefined;
    return failure !== undefined && isPlain ? failure : withReasons(failure, this.reasons);
  }
}
