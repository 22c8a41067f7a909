/** The trial balance, for operators (docs/spec/credits.md#books). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import {
  type TrialBalance as Balance,
  type Book,
  type BookRow,
  type BookMovement as Movement,
  trialBalanceInput,
} from "../../services/accounts/books.js";
import { recordPaymentInput, sellCreditsInput } from "../../services/accounts/invoice-sales.js";
import { builder, describedValues } from "../builder.js";
import { accountPayload, type ManagedAccount, managed, withAccountId } from "./account-administration.js";
import { MeterSourceEnum } from "./usage.js";

/** Reads the whole ledger. */
const BOOKS_COST = 200;

const LedgerBook = builder.enumType("LedgerBook", {
  description: "A book of the ledger.",
  values: describedValues<Book>({
    tier: "Credits of tiers that accounts have.",
    crypto: "Credits that accounts have in the bucket CRYPTO.",
    pack: "Credits that accounts have in the bucket PACK.",
    earnings: "The debt to owners of models and apps.",
    cash: "The money of purchases, less refunds, payouts and fees.",
    receivable: "Money that is owed for credits that were sold on an invoice.",
    fees: "Fees of payment processors.",
    revenue: "Charges, less the shares of owners of models and apps.",
    issued: "Credits that were granted and refilled.",
    write_off: "Charges that no credits covered, and refunds of spent credits.",
    breakage: "Granted credits that have expired.",
    upstream_cost: "The operator's costs of upstreams, from the usage rows.",
    upstream_owed: "The same, as the debt to vendors.",
  }),
});

const BookMovement = builder.objectRef<Movement>("BookMovement").implement({
  description: "The movements of a book by one kind of entry.",
  fields: (t) => ({
    kind: t.exposeString("kind", { description: "The kind of the entries, such as charge." }),
    debit: t.field({ type: "Credits", description: "The debits.", resolve: ({ debit }) => formatNanocredits(debit) }),
    credit: t.field({ type: "Credits", description: "The credits.", resolve: ({ credit }) => formatNanocredits(credit) }),
  }),
});

const LedgerBookBalance = builder.objectRef<BookRow>("LedgerBookBalance").implement({
  description: "A book in a period. A balance above 0 is on the credit side.",
  fields: (t) => ({
    book: t.expose("book", { type: LedgerBook, description: "The book." }),
    opening: t.string({ description: "The balance before, as a decimal number.", resolve: ({ opening }) => formatNanocredits(opening) }),
    debit: t.field({ type: "Credits", description: "The debits of the period.", resolve: ({ debit }) => formatNanocredits(debit) }),
    credit: t.field({ type: "Credits", description: "The credits of the period.", resolve: ({ credit }) => formatNanocredits(credit) }),
    closing: t.string({ description: "The balance after, as a decimal number.", resolve: ({ closing }) => formatNanocredits(closing) }),
    movements: t.field({ type: [BookMovement], description: "The movements by kind.", resolve: ({ movements }) => [...movements] }),
  }),
});

const TrialBalance = builder.objectRef<Balance>("TrialBalance").implement({
  description: "The trial balance of the ledger. The debits and credits of a sound ledger are equal.",
  fields: (t) => ({
    from: t.expose("from", { type: "DateTime", nullable: true, description: "The start of the period. Null: that of the ledger." }),
    to: t.expose("to", { type: "DateTime", description: "The end of the period, which it excludes." }),
    books: t.field({ type: [LedgerBookBalance], description: "The books that have entries.", resolve: ({ books }) => [...books] }),
    debit: t.field({ type: "Credits", description: "All debits of the period.", resolve: ({ debit }) => formatNanocredits(debit) }),
    credit: t.field({ type: "Credits", description: "All credits of the period.", resolve: ({ credit }) => formatNanocredits(credit) }),
    sold: t.field({
      type: "Credits",
      description: "Bought credits that accounts have now.",
      resolve: ({ sold }) => formatNanocredits(sold),
    }),
    granted: t.field({
      type: "Credits",
      description: "Granted credits that accounts have now, without those of tiers.",
      resolve: ({ granted }) => formatNanocredits(granted),
    }),
  }),
});

const SellCreditsInput = builder.inputType("SellCreditsInput", {
  description: "Parameters of `sellCredits`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account that receives the credits." }),
    bucket: t.field({ type: MeterSourceEnum, required: true, description: "The bucket: CRYPTO or PACK." }),
    credits: t.field({ type: "Credits", required: true, description: "The number of credits. Must be more than 0." }),
    note: t.string({ description: "A note that is kept in the ledger, such as the number of the invoice." }),
    saleId: t.id({ description: "A UUID that you choose. A sale that is sent twice with the same UUID is booked once." }),
  }),
});

const SellCreditsPayload = accountPayload<ManagedAccount>("SellCreditsPayload", "The result of `sellCredits`.");

builder.mutationField("sellCredits", (t) =>
  t.field({
    type: SellCreditsPayload,
    nullable: true,
    description: "Adds credits that are paid on an invoice. They count as bought, and their money as owed. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SellCreditsInput, required: true, description: "The account and the credits." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const sale = parsePermitted(ctx, requireOperator, sellCreditsInput, () => withAccountId(input));
      await ctx.services.invoiceSales.sell(ctx, sale);
      return managed(ctx, info, sale.accountId);
    },
  }),
);

const RecordPaymentInput = builder.inputType("RecordPaymentInput", {
  description: "Parameters of `recordPayment`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account that paid." }),
    credits: t.field({ type: "Credits", required: true, description: "The amount in credits. Must be more than 0." }),
    note: t.string({ description: "A note that is kept in the ledger." }),
    paymentId: t.id({ description: "A UUID that you choose. A payment that is sent twice with the same UUID is booked once." }),
  }),
});

const RecordPaymentPayload = accountPayload<ManagedAccount>("RecordPaymentPayload", "The result of `recordPayment`.");

builder.mutationField("recordPayment", (t) =>
  t.field({
    type: RecordPaymentPayload,
    nullable: true,
    description: "Books the money for credits that were sold on an invoice, at most the owed amount. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RecordPaymentInput, required: true, description: "The account and the amount." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const payment = parsePermitted(ctx, requireOperator, recordPaymentInput, () => withAccountId(input));
      await ctx.services.invoiceSales.recordPayment(ctx, payment);
      return managed(ctx, info, payment.accountId);
    },
  }),
);

builder.queryField("trialBalance", (t) =>
  t.field({
    type: TrialBalance,
    nullable: true,
    description: "The trial balance of a period. Operators only.",
    args: {
      from: t.arg({ type: "DateTime", description: "The start of the period. Null or absent: that of the ledger." }),
      to: t.arg({ type: "DateTime", description: "The end of the period, which it excludes. Now by default." }),
    },
    complexity: BOOKS_COST,
    resolve: (_root, args, ctx) => ctx.services.books.trialBalance(ctx, parsePermitted(ctx, requireOperator, trialBalanceInput, args)),
  }),
);
