/** The input schema of credits: a JSON number (REST), or nanocredits that a face has parsed (GraphQL's Credits). */
import { z } from "zod";
import { parseNanocredits, toPlainDecimal } from "../../lib/money.js";
import { CREDITS_MAX } from "../../limits.js";

const NANOCREDITS_MAX = BigInt(CREDITS_MAX) * 1_000_000_000n;

/** To nanocredits, from 0 to CREDITS_MAX; described in REST's form. */
export const creditsAmount = z
  .union([z.number(), z.bigint()])
  .transform((value, issues) => {
    const nanocredits = typeof value === "bigint" ? value : parseNanocredits(toPlainDecimal(value) ?? "");
    if (nanocredits !== null && nanocredits >= 0n && nanocredits <= NANOCREDITS_MAX) return nanocredits;
    issues.addIssue({ code: "custom", message: `must be an amount of credits from 0 to ${CREDITS_MAX} with at most 9 decimals` });
    return z.NEVER;
  })
  .meta({ anyOf: undefined, type: "number", minimum: 0, maximum: CREDITS_MAX, description: "Credits, with at most 9 decimals." });

/** The same without 0. */
export const positiveCredits = creditsAmount
  .refine((nanocredits) => nanocredits > 0n, "must be more than 0")
  .meta({ minimum: undefined, exclusiveMinimum: 0 });
