/** Tiers: what an account is given, and when (docs/spec/credits.md#tiers). Boundaries are in UTC. */
import { invalidInput } from "../../errors.js";
import type { Tier } from "../../lib/settings.js";

/** What an account's tier gives it from now on; a null boundary gives nothing. */
export interface TierGift {
  readonly amount: bigint;
  readonly nextReset: Date | null;
}

const NOTHING: TierGift = { amount: 0n, nextReset: null };

export class Tiers {
  private readonly byName: ReadonlyMap<string, Tier>;

  constructor(tiers: readonly Tier[]) {
    this.byName = new Map(tiers.map((tier) => [tier.name, tier]));
  }

  /** Unspecified: a tier that the configuration no longer has gives nothing. */
  giftOf(name: string | null, now: Date): TierGift {
    const tier = name === null ? undefined : this.byName.get(name);
    if (!tier || tier.period === null) return NOTHING;
    return { amount: tier.nanocredits, nextReset: nextBoundary(tier.period, now) };
  }

  isRefilled(name: string | null): boolean {
    return name !== null && (this.byName.get(name)?.period ?? null) !== null;
  }

  /** Throws BAD_REQUEST that names the tiers there are. */
  assertKnown(name: string): void {
    if (this.byName.has(name)) return;
    throw invalidInput(`There is no tier ${JSON.stringify(name)}. The tiers are: ${[...this.byName.keys()].join(", ")}.`, "tier");
  }
}

/** The first boundary after `now`. Weeks begin on Monday. */
export function nextBoundary(period: NonNullable<Tier["period"]>, now: Date): Date {
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  switch (period) {
    case "hour":
      return new Date(Date.UTC(year, month, day, now.getUTCHours() + 1));
    case "day":
      return new Date(Date.UTC(year, month, day + 1));
    case "week":
      return new Date(Date.UTC(year, month, day + daysToMonday(now.getUTCDay())));
    case "month":
      return new Date(Date.UTC(year, month + 1));
  }
}

/** From 1 to 7. Sunday is day 0. */
function daysToMonday(day: number): number {
  return ((7 - day) % 7) + 1;
}
