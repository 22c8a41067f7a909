/** Why an answer was cut (docs/spec/credits.md#max-cost). */
import { builder } from "../builder.js";

export const CutReasonEnum = builder.enumType("CutReason", {
  description: "A limit of a request at which its answer is cut.",
  values: { MAX_COST: { value: "max_cost", description: "The request's `maxCost`." } } as const,
});
