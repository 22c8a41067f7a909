/** What a caller bounds the run of an agent by: the header `X-Max-Cost`, or `maxCost` of GraphQL's inputs. In nanocredits from there on. */
import * as z from "zod";
import { deriveContext, type RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import { parseNanocredits } from "../../lib/money.js";
import { CREDITS_MAX } from "../../limits.js";
import { parseInput } from "../requests/input.js";
import { creditsAmount } from "./credits-amount.js";

export const MAX_COST_HEADER = "X-Max-Cost";
const input = z.object({ maxCost: creditsAmount });

/** Throws BAD_REQUEST for what is no amount. */
export function readMaxCost(header: string | string[]): bigint {
  const amount = typeof header === "string" ? parseNanocredits(header.trim()) : null;
  const parsed = input.safeParse({ maxCost: amount });
  if (parsed.success) return parsed.data.maxCost;
  throw wrongField(MAX_COST_HEADER, `must be an amount of credits from 0 to ${CREDITS_MAX} with at most 9 decimals, such as 0.25`);
}

/** The request, bounded by what its input says; without that, as it was. Throws BAD_REQUEST. */
export function boundedBy(ctx: RequestContext, maxCost: bigint | string | null | undefined): RequestContext {
  if (maxCost === null || maxCost === undefined) return ctx;
  return deriveContext(ctx, { reservedId: ctx.reservedId, ...parseInput(input, { maxCost }) });
}
