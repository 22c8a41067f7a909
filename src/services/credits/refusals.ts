/**
 * 402: which bound a request does not fit into, what it needs and what is there. The one place that says so, but for the bounds of an
 * agent's run and of a request itself (spending-budgets.ts). Amounts are decimal credits.
 *
 * Unspecified: what the account has is told to whoever may ask for its balance (docs/spec/keys.md#permissions), a session or a key with
 * the permission `balance`; what a key's budgets have left is the key's own to know, as in GET /account/key. An agent at work, which
 * may be anybody's, is told of neither.
 */
import type { AgentRun } from "../../context.js";
import { AppError, type ErrorCode } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { LedgerOutcome, LedgerRecord } from "../../store/ledger.js";
import type { RefusedFunds } from "./refused-funds.js";

/** `details.bound` of a 402. */
export type SpendingBound = "balance" | "free_spend_per_day" | "key_budget" | "parent_key_budget" | "run" | "max_cost";

export interface Asked {
  /** Nanocredits: what was to be set aside. */
  readonly amount: bigint;
  /** It is what an answer that has begun needs beyond its hold. */
  readonly isMore: boolean;
}

/** What a refusal says of the charge that was asked for. */
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

/** Of an outcome that is one. Never rejects. */
export async function toRefusal(outcome: LedgerOutcome, asked: Asked, request: RefusedRequest, funds: RefusedFunds): Promise<AppError> {
  switch (outcome.outcome) {
    case "free_spend_exhausted":
      return freeSpendRefusal(outcome, asked, request);
    case "key_budget_exhausted":
      return keyRefusal(outcome, asked, request, funds);
    case "duplicate":
      return new AppError("CONFLICT", "This generation was settled before.");
    default:
      return balanceRefusal(outcome, asked, request, funds);
  }
}

async function balanceRefusal({ available }: LedgerOutcome, asked: Asked, request: RefusedRequest, funds: RefusedFunds): Promise<AppError> {
  const { payer, paidOnly } = request;
  const free = paidOnly ? await known(funds.bought(payer.accountId)) : available;
  const whose = paidOnly ? "What the account has bought, which is all that pays for this model," : "The account's balance";
  return refuse("INSUFFICIENT_BALANCE", "balance", whose, "top up the account", { asked, request, free: payer.seesBalance ? free : null });
}

async function keyRefusal({ keyAvailable }: LedgerOutcome, asked: Asked, request: RefusedRequest, funds: RefusedFunds): Promise<AppError> {
  const { apiKeyId } = request.payer;
  const own = apiKeyId === null ? null : await known(funds.ownBudget(apiKeyId));
  const isOwn = own !== null && own < asked.amount;
  const whose = isOwn ? "The key's remaining budget" : "The remaining budget of a key that this key was made with";
  const bound = isOwn ? "key_budget" : "parent_key_budget";
  return refuse("KEY_BUDGET_EXHAUSTED", bound, whose, "use a key with a larger budget", {
    asked,
    request,
    free: request.payer.run ? null : keyAvailable,
  });
}

/** The account has credits of its tier, but all tiers together have spent what they may in a day (UTC). */
function freeSpendRefusal({ available }: LedgerOutcome, { amount }: Asked, { payer }: RefusedRequest): AppError {
  const now = new Date();
  const resetsAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)).toISOString();
  const required = formatNanocredits(amount);
  const message =
    `The free credits that this gateway gives in a day are used up, and this request needs ${required} credits set aside. ` +
    `They return at ${resetsAt}; bought credits work at any time.`;
  const details = {
    bound: "free_spend_per_day" satisfies SpendingBound,
    required,
    ...(payer.seesBalance && toAvailable(available)),
    resetsAt,
  };
  return new AppError("INSUFFICIENT_BALANCE", message, { details });
}

interface Amounts {
  readonly asked: Asked;
  readonly request: RefusedRequest;
  /** Null: it is not told. */
  readonly free: bigint | null;
}

function refuse(code: ErrorCode, bound: SpendingBound, whose: string, remedy: string, { asked, request, free }: Amounts): AppError {
  const { amount, isMore } = asked;
  const required = formatNanocredits(amount);
  const isText = request.record.modality === "text";
  const what = isMore ? "the rest of this answer" : "the estimated cost of this request";
  const needs = `it needs ${required}${isMore ? " more" : ""} credits set aside`;
  const there = free === null ? "" : `, and ${formatNanocredits(positive(free))} are left`;
  const isUnstated = isText && request.most !== undefined && !isMore;
  const advice = isUnstated
    ? `An answer of unstated length needs ${required} credits set aside; state max_tokens to need less, or ${remedy}.`
    : `${isText && !isMore ? "State a smaller max_tokens" : "Ask for less"}, or ${remedy}.`;
  const details = { bound, required, ...(free !== null && toAvailable(free)) };
  return new AppError(code, `${whose} does not cover ${what}: ${needs}${there}. ${advice}`, { details });
}

function toAvailable(free: bigint): { available: string } {
  return { available: formatNanocredits(positive(free)) };
}

/** What could not be read is not told: the refusal stands all the same. */
function known(reading: Promise<bigint | null>): Promise<bigint | null> {
  return reading.catch(() => null);
}

function positive(amount: bigint): bigint {
  return amount > 0n ? amount : 0n;
}
