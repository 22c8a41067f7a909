/** What operators see of the charges that the database refuses. */
import { formatNanocredits } from "../../lib/money.js";
import { REFUSED_SETTLEMENTS_SHOWN_MAX } from "../../services/accounts/limits.js";
import {
  type RefusedSettlementRow,
  type RefusedSettlementsShown,
  retryRefusedSettlementsInput,
} from "../../services/accounts/refused-settlements.js";
import { parseInput } from "../../services/requests/input.js";
import { builder } from "../builder.js";

const RefusedSettlement = builder.objectRef<RefusedSettlementRow>("RefusedSettlement").implement({
  description: "A charge that the database refuses. Its generation was answered; it is tried again until it is booked.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The generation's." }),
    accountId: t.exposeID("accountId"),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true }),
    model: t.exposeString("model"),
    cost: t.field({ type: "Credits", description: "What is to be charged.", resolve: ({ cost }) => formatNanocredits(cost) }),
    timestamp: t.expose("timestamp", { type: "DateTime", description: "Of the generation." }),
    refusedAt: t.expose("refusedAt", { type: "DateTime" }),
    reason: t.exposeString("reason", { description: "In the database's words, of the last try." }),
  }),
});

const RefusedSettlements = builder.objectRef<RefusedSettlementsShown>("RefusedSettlements").implement({
  fields: (t) => ({
    count: t.exposeInt("count", { description: "All of them." }),
    settlements: t.field({
      type: [RefusedSettlement],
      description: "The oldest 100.",
      complexity: { field: 1, multiplier: REFUSED_SETTLEMENTS_SHOWN_MAX },
      resolve: ({ settlements }) => settlements,
    }),
  }),
});

const OF_THIS_PROCESS = "Of the process that answers: each keeps its own. Operators only.";

builder.queryField("refusedSettlements", (t) =>
  t.field({
    type: RefusedSettlements,
    nullable: true,
    description: `The charges that the database refuses. ${OF_THIS_PROCESS}`,
    resolve: (_root, _args, ctx) => ctx.services.refusedSettlements.show(ctx),
  }),
);

const RetryRefusedSettlementsInput = builder.inputType("RetryRefusedSettlementsInput", {
  fields: (t) => ({ ids: t.idList({ description: "Of generations, at most 100. All of them unless stated." }) }),
});

builder.mutationField("retryRefusedSettlements", (t) =>
  t.field({
    type: RefusedSettlements,
    nullable: true,
    description: `Tries the charges that the database refuses once more, and answers with those that it still does. ${OF_THIS_PROCESS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RetryRefusedSettlementsInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.refusedSettlements.retry(ctx, parseInput(retryRefusedSettlementsInput, input)),
  }),
);
