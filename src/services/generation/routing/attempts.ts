/** The attempts of one generation, reported to the router and in the receipt or refusal of the generation. */
import { type Attempt, attemptOf, type Candidate, NO_ATTEMPTS } from "./candidate.js";
import { type RouteReason, type Router, toReason, withReasons } from "./router.js";

export class Attempts {
  /** Candidates that failed, in order. */
  failed: readonly Attempt[] = NO_ATTEMPTS;
  /** Candidates that may still be called after this one. */
  othersLeft = 0;
  private reasons: readonly RouteReason[] = [];
  private serving: Candidate | null = null;
  private since = 0;

  constructor(private readonly router: Router) {}

  /** False: the candidate may not be called now. */
  begin(candidate: Candidate): boolean {
    const wait = this.router.begin(candidate);
    if (wait !== null) {
      this.reasons = [...this.reasons, toReason(candidate.route, wait.code, wait.ms)];
      return false;
    }
    this.serving = candidate;
    this.since = performance.now();
    return true;
  }

  answered(candidate: Candidate): void {
    this.router.answered(candidate, performance.now() - this.since);
  }

  /** `isOurs`: the gateway ended the call, which is not the route's fault. */
  fail(candidate: Candidate, code: Attempt["code"], error: unknown, isOurs: boolean): void {
    const { route } = candidate;
    this.failed = [...this.failed, attemptOf(route, code, performance.now() - this.since)];
    this.end(0);
    if (isOurs) return;
    this.router.failed(candidate, error, code);
    this.reasons = [...this.reasons, toReason(route, code, this.router.waitOf(route)?.ms ?? null)];
  }

  /** The call under way is over. `tokens` of its prompt and answer. */
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
    return failure !== undefined && routes.length === 1 ? failure : withReasons(failure, this.reasons);
  }
}
