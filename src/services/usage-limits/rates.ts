/** The standing of limits of requests and tokens, for `X-RateLimit-*`. */
import type { NotedRate } from "../../lib/request-note.js";
import type { LimitClaim } from "./claim.js";

/** The tightest of each kind; null: none. `now`: milliseconds since 1970. */
export function ratesOf(claims: readonly LimitClaim[], now: number): readonly NotedRate[] | null {
  const rates = (["requests", "tokens"] as const).flatMap((kind) => {
    const all = claims.filter(({ limit, known }) => limit.metric === kind && known !== null).map((claim) => rateOf(claim, kind, now));
    const tightest = all.sort((one, other) => one.remaining - other.remaining)[0];
    return tightest ? [tightest] : [];
  });
  return rates.length === 0 ? null : rates;
}

function rateOf({ known, free, limit }: LimitClaim, kind: NotedRate["kind"], now: number): NotedRate {
  const { size = 0n, outside = 0n, idle = 0n, renewsAt = null } = known ?? {};
  const remaining = Math.min(Number(size), Math.max(0, Number(free + outside + idle)));
  const resetMs = limit.rollingMs ?? (renewsAt === null ? 0 : Math.max(0, renewsAt - now));
  return { kind, limit: Number(size), remaining, resetMs };
}
