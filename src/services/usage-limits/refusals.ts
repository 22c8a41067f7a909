/** Refusals by limits: which one, its amount, the spent part, and when it renews. */
import { AppError, rateLimited } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { LimitClaim } from "./claim.js";

/** A request that is refused only because of others under way is worth another try then. */
const HELD_RETRY_SECONDS = 1;

const UNITS = { credits: "credits", requests: "requests", tokens: "tokens", concurrency: "generations at once" } as const;

/** `required`: the amount that does not fit. `now`: milliseconds since 1970. */
export function limitExceeded(claim: LimitClaim, required: bigint, now: number): AppError {
  const { limit, known, held } = claim;
  const { metric, model, isOfKey, id, accountId } = limit;
  if (accountId === null) return modelLimited(claim, now);
  const format = (amount: bigint) => (metric === "credits" ? formatNanocredits(amount) : amount.toString());
  const { size = 0n, spent = 0n, claimed = 0n, idle = 0n, renewsAt = null } = known ?? {};
  const inUse = held + claimed - idle;
  const renews = renewsAt === null ? null : new Date(renewsAt).toISOString();
  const whose = `${isOfKey ? "This key" : "The account"} may use ${format(size)} ${UNITS[metric]}${model === null ? "" : ` of ${model}`}`;
  const window = metric === "concurrency" ? "" : " in a window of this limit";
  const used = metric === "concurrency" ? `${format(inUse)} are under way` : `${format(spent)} are spent and ${format(inUse)} set aside`;
  const until = renews === null ? "" : ` It renews at ${renews}.`;
  const message = `${whose}${window}: ${used}, and this request needs ${format(required)}.${until} Wait, ask for less, or ${isOfKey ? "raise the limit" : "ask the operator to raise the limit"}.`;
  const details = {
    bound: isOfKey ? "key_limit" : "account_limit",
    limit: { id, metric, amount: format(size), spent: format(spent), held: format(inUse), model, renewsAt: renews },
    required: format(required),
    available: format(size > spent ? size - spent : 0n),
  };
  if (metric === "credits") return new AppError(isOfKey ? "KEY_BUDGET_EXHAUSTED" : "INSUFFICIENT_BALANCE", message, { details });
  const isHeld = renewsAt === null || required <= size - spent;
  return rateLimited(message, isHeld ? HELD_RETRY_SECONDS : (renewsAt - now) / 1000, details);
}

/** Of all accounts together: the use of others is not shown. */
function modelLimited({ limit: { metric, model, rollingMs }, known }: LimitClaim, now: number): AppError {
  const { size = 0n, renewsAt = null } = known ?? {};
  const renews = renewsAt === null ? null : new Date(renewsAt).toISOString();
  const window = metric === "concurrency" ? "" : rollingMs === null ? " in a window" : ` in ${wordsOf(rollingMs)}`;
  const until = renews === null ? "" : ` There may be room at ${renews}.`;
  const message = `The model ${model} is at its limit of this gateway: ${size} ${UNITS[metric]}${window}, of all accounts together.${until} Wait, or use another model.`;
  const details = { bound: "model_limit", limit: { metric, amount: size.toString(), model, renewsAt: renews } };
  return rateLimited(message, renewsAt === null ? HELD_RETRY_SECONDS : (renewsAt - now) / 1000, details);
}

function wordsOf(windowMs: number): string {
  const minutes = windowMs / 60_000;
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}
