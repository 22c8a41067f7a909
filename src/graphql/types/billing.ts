/** How credits are sold, automatic top-ups, and the processor's invoices and portal (docs/spec/top-ups.md). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { type AutoTopUpRow, updateAutoTopUpInput } from "../../services/payments/auto-top-ups.js";
import type { CreditSalesOffer, InvoiceRow } from "../../services/payments/billing.js";
import { INVOICES_DEFAULT, INVOICES_MAX } from "../../services/payments/limits.js";
import { formatCents } from "../../services/payments/money.js";
import { builder, describedValues } from "../builder.js";
import { Account } from "./accounts.js";

const CreditSales = builder.objectRef<CreditSalesOffer>("CreditSales").implement({
  description: "How credits are sold on this gateway. One credit costs one unit of the currency.",
  fields: (t) => ({
    processor: t.exposeString("processor", { description: "The payment processor." }),
    currency: t.exposeString("currency", { description: "The currency of prices: ISO 4217, in lower case." }),
    packs: t.field({
      type: ["Credits"],
      description: "The amounts that are offered. Other amounts can be bought too.",
      resolve: ({ packs }) => packs.map((pack) => formatNanocredits(pack)),
    }),
    least: t.field({ type: "Credits", description: "The least that a top-up may buy.", resolve: ({ least }) => formatNanocredits(least) }),
    most: t.field({ type: "Credits", description: "The most that a top-up may buy.", resolve: ({ most }) => formatNanocredits(most) }),
    hasPortal: t.exposeBoolean("hasPortal", { description: "Whether `createBillingPortal` opens a page for payment methods." }),
    hasAutoTopUp: t.exposeBoolean("hasAutoTopUp", { description: "Whether credits can be bought automatically." }),
  }),
});

builder.queryField("creditSales", (t) =>
  t.field({
    type: CreditSales,
    nullable: true,
    description: "How credits are sold on this gateway. Null: they are not.",
    resolve: (_root, _args, ctx) => ctx.services.billing.offer,
  }),
);

const AutoTopUp = builder.objectRef<AutoTopUpRow>("AutoTopUp").implement({
  description: "Credits that are bought automatically, with the saved payment method, when the balance falls below a threshold.",
  fields: (t) => ({
    isEnabled: t.exposeBoolean("isEnabled", { description: "Whether it is switched on." }),
    threshold: t.field({
      type: "Credits",
      description: "Credits are bought when the balance falls below this.",
      resolve: ({ thresholdNanocredits }) => formatNanocredits(thresholdNanocredits),
    }),
    amount: t.field({
      type: "Credits",
      description: "The credits of each top-up.",
      resolve: ({ amountNanocredits }) => formatNanocredits(amountNanocredits),
    }),
    monthlyCap: t.field({
      type: "Credits",
      description: "The most credits that are bought automatically in a calendar month (UTC).",
      resolve: ({ monthlyNanocredits }) => formatNanocredits(monthlyNanocredits),
    }),
    isPending: t.boolean({ description: "Whether a payment is under way.", resolve: ({ attemptId }) => attemptId !== null }),
    failures: t.exposeInt("failures", { description: "Failed payments since the last one that succeeded." }),
    problem: t.exposeString("problem", { nullable: true, description: "Why the last payment failed, or none was made. Null: no problem." }),
    nextAttemptAt: t.expose("nextAt", { type: "DateTime", nullable: true, description: "When a payment may be made next. Null: at once." }),
    gaveUpAt: t.expose("gaveUpAt", {
      type: "DateTime",
      nullable: true,
      description: "When it was given up after repeated failures. Null: it was not. `updateAutoTopUp` starts it again.",
    }),
  }),
});

const InvoiceStatusEnum = builder.enumType("InvoiceStatus", {
  description: "The status of an invoice.",
  values: describedValues<InvoiceRow["status"]>({
    draft: "It is not final.",
    open: "It waits for its payment.",
    paid: "It is paid.",
    void: "It was cancelled.",
    uncollectible: "It is not expected to be paid.",
  }),
});

const CreditInvoice = builder.objectRef<InvoiceRow>("CreditInvoice").implement({
  description: "An invoice of the payment processor. The development checkout writes receipts.",
  fields: (t) => ({
    number: t.exposeString("number", { description: "Its number." }),
    status: t.field({ type: InvoiceStatusEnum, description: "Its status.", resolve: ({ status }) => status }),
    amount: t.string({
      description: "The amount with taxes, as a decimal number with two decimals.",
      resolve: ({ amountCents }) => formatCents(amountCents),
    }),
    currency: t.exposeString("currency", { description: "ISO 4217, in lower case." }),
    issuedAt: t.expose("issuedAt", { type: "DateTime", description: "When it was written." }),
    url: t.exposeString("url", { nullable: true, description: "Its page, which needs no sign-in: do not share it. Null: there is none." }),
    pdfUrl: t.exposeString("pdfUrl", { nullable: true, description: "Its PDF. Null: there is none." }),
  }),
});

builder.prismaObjectFields(Account, (t) => ({
  autoTopUp: t.field({
    type: AutoTopUp,
    nullable: true,
    description: "Automatic top-ups of the own account. Null: never set up. Permission BALANCE.",
    resolve: (_account, _args, ctx) => ctx.services.autoTopUps.get(ctx),
  }),
  invoices: t.field({
    type: [CreditInvoice],
    nullable: true,
    description: "Invoices of the own account, newest first. Older ones are in the processor's portal. Permission BALANCE.",
    args: {
      first: t.arg.int({ required: true, defaultValue: INVOICES_DEFAULT, description: `The number of invoices, 1 to ${INVOICES_MAX}.` }),
    },
    complexity: ({ first }) => ({ field: 10, multiplier: Math.max(1, Math.min(first, INVOICES_MAX)) }),
    resolve: async (_account, { first }, ctx) => [...(await ctx.services.billing.listInvoices(ctx, first))],
  }),
}));

const UpdateAutoTopUpInput = builder.inputType("UpdateAutoTopUpInput", {
  description: "Parameters of `updateAutoTopUp`.",
  fields: (t) => ({
    isEnabled: t.boolean({ required: true, description: "Whether credits are bought automatically." }),
    threshold: t.field({ type: "Credits", required: true, description: "Credits are bought when the balance falls below this." }),
    amount: t.field({ type: "Credits", required: true, description: "The credits of each top-up, with at most 2 decimals." }),
    monthlyCap: t.field({
      type: "Credits",
      required: true,
      description: "The most credits that are bought automatically in a calendar month (UTC).",
    }),
  }),
});

interface UpdatedAutoTopUp {
  readonly autoTopUp: AutoTopUpRow;
}

const UpdateAutoTopUpPayload = builder.objectRef<UpdatedAutoTopUp>("UpdateAutoTopUpPayload").implement({
  description: "The result of `updateAutoTopUp`.",
  fields: (t) => ({
    autoTopUp: t.field({ type: AutoTopUp, description: "The new settings.", resolve: ({ autoTopUp }) => autoTopUp }),
  }),
});

builder.mutationField("updateAutoTopUp", (t) =>
  t.field({
    type: UpdateAutoTopUpPayload,
    nullable: true,
    description: "Sets automatic top-ups up, and forgets earlier failures. Needs a session or a key with the permission KEYS.",
    args: { input: t.arg({ type: UpdateAutoTopUpInput, required: true, description: "The settings." }) },
    resolve: async (_root, { input }, ctx) => ({
      autoTopUp: await ctx.services.autoTopUps.update(ctx, parsePermitted(ctx, requireKeyManager, updateAutoTopUpInput, input)),
    }),
  }),
);

const CreateBillingPortalInput = builder.inputType("CreateBillingPortalInput", {
  description: "Parameters of `createBillingPortal`. None is required: `{}`.",
  fields: (t) => ({ clientMutationId: t.string({ description: "An identifier of the client that is returned unchanged." }) }),
});

interface OpenedPortal {
  readonly url: string;
  readonly clientMutationId: string | null;
}

const CreateBillingPortalPayload = builder.objectRef<OpenedPortal>("CreateBillingPortalPayload").implement({
  description: "The result of `createBillingPortal`.",
  fields: (t) => ({
    url: t.exposeString("url", { description: "The processor's page. Open it in a browser; do not share it." }),
    // Relay's name for it. It is text of the client, not an ID of the gateway.
    clientMutationId: t.exposeID("clientMutationId", {
      nullable: true,
      description: "The `clientMutationId` of the input. Null when none was sent.",
    }),
  }),
});

builder.mutationField("createBillingPortal", (t) =>
  t.field({
    type: CreateBillingPortalPayload,
    nullable: true,
    extensions: { isOnePerOperation: true },
    description:
      "Opens the processor's page for payment methods and invoices. Needs a session or a key with the permission KEYS. The development checkout has none.",
    args: { input: t.arg({ type: CreateBillingPortalInput, required: true, description: "No parameter is required: `{}`." }) },
    resolve: async (_root, { input }, ctx) => ({
      url: await ctx.services.billing.openPortal(ctx),
      clientMutationId: input.clientMutationId ?? null,
    }),
  }),
);
