/**
 * Realtime sessions (docs/spec/realtime.md): OpenAI's realtime events between a client and an upstream.
 *
 * 1. `open`: plan, limits, hold; then an upstream is connected. A failure until then is an ordinary error.
 * 2. Events pass both ways as they come (`RealtimeRun`). A client's events are checked for fields without a price;
 *    the meter reads all events, and the hold is extended before an upstream gets work that it does not cover.
 * 3. After a disconnect the response under way is cancelled, and its report read. On any other end (the upstream
 *    fails or closes, the time is up, the key is revoked, the hold is used up) the upstream is closed at once. Usage
 *    is charged, once. Then the client gets the reason.
 */
import type { RequestContext } from "../../../context.js";
import { upstreamFailed } from "../../../errors.js";
import { NO_USAGE } from "../../../lib/usage.js";
import { REALTIME_TOKENS_HELD } from "../../../limits.js";
import type { Model } from "../../catalog/model.js";
import type { BillableQuantities } from "../../catalog/pricing.js";
import { NO_WORDS } from "../admission.js";
import { CallerGone } from "../cancellation.js";
import type { Candidate } from "../routing/candidate.js";
import { type RealtimeDependencies, RealtimeRun, type RealtimeSession, timesOf } from "./run.js";

export interface RealtimeInput {
  readonly model: string | undefined;
  /** The request's `safe` parameter. */
  readonly safe: string | null;
  readonly isBeta: boolean;
}

export class RealtimeSessions {
  constructor(private readonly deps: RealtimeDependencies) {}

  /** Resolves when an upstream has accepted the session. Throws as every generation. */
  async open(ctx: RequestContext, input: RealtimeInput): Promise<RealtimeSession> {
    const { generations, upstreams } = this.deps;
    const plan = generations.plan(ctx, "realtime", input.model, {}, expectedOf);
    const { safety } = await generations.admit(ctx, plan, { words: NO_WORDS, safe: input.safe });
    // A disconnect ends the attempts; an open session continues until its usage is reported.
    const leaving = new AbortController();
    const onGone = () => leaving.abort();
    ctx.signal.addEventListener("abort", onGone, { once: true });
    if (ctx.signal.aborted) onGone();
    const { totalMs } = timesOf(this.deps);
    const run = generations.begin(ctx, { ...plan, safety }, { signal: leaving.signal, totalMs, isStreamed: true });
    const { signal } = run.cancellation;
    try {
      await run.hold();
      await run.committed();
      const connect = (candidate: Candidate) =>
        upstreams.serving(ctx, candidate, "realtime").connect({
          upstreamModel: candidate.route.upstreamModel,
          signal,
          extra: {},
          isBeta: input.isBeta,
        });
      const { model, route, answer } = await run.attempt(connect);
      return new RealtimeRun(ctx, { run, served: { model, route }, connection: answer, safe: input.safe }, this.deps);
    } catch (error) {
      await run.release();
      run.end();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the session was open.", { cause: error }) : error;
    } finally {
      ctx.signal.removeEventListener("abort", onGone);
    }
  }
}

/** Unspecified: nothing is known before the session begins, so some turns are held, and more later. */
function expectedOf(model: Model): BillableQuantities {
  return {
    ...NO_USAGE,
    [model.inputModalities.includes("audio") ? "inputAudioTokens" : "inputTextTokens"]: REALTIME_TOKENS_HELD,
    [model.outputModalities.includes("audio") ? "outputAudioTokens" : "outputTextTokens"]: REALTIME_TOKENS_HELD,
  };
}
