/** The one way in which a price enters: a JSON number (REST), or picocredits that a face has read already (GraphQL's Price). */
import { z } from "zod";
import { parsePicocredits, toPlainDecimal } from "../../lib/money.js";
import { PRICE_CREDITS_MAX } from "../../limits.js";

const PICOCREDITS_MAX = BigInt(PRICE_CREDITS_MAX) * 10n ** 12n;

/** Credits per unit, to picocredits; from 0 to PRICE_CREDITS_MAX. */
export const priceAmount = z
  .union([z.number(), z.bigint()])
  .transform((value, issues) => {
    const picocredits = typeof value === "bigint" ? value : parsePicocredits(toPlainDecimal(value) ?? "");
    if (picocredits !== null && picocredits >= 0n && picocredits <= PICOCREDITS_MAX) return picocredits;
    issues.addIssue({
      code: "custom",
      message: `must be 0 to ${PRICE_CREDITS_MAX} credits per unit (per token, not per million tokens) with at most 12 decimals`,
    });
    return z.NEVER;
  })
  // Described as what REST takes.
  .meta({
    anyOf: undefined,
    type: "number",
    minimum: 0,
    maximum: PRICE_CREDITS_MAX,
    description: "Credits per unit, with at most 12 decimals.",
  });
