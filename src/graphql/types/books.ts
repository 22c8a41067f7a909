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
import { builder, describedValues } from "../builder.js";

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
