/** Words of receipts: policies for callers who leave, and limits at which answers are cut. */
import type { CancelPolicy } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";

export const CutReasonEnum = builder.enumType("CutReason", {
  description: "A limit of a request at which its answer is cut.",
  values: { MAX_COST: { value: "max_cost", description: "The request's `maxCost`." } } as const,
});

export const CancelPolicyEnum = builder.enumType("CancelPolicy", {
  description: "What happens to a generation when its caller disconnects after the upstream has started.",
  values: {
    FINISH: { value: "finish", description: "The generation is finished and charged in full." },
    STOP: { value: "stop", description: "The generation is stopped, and the delivered part is charged." },
    READ_TO_USAGE: { value: "read-to-usage", description: "The gateway reads on until the upstream reports its usage, and charges that." },
  } satisfies Record<string, { value: CancelPolicy; description: string }>,
});
