/** The standing of limits of requests and tokens, for `X-RateLimit-*`. */
import type { NotedRate } from "../../lib/request-note.js";
import type { LimitClaim } from "./claim.js";

interface Counted {
  readonly claim: LimitClaim;
}

/** The tightest of each kind; null: none. `now`: milliseconds since 1970. */
export function ratesOf(units: readonly Counted[], now: number): readonly NotedRate[] | null {
  const requests = tightestOf(units, "requests", now);
  const tokens = tightestOf(units, "tokens", now);
  if (requests === null) return tokens && [tokens];
  return tokens === null ? [requests] : [requests, tokens];
}

function tightestOf(units: readonly Counted[], kind: NotedRate["kind"], now: number): NotedRate | null {
  let tightest: NotedRate | null = null;
  for (const { claim } of units) {
    const { limit, known } = claim;
    // A limit of a model over all accounts would tell about others.
    if (limit.metric !== kind || limit.accountId === null || known === null) continue;
    const rate = rateOf(claim, kind, now);
    if (tightest === null || rate.remaining < tightest.remaining) tightest = rate;
  }
  return tightest;
}

function rateOf({ known, free, limit }: LimitClaim, kind: NotedRate["kind"], now: number): NotedRate {
  const { size = 0n, outside = 0n, idle = 0n, renewsAt = null } = known ?? {};
  const remaining = Math.min(Number(size), Math.max(0, Number(free) + Number(outside) + Number(idle)));
  const resetMs = limit.rollingMs ?? (renewsAt === null ? 0 : Math.max(0, renewsAt - now));
  return { kind, limit: Number(size), remaining, resetMs };
}
