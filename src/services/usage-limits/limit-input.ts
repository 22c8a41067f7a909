/** Terms of a limit, as callers state them. */
import * as z from "zod";
import { wrongField } from "../../errors.js";
import { parseNanocredits, toPlainDecimal } from "../../lib/money.js";
import { CREDITS_MAX } from "../../limits.js";
import type { UsageLimitModel } from "../../store/generated/prisma/models.js";
import { ALERTS_MAX, RAISE_DAYS_MAX, WINDOW_MINUTES_MAX } from "./limits.js";

export const LIMIT_METRICS = ["credits", "requests", "tokens", "concurrency"] as const;
export const LIMIT_PERIODS = ["hour", "day", "week", "month"] as const;

const COUNT_MAX = 1_000_000_000_000;
const DAY_MS = 86_400_000;

const amount = z.union([z.number(), z.string().min(1).max(40)]);
const period = z.enum(LIMIT_PERIODS);
const minutes = z.int("must be a whole number of minutes").min(1, windowProblem()).max(WINDOW_MINUTES_MAX, windowProblem());
const timeZone = z.string().max(64).refine(isTimeZone, "must be the IANA name of a time zone, such as Europe/Berlin");
const alertAt = z
  .array(z.int().min(1).max(100))
  .max(ALERTS_MAX)
  .transform((percents) => [...new Set(percents)].sort((one, other) => one - other));
const raise = z
  .strictObject({
    amount,
    until: z.iso
      .datetime({ offset: true })
      .transform((text) => new Date(text))
      .or(z.date()),
  })
  .nullable();
const terms = {
  amount,
  period: period.nullish(),
  minutes: minutes.nullish(),
  rolling: z.boolean().optional(),
  timeZone: timeZone.optional(),
  alertAt: alertAt.optional(),
  raise: raise.optional(),
};

export const createUsageLimitInput = z.strictObject({
  apiKeyId: z.uuid().nullish(),
  accountId: z.uuid().nullish(),
  /** Of one model, over all accounts together: for operators. */
  allAccounts: z.boolean().optional(),
  metric: z.enum(LIMIT_METRICS),
  model: z.string().min(1).max(253).nullish(),
  ...terms,
});
export type CreateUsageLimitInput = z.output<typeof createUsageLimitInput>;

export const updateUsageLimitInput = z.strictObject({ ...terms, amount: amount.optional() });
export type UpdateUsageLimitInput = z.output<typeof updateUsageLimitInput>;

export type LimitTerms = Pick<
  UsageLimitModel,
  "metric" | "amount" | "period" | "minutes" | "isRolling" | "timeZone" | "alertAt" | "raiseAmount" | "raiseUntil"
>;

/** The stated terms, over those that the limit had. Throws BAD_REQUEST naming the field. */
export function toTerms(stated: UpdateUsageLimitInput, before: LimitTerms, now: Date): LimitTerms {
  const { metric } = before;
  const isWindowStated = stated.period != null || stated.minutes != null;
  const { period, minutes } = isWindowStated ? { period: stated.period ?? null, minutes: stated.minutes ?? null } : before;
  if (metric === "concurrency") {
    if (isWindowStated)
      throw wrongField(stated.period != null ? "period" : "minutes", "a limit of generations at once has no window: leave it out");
  } else if ((period === null) === (minutes === null)) {
    throw wrongField("period", `state either period (${LIMIT_PERIODS.join(", ")}) or minutes, from 1 to ${WINDOW_MINUTES_MAX}`);
  }
  return {
    metric,
    ...{ period, minutes },
    amount: stated.amount === undefined ? before.amount : readAmount(stated.amount, metric, "amount"),
    isRolling: metric !== "concurrency" && (stated.rolling ?? before.isRolling),
    timeZone: stated.timeZone ?? before.timeZone,
    alertAt: stated.alertAt ?? before.alertAt,
    ...readRaise(stated, before, now),
  };
}

function readRaise({ raise }: UpdateUsageLimitInput, before: LimitTerms, now: Date): Pick<LimitTerms, "raiseAmount" | "raiseUntil"> {
  if (raise === undefined) return { raiseAmount: before.raiseAmount, raiseUntil: before.raiseUntil };
  if (raise === null) return { raiseAmount: 0n, raiseUntil: null };
  const ahead = raise.until.getTime() - now.getTime();
  if (!(ahead > 0 && ahead <= RAISE_DAYS_MAX * DAY_MS)) {
    throw wrongField("raise.until", `must be a time from now on, at most ${RAISE_DAYS_MAX} days ahead`);
  }
  return { raiseAmount: readAmount(raise.amount, before.metric, "raise.amount"), raiseUntil: raise.until };
}

function readAmount(stated: number | string, metric: LimitTerms["metric"], param: string): bigint {
  const text = typeof stated === "number" ? (toPlainDecimal(stated) ?? "") : stated.trim();
  if (metric === "credits") {
    const nanocredits = parseNanocredits(text);
    if (nanocredits !== null && nanocredits > 0n && nanocredits <= BigInt(CREDITS_MAX) * 1_000_000_000n) return nanocredits;
    throw wrongField(param, `must be more than 0 and at most ${CREDITS_MAX} credits, with at most 9 decimals`);
  }
  const count = /^\d{1,13}$/.test(text) ? BigInt(text) : 0n;
  if (count >= 1n && count <= BigInt(COUNT_MAX)) return count;
  throw wrongField(param, `must be a whole number from 1 to ${COUNT_MAX}`);
}

function windowProblem(): string {
  return `must be from 1 to ${WINDOW_MINUTES_MAX} minutes (366 days)`;
}

/** The database knows the same names; offsets such as +02:00 are none, as they have other signs there. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== null;
  } catch {
    return false;
  }
}
