/** Sales of credits, for operators (docs/spec/top-ups.md#sales). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import { formatCents } from "../../services/payments/money.js";
import { SALES_DAYS_DEFAULT, SALES_DAYS_MAX, type SalesRow, salesInput } from "../../services/payments/sales.js";
import { builder } from "../builder.js";

/** Reads the top-ups of the range. */
const SALES_COST = 50;

const SalesDay = builder.objectRef<SalesRow>("SalesDay").implement({
  description: "Purchases, refunds and disputes of a day, by processor and currency. Amounts are without taxes.",
  fields: (t) => ({
    day: t.exposeString("day", { description: "The day (UTC), such as 2026-11-27." }),
    processor: t.exposeString("processor", { description: "The payment processor." }),
    currency: t.exposeString("currency", { description: "ISO 4217, in lower case." }),
    purchases: t.exposeInt("purchases", { description: "The number of paid top-ups." }),
    automatic: t.exposeInt("automatic", { description: "The number of them that were made automatically." }),
    credits: t.field({ type: "Credits", description: "The credits sold.", resolve: (row) => formatNanocredits(row.soldNanocredits) }),
    sold: t.string({ description: "The money of the purchases, as a decimal number.", resolve: ({ soldCents }) => formatCents(soldCents) }),
    refunds: t.exposeInt("refunds", { description: "The number of refunds." }),
    refunded: t.string({ description: "The money that was paid back.", resolve: ({ refundedCents }) => formatCents(refundedCents) }),
    disputes: t.exposeInt("disputes", { description: "The number of disputes that took money." }),
    disputed: t.string({ description: "The money that they took.", resolve: ({ disputedCents }) => formatCents(disputedCents) }),
    disputesWon: t.exposeInt("disputesWon", { description: "The number of disputes that were won." }),
    won: t.string({ description: "The money that they returned.", resolve: ({ wonCents }) => formatCents(wonCents) }),
    refundsFailed: t.exposeInt("refundsFailed", { description: "The number of refunds that the payers' banks did not take." }),
    returned: t.string({ description: "The money that came back with them.", resolve: ({ failedCents }) => formatCents(failedCents) }),
    writtenOff: t.field({
      type: "Credits",
      description: "Credits of refunds and disputes that were spent before.",
      resolve: ({ writtenOffNanocredits }) => formatNanocredits(writtenOffNanocredits),
    }),
    writeOffsReversed: t.field({
      type: "Credits",
      description: "Credits that were written off, and are paid after all: a dispute was won, or a refund failed.",
      resolve: ({ reversedNanocredits }) => formatNanocredits(reversedNanocredits),
    }),
  }),
});

builder.queryField("sales", (t) =>
  t.field({
    type: [SalesDay],
    nullable: true,
    description: "Sales of credits by day, newest first. Operators only.",
    args: {
      from: t.arg({ type: "DateTime", description: `Defaults to ${SALES_DAYS_DEFAULT} days before the end; at most ${SALES_DAYS_MAX}.` }),
      to: t.arg({ type: "DateTime", description: "Sales before this time. Defaults to now." }),
    },
    complexity: { field: SALES_COST, multiplier: 1 },
    resolve: async (_root, args, ctx) => [...(await ctx.services.sales.read(ctx, parsePermitted(ctx, requireOperator, salesInput, args)))],
  }),
);
