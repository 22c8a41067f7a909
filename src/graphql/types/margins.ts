/** Margins of the gateway, for operators (docs/spec/usage.md#margins). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import {
  type MarginGrouping as Grouping,
  MARGIN_DAYS_DEFAULT,
  MARGIN_DAYS_MAX,
  MARGIN_GROUPS_DEFAULT,
  MARGIN_GROUPS_MAX,
  type MarginRow,
  marginInput,
} from "../../services/usage/margins.js";
import { builder, describedValues } from "../builder.js";

/** Reads the usage rows of the range. */
const MARGIN_COST = 50;

const MarginGrouping = builder.enumType("MarginGrouping", {
  description: "A dimension to group margins by.",
  values: describedValues<Grouping>({
    model: "By the model that served.",
    upstream: "By the upstream that served.",
    day: "By day, in UTC.",
  }),
});

const MarginGroup = builder.objectRef<MarginRow>("MarginGroup").implement({
  description: "Charges and the operator's costs of a group of generations. Fields that are not grouped by are null.",
  fields: (t) => ({
    modelId: t.exposeID("model", { nullable: true, description: "The canonical ID of the model that served." }),
    upstream: t.exposeString("upstream", {
      nullable: true,
      description: "The upstream that served. Null also for generations from before upstreams were recorded.",
    }),
    day: t.exposeString("day", { nullable: true, description: "The day (UTC), such as 2026-11-27." }),
    requests: t.exposeFloat("requests", { description: "The number of charged generations, free ones included, as a whole number." }),
    unknownRequests: t.exposeFloat("unknownRequests", {
      description: "Generations of which the operator's cost is unknown, as a whole number.",
    }),
    cost: t.field({
      type: "Credits",
      description: "The credits charged for all generations.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    upstreamCost: t.field({
      type: "Credits",
      description: "The operator's cost of the generations of which it is known.",
      resolve: ({ upstreamCostNanocredits }) => formatNanocredits(upstreamCostNanocredits),
    }),
    margin: t.string({
      description: "The credits charged for generations of known cost, less that cost, as a decimal number. Negative for a loss.",
      resolve: ({ marginNanocredits }) => formatNanocredits(marginNanocredits),
    }),
  }),
});

builder.queryField("margins", (t) =>
  t.field({
    type: [MarginGroup],
    nullable: true,
    description: "Charges and the operator's costs by model, upstream and day, the largest charges first. Operators only.",
    args: {
      by: t.arg({ type: [MarginGrouping], required: true, description: "The dimensions to group by. Empty: one group of all." }),
      from: t.arg({ type: "DateTime", description: `Defaults to ${MARGIN_DAYS_DEFAULT} days before the end; at most ${MARGIN_DAYS_MAX}.` }),
      to: t.arg({ type: "DateTime", description: "Generations before this time. Defaults to now." }),
      first: t.arg.int({
        required: true,
        defaultValue: MARGIN_GROUPS_DEFAULT,
        description: `The number of groups, 1 to ${MARGIN_GROUPS_MAX}.`,
      }),
    },
    complexity: ({ first }) => ({ field: MARGIN_COST + Math.ceil(Math.max(1, first) / 10), multiplier: 1 }),
    resolve: async (_root, args, ctx) => [
      ...(await ctx.services.margins.read(ctx, parsePermitted(ctx, requireOperator, marginInput, args))),
    ],
  }),
);
