/**
 * A request's cost limit (docs/spec/credits.md#max-cost): `max_cost` of a body or a query, the header `X-Max-Cost`, or `maxCost` of GraphQL
 * inputs. For an agent it bounds all of its generations.
 */
import { deriveContext, type MaxCost, type RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { parseNanocredits, toPlainDecimal } from "../../lib/money.js";
import { CREDITS_MAX } from "../../limits.js";

export const MAX_COST_HEADER = "X-Max-Cost";
export const MAX_COST_FIELD = "max_cost";
export const MAX_COST_DESCRIPTION =
  "The highest charge in credits, such as 0.25. Answers of text are cut where they reach it; other generations that cost more, and prompts that do, fail with 402 MAX_COST_EXCEEDED. " +
  "For an agent, the limit covers all generations that it makes; it defaults to a tenth of the caller's available credits.";

const NANOCREDITS_MAX = BigInt(CREDITS_MAX) * 1_000_000_000n;

/** `stated` is a decimal number of credits, or nanocredits that a face has parsed. Throws BAD_REQUEST naming `param`. */
export function readMaxCost(stated: unknown, param: string): MaxCost {
  const nanocredits = toNanocredits(stated);
  if (nanocredits !== null && nanocredits >= 0n && nanocredits <= NANOCREDITS_MAX) return { nanocredits };
  throw wrongField(param, `must be an amount of credits from 0 to ${CREDITS_MAX} with at most 9 decimals, such as 0.25`);
}

function toNanocredits(stated: unknown): bigint | null {
  if (typeof stated === "bigint") return stated;
  if (typeof stated === "string") return parseNanocredits(stated.trim());
  return typeof stated === "number" ? parseNanocredits(toPlainDecimal(stated) ?? "") : null;
}

/** Splits `max_cost` from a REST input; null: absent. Throws BAD_REQUEST. */
export function takeMaxCost<Input>(input: Input): { readonly rest: Input; readonly maxCost: MaxCost | undefined } | null {
  if (!isRecord(input) || !Object.hasOwn(input, MAX_COST_FIELD)) return null;
  const { [MAX_COST_FIELD]: stated, ...rest } = input;
  const maxCost = stated === null || stated === undefined ? undefined : readMaxCost(stated, MAX_COST_FIELD);
  return { rest: rest as Input, maxCost };
}

export function smallerCost(one: MaxCost | undefined, other: MaxCost): MaxCost {
  return one !== undefined && one.nanocredits <= other.nanocredits ? one : other;
}

/** The request with the input's limit, or unchanged without one. Throws BAD_REQUEST. */
export function boundedBy(ctx: RequestContext, maxCost: unknown): RequestContext {
  if (maxCost === null || maxCost === undefined) return ctx;
  const own = readMaxCost(maxCost, "maxCost");
  return deriveContext(ctx, { reservedId: ctx.reservedId, maxCost: smallerCost(ctx.maxCost, own) });
}
