/** Credits that people buy (docs/spec/top-ups.md). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager, requireOperator } from "../../services/access/permissions.js";
import { disputedNanocredits, refundedNanocredits } from "../../services/payments/booking.js";
import { formatCents } from "../../services/payments/money.js";
import {
  createCheckoutInput,
  type OpenedCheckout,
  refundTopUpInput,
  type TopUpRow,
  type TopUpState,
} from "../../services/payments/top-ups.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";

const TopUpStateEnum = builder.enumType("TopUpState", {
  description: "The state of a top-up.",
  values: describedValues<TopUpState>({
    open: "The checkout waits for the payment.",
    expired: "The checkout ended without a payment. A payment that the processor reports later still counts.",
    paid: "The credits are in the account.",
    refunded: "The whole payment was paid back.",
    disputed: "The payer's bank took the payment back, or asks for it.",
    cancelled: "The person cancelled the checkout.",
    failed: "The payment failed.",
  }),
});

const CreditTopUp = builder.objectRef<TopUpRow>("CreditTopUp").implement({
  description: "A purchase of credits. The `restId` is the UUID of its transaction in the ledger.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.topUps.getMany(ctx, ids))),
  fields: (t) => ({
    state: t.field({
      type: TopUpStateEnum,
      description: "Whether it is paid.",
      resolve: (row, _args, ctx) => ctx.services.topUps.stateOf(row),
    }),
    credits: t.field({
      type: "Credits",
      description: "The credits that it adds.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    refunded: t.field({
      type: "Credits",
      description: "Credits whose money was paid back. They were taken from the account as far as they were not spent.",
      resolve: (row) => formatNanocredits(refundedNanocredits(row)),
    }),
    disputed: t.field({
      type: "Credits",
      description: "Credits of disputes that are open or lost. They were taken from the account as far as they were not spent.",
      resolve: (row) => formatNanocredits(disputedNanocredits(row)),
    }),
    isAutomatic: t.exposeBoolean("isAutomatic", { description: "Whether it was charged to a saved payment method." }),
    failure: t.exposeString("failure", { nullable: true, description: "Why the payment failed. Null: it did not." }),
    amount: t.string({
      description: "The price as a decimal number with two decimals, such as 12.50.",
      resolve: ({ amountCents }) => formatCents(amountCents),
    }),
    currency: t.exposeString("currency", { description: "The currency of the price: ISO 4217, in lower case." }),
    processor: t.exposeString("processor", { description: "The payment processor." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the checkout was opened." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "Until when the checkout can be paid." }),
    paidAt: t.expose("paidAt", { type: "DateTime", nullable: true, description: "When the credits were added. Null until then." }),
  }),
});

builder.prismaObjectField(Account, "topUps", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: CreditTopUp, name: "CreditTopUpConnection", description: "A page of top-ups." },
      { name: "CreditTopUpEdge", description: "A top-up and its cursor." },
    ),
    nullable: true,
    description: "Purchases of credits, newest first, unpaid ones included. Permission BALANCE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx) =>
      toConnection(await ctx.services.topUps.list(ctx, id, toPageRequest(args, "topUps")), "topUps", createdPosition),
  }),
);

builder.queryField("areCreditsSold", (t) =>
  t.boolean({
    nullable: true,
    description: "Whether `createCheckout` sells credits on this gateway.",
    resolve: (_root, _args, ctx) => ctx.services.topUps.isOffered,
  }),
);

const CreateCheckoutInput = builder.inputType("CreateCheckoutInput", {
  description: "Parameters of `createCheckout`.",
  fields: (t) => ({
    credits: t.field({
      type: "Credits",
      required: true,
      description: "The credits to buy, with at most 2 decimals. `creditSales` has the least and the most.",
    }),
    currency: t.string({ description: "The currency of the gateway, in lower case. Another one is refused." }),
  }),
});

const CreateCheckoutPayload = builder.objectRef<OpenedCheckout>("CreateCheckoutPayload").implement({
  description: "The result of `createCheckout`.",
  fields: (t) => ({
    topUp: t.field({ type: CreditTopUp, description: "The top-up, which is not paid yet.", resolve: ({ topUp }) => topUp }),
    url: t.exposeString("url", { description: "The page on which a person pays. Open it in a browser; do not share it." }),
  }),
});

builder.mutationField("createCheckout", (t) =>
  t.field({
    type: CreateCheckoutPayload,
    nullable: true,
    extensions: { isOnePerOperation: true },
    description: "Opens a checkout for credits. Needs a session or a key with the permission KEYS.",
    args: { input: t.arg({ type: CreateCheckoutInput, required: true, description: "The purchase." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.topUps.createCheckout(ctx, parsePermitted(ctx, requireKeyManager, createCheckoutInput, input)),
  }),
);

const RefundTopUpInput = builder.inputType("RefundTopUpInput", {
  description: "Parameters of `refundTopUp`.",
  fields: (t) => ({
    topUpId: t.id({ required: true, description: "The ID of the top-up." }),
    reason: t.string({ description: "The reason, for the audit log and the ledger." }),
  }),
});

interface RefundedTopUp {
  readonly topUp: TopUpRow;
}

const RefundTopUpPayload = builder.objectRef<RefundedTopUp>("RefundTopUpPayload").implement({
  description: "The result of `refundTopUp`.",
  fields: (t) => ({
    topUp: t.field({ type: CreditTopUp, description: "The top-up, paid back.", resolve: ({ topUp }) => topUp }),
  }),
});

builder.mutationField("refundTopUp", (t) =>
  t.field({
    type: RefundTopUpPayload,
    nullable: true,
    description: "Pays a top-up back, and takes its credits as far as they are not spent; the rest is written off. Operators only.",
    args: { input: t.arg({ type: RefundTopUpInput, required: true, description: "The refund." }) },
    resolve: async (_root, { input }, ctx) => {
      const refund = parsePermitted(ctx, requireOperator, refundTopUpInput, () => ({
        ...input,
        topUpId: readId(input.topUpId, "CreditTopUp", "input.topUpId"),
      }));
      return { topUp: await ctx.services.topUps.refund(ctx, refund) };
    },
  }),
);

builder.subscriptionField("topUpCompleted", (t) =>
  t.field({
    type: CreditTopUp,
    description: "Each top-up of the account once it is paid. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.topUps.completed(live)),
    resolve: ({ topUpId }, _args, ctx) => ctx.services.topUps.get(ctx, topUpId),
  }),
);
