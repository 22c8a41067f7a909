/** Variables about the earnings of owners of community models and apps (docs/spec/earnings.md). */
import type { EarningsSettings } from "../lib/settings.js";
import { percent, wholeNumber } from "./values.js";

/** Decided: more would hide an app's price behind the models'. */
const MARGIN_PERCENT_MAX = 50;

export const EARNING_VARIABLES = {
  COMMUNITY_EARNINGS_PERCENT: percent().default(750_000n),
  APP_MARGIN_MAX_PERCENT: wholeNumber(0, MARGIN_PERCENT_MAX).default(0),
};

interface Values {
  readonly COMMUNITY_EARNINGS_PERCENT: bigint;
  readonly APP_MARGIN_MAX_PERCENT: number;
}

export function toEarnings({ COMMUNITY_EARNINGS_PERCENT, APP_MARGIN_MAX_PERCENT }: Values): EarningsSettings {
  return { communityShare: COMMUNITY_EARNINGS_PERCENT, marginPercentMax: APP_MARGIN_MAX_PERCENT };
}
