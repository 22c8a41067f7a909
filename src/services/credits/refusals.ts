/**
 * 402 errors: the bound, the amount needed and the amount available. All are made here, except those of the limits of agent runs and
 * requests (spending-budgets.ts) and of limits that renew (usage-limits/refusals.ts). Amounts are decimal credits.
 *
 * Unspecified: the account's amounts are only for callers that may read its balance (docs/spec/keys.md#permissions): a session, or a key
 * with the permission `balance`. A key may see what its own budgets have left, as in GET /account/key. An agent run sees neither, as the
 * agent may belong to another account.
 */
import type { AgentRun } from "../../context.js";
import { AppError, type ErrorCode } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { TopUp } from "../../lib/settings.js";
import type { LedgerOutcome, LedgerOutcomeName, LedgerRecord } from "../../store/ledger.js";
import type { RefusedFunds } from "./refused-funds.js";

export type SpendingBound = "balance" | "free_spend_per_day" | "key_budget" | "parent_key_budget" | "run" | "max_cost";

export interface RequestedHold {
  /** Nanocredits. */
  readonly amount: bigint;
  /** It extends the hold of an answer that has begun. */
  readonly isMore: boolean;
}

export interface RefusedRequest {
  readonly payer: {
    readonly accountId: string;
    readonly apiKeyId: string | null;
    readonly seesBalance?: boolean | undefined;
    readonly run?: AgentRun | null;
  };
  readonly most?: bigint | undefined;
  readonly paidOnly: boolean;
  readonly record: Pick<LedgerRecord, "modality">;
}

const REFUSALS: ReadonlySet<LedgerOutcomeName> = new Set([
  "insufficient_balance",
  "free_spend_exhausted",
  "key_budget_exhausted",
  "duplicate",
] satisfies LedgerOutcomeName[]);

export function isRefused({ outcome }: LedgerOutcome): boolean {
  return REFUSALS.has(outcome);
}

/** Never rejects. */
export async function toRefusal(
  outcome: LedgerOutcome,
  requested: RequestedHold,
  request: RefusedRequest,
  funds: RefusedFunds,
): Promise<AppError> {
  switch (outcome.outcome) {
    case "free_spend_exhausted":
      return freeSpendRefusal(outcome, requested, request, funds);
    case "key_budget_exhausted":
      return keyRefusal(outcome, requested, request, funds);
    case "duplicate":
      return new AppError("CONFLICT", "This generation was settled before.");
    default:
      return balanceRefusal(outcome, requested, request, funds);
  }
}

async function balanceRefusal(
  { available }: LedgerOutcome,
  requested: RequestedHold,
  request: RefusedRequest,
  funds: RefusedFunds,
): Promise<AppError> {
  const { payer, paidOnly } = request;
  const free = paidOnly ? await known(funds.bought(payer.accountId)) : available;
  const whose = paidOnly ? "What the account has bought, which is all that pays for this model," : "The account's balance";
  const { topUp, topUpUrl } = funds;
  return refuse("INSUFFICIENT_BALANCE", "balance", whose, topUpAdvice(topUp), {
    ...{ topUp, topUpUrl, requested, request },
    free: payer.seesBalance ? free : null,
  });
}

async function keyRefusal(
  { keyAvailable }: LedgerOutcome,
  requested: RequestedHold,
  request: RefusedRequest,
  funds: RefusedFunds,
): Promise<AppError> {
  const { apiKeyId } = request.payer;
  const own = apiKeyId === null ? null : await known(funds.ownBudget(apiKeyId));
  const isOwn = own !== null && own < requested.amount;
  const whose = isOwn ? "The key's remaining budget" : "The remaining budget of a key that this key was made with";
  const bound = isOwn ? "key_budget" : "parent_key_budget";
  return refuse("KEY_BUDGET_EXHAUSTED", bound, whose, "use a key with a larger budget.", {
    ...{ requested, request, topUpUrl: funds.topUpUrl },
    free: request.payer.run ? null : keyAvailable,
  });
}

/** The account has tier credits, but all tiers together have spent their daily cap (UTC). */
function freeSpendRefusal(
  { available }: LedgerOutcome,
  { amount }: RequestedHold,
  { payer }: RefusedRequest,
  { topUp, topUpUrl }: RefusedFunds,
): AppError {
  const now = new Date();
  const resetsAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)).toISOString();
  const required = formatNanocredits(amount);
  const message =
    `The free credits that this gateway gives in a day are used up (${required} credits needed): ` +
    `wait until they return at ${resetsAt} or ${topUpAdvice(topUp)}`;
  const details = {
    bound: "free_spend_per_day" satisfies SpendingBound,
    required,
    ...(payer.seesBalance && toAvailable(available)),
    resetsAt,
    ...(topUp && { topUp }),
    ...(topUpUrl !== null && { topUpUrl }),
  };
  return new AppError("INSUFFICIENT_BALANCE", message, { details });
}

/** A person without credits wants to give an app some of them. `required` and `balance`: nanocredits. */
export function grantRefusal(required: bigint, balance: bigint, { topUp, topUpUrl }: Pick<RefusedFunds, "topUp" | "topUpUrl">): AppError {
  const bound: SpendingBound = "balance";
  const details = {
    ...{ bound, required: formatNanocredits(required), ...toAvailable(balance) },
    ...(topUp && { topUp }),
    ...(topUpUrl !== null && { topUpUrl }),
  };
  const message = `Your account has no credits, so none can be granted: ${topUpAdvice(topUp)}`;
  return new AppError("INSUFFICIENT_BALANCE", message, { details });
}

interface Amounts {
  /** Null: not configured, or no remedy. */
  readonly topUp?: TopUp | null;
  /** Null: credits are not sold. */
  readonly topUpUrl: string | null;
  readonly requested: RequestedHold;
  readonly request: RefusedRequest;
  /** Null: hidden or unknown. */
  readonly free: bigint | null;
}

function refuse(code: ErrorCode, bound: SpendingBound, whose: string, remedy: string, amounts: Amounts): AppError {
  const { requested, request, free, topUp = null, topUpUrl } = amounts;
  const { amount, isMore } = requested;
  const required = formatNanocredits(amount);
  const isText = request.record.modality === "text";
  const what = isMore ? "the rest of this answer" : "the estimated cost of this request";
  const needs = `${required}${isMore ? " more" : ""} credits needed`;
  const there = free === null ? "" : `, ${formatNanocredits(positive(free))} available`;
  const isUnstated = isText && request.most !== undefined && !isMore;
  const advice = isUnstated ? "set max_tokens" : isText && !isMore ? "set a smaller max_tokens" : "ask for less";
  const amountsKnown = { required, ...(free !== null && toAvailable(free)) };
  const details = { bound, ...amountsKnown, ...(topUp && { topUp }), ...(topUpUrl !== null && { topUpUrl }) };
  return new AppError(code, `${whose} does not cover ${what} (${needs}${there}): ${advice} or ${remedy}`, { details });
}

/** The last way on, and where the operator says that it begins. */
function topUpAdvice(topUp: TopUp | null): string {
  if (topUp?.text == null) return `top up the account${topUp?.url == null ? "." : `: ${topUp.url}`}`;
  return `top up the account. ${[topUp.text, ...(topUp.url === null ? [] : [topUp.url])].join(" ")}`;
}

function toAvailable(free: bigint): { available: string } {
  return { available: formatNanocredits(positive(free)) };
}

/** The refusal stands without an amount that cannot be read. */
function known(reading: Promise<bigint | null>): Promise<bigint | null> {
  return reading.catch(() => null);
}

function positive(amount: bigint): bigint {
  return amount > 0n ? amount : 0n;
}
