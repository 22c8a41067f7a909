/** Earnings for operators (docs/spec/earnings.md#operators). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import {
  type EarningFlagReason,
  type EarningFlag as Flag,
  linkAccountsInput,
  type OwedEarnings as Owed,
  recordPayoutInput,
  reverseEarningsInput,
} from "../../services/earnings/earnings-administration.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";

/** Reads sums over accounts. */
const REPORT_COST = 50;
const OWED_MAX = 500;

const OwedEarnings = builder.objectRef<Owed>("OwedEarnings").implement({
  description: "The earnings that an account is owed.",
  fields: (t) => ({
    accountId: t.exposeID("accountId", { description: "The REST ID of the account." }),
    handle: t.exposeString("handle", { description: "The handle of the account." }),
    available: t.field({
      type: "Credits",
      description: "Credits that can be paid out.",
      resolve: ({ available }) => formatNanocredits(available),
    }),
    pending: t.field({
      type: "Credits",
      description: "Credits that cannot be paid out yet.",
      resolve: ({ pending }) => formatNanocredits(pending),
    }),
  }),
});

builder.queryField("owedEarnings", (t) =>
  t.field({
    type: [OwedEarnings],
    nullable: true,
    description: `Accounts that are owed earnings, the largest sums first, at most ${OWED_MAX}. Operators only.`,
    complexity: REPORT_COST,
    resolve: (_root, _args, ctx) => ctx.services.earningsAdministration.owed(ctx, OWED_MAX),
  }),
);

const EarningFlagReasonEnum = builder.enumType("EarningFlagReason", {
  description: "Why earnings are flagged.",
  values: describedValues<EarningFlagReason>({
    one_payer: "Most of a day's earnings of an account came from one payer.",
    rise: "A day's earnings are far above those of the week before.",
    high_rate: "One payer made very many requests to one model, or through one app, within a minute.",
  }),
});

const EarningFlag = builder.objectRef<Flag>("EarningFlag").implement({
  description: "Earnings of a day that may be farmed.",
  fields: (t) => ({
    reason: t.expose("reason", { type: EarningFlagReasonEnum, description: "Why they are flagged." }),
    accountId: t.exposeID("accountId", { description: "The REST ID of the account that earned them." }),
    handle: t.exposeString("handle", { description: "The handle of that account." }),
    payerId: t.exposeID("payerId", { nullable: true, description: "The REST ID of the payer. Null for RISE." }),
    source: t.exposeString("source", { nullable: true, description: "The ID of the model or app key, for HIGH_RATE." }),
    date: t.string({ description: "The day (UTC), such as 2026-11-28.", resolve: ({ day }) => day.toISOString().slice(0, 10) }),
    credits: t.field({
      type: "Credits",
      description: "The credits that were earned.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    requests: t.exposeInt("requests", { description: "The number of charges that they are of. HIGH_RATE: those of the busiest minute." }),
  }),
});

builder.queryField("earningFlags", (t) =>
  t.field({
    type: [EarningFlag],
    nullable: true,
    description: "Earnings of the last days that may be farmed, the largest first. Operators only.",
    complexity: REPORT_COST,
    resolve: (_root, _args, ctx) => ctx.services.earningsAdministration.flags(ctx),
  }),
);

const RecordPayoutInput = builder.inputType("RecordPayoutInput", {
  description: "Parameters of `recordPayout`.",
  fields: (t) => ({
    accountId: t.id({ required: true, description: "The ID of the account that was paid." }),
    credits: t.field({ type: "Credits", required: true, description: "The credits that were paid out. Must be more than 0." }),
    note: t.string({ description: "A note that is kept in the ledger." }),
    payoutId: t.id({ description: "A UUID that you choose. A payout that is sent twice with the same UUID is booked once." }),
  }),
});

const RecordPayoutPayload = builder.objectRef<{ readonly paidOut: bigint }>("RecordPayoutPayload").implement({
  description: "The result of `recordPayout`.",
  fields: (t) => ({
    paidOut: t.field({
      type: "Credits",
      description: "The credits that were paid out.",
      resolve: ({ paidOut }) => formatNanocredits(paidOut),
    }),
  }),
});

builder.mutationField("recordPayout", (t) =>
  t.field({
    type: RecordPayoutPayload,
    nullable: true,
    extensions: { isOnePerOperation: true },
    description: "Books that earnings of an account were paid out in money. Operators only.",
    args: { input: t.arg({ type: RecordPayoutInput, required: true, description: "The payout." }) },
    resolve: async (_root, { input }, ctx) => {
      const payout = parsePermitted(ctx, requireOperator, recordPayoutInput, () => ({
        ...input,
        accountId: readId(input.accountId, "Account", "input.accountId"),
      }));
      return { paidOut: await ctx.services.earningsAdministration.recordPayout(ctx, payout) };
    },
  }),
);

const ReverseEarningsInput = builder.inputType("ReverseEarningsInput", {
  description: "Parameters of `reverseEarnings`.",
  fields: (t) => ({
    payerId: t.id({ required: true, description: "The ID of the account whose charges the earnings are of." }),
    earnerId: t.id({ description: "The ID of the account that earned them. Null or absent: all accounts." }),
    reason: t.string({ description: "The reason, for the audit log and the ledger." }),
  }),
});

const ReverseEarningsPayload = builder.objectRef<{ readonly reversed: bigint }>("ReverseEarningsPayload").implement({
  description: "The result of `reverseEarnings`.",
  fields: (t) => ({
    reversed: t.field({
      type: "Credits",
      description: "The credits that were taken back.",
      resolve: ({ reversed }) => formatNanocredits(reversed),
    }),
  }),
});

builder.mutationField("reverseEarnings", (t) =>
  t.field({
    type: ReverseEarningsPayload,
    nullable: true,
    description: "Takes back earnings from an account's charges, as far as they are pending. Operators only.",
    args: { input: t.arg({ type: ReverseEarningsInput, required: true, description: "The payer and the earner." }) },
    resolve: async (_root, { input }, ctx) => {
      const reversal = parsePermitted(ctx, requireOperator, reverseEarningsInput, () => ({
        ...input,
        payerId: readId(input.payerId, "Account", "input.payerId"),
        earnerId: input.earnerId == null ? null : readId(input.earnerId, "Account", "input.earnerId"),
      }));
      return { reversed: await ctx.services.earningsAdministration.reverse(ctx, reversal) };
    },
  }),
);

const LinkAccountsInput = builder.inputType("LinkAccountsInput", {
  description: "Parameters of `linkAccounts`.",
  fields: (t) => ({
    accountIds: t.idList({ required: true, description: "The IDs of accounts of one person, two or more." }),
    reason: t.string({ description: "The reason, for the audit log." }),
  }),
});

const LinkAccountsPayload = builder.objectRef<{ readonly linked: readonly string[] }>("LinkAccountsPayload").implement({
  description: "The result of `linkAccounts`.",
  fields: (t) => ({
    linked: t.exposeStringList("linked", { description: "The REST IDs of all accounts that are linked now." }),
  }),
});

builder.mutationField("linkAccounts", (t) =>
  t.field({
    type: LinkAccountsPayload,
    nullable: true,
    description: "Links accounts of one person: they earn nothing from each other from now on. Operators only.",
    args: { input: t.arg({ type: LinkAccountsInput, required: true, description: "The accounts." }) },
    resolve: async (_root, { input }, ctx) => {
      const links = parsePermitted(ctx, requireOperator, linkAccountsInput, () => ({
        ...input,
        accountIds: input.accountIds.map((id, index) => readId(id, "Account", `input.accountIds.${index}`)),
      }));
      return { linked: await ctx.services.earningsAdministration.link(ctx, links) };
    },
  }),
);

const UnlinkAccountPayload = builder.objectRef<{ readonly accountId: string }>("UnlinkAccountPayload").implement({
  description: "The result of `unlinkAccount`.",
  fields: (t) => ({
    accountId: t.exposeID("accountId", { description: "The REST ID of the account." }),
  }),
});

const UnlinkAccountInput = builder.inputType("UnlinkAccountInput", {
  description: "Parameters of `unlinkAccount`.",
  fields: (t) => ({ accountId: t.id({ required: true, description: "The ID of the account." }) }),
});

builder.mutationField("unlinkAccount", (t) =>
  t.field({
    type: UnlinkAccountPayload,
    nullable: true,
    description: "Ends the links of an account. Operators only.",
    args: { input: t.arg({ type: UnlinkAccountInput, required: true, description: "The account." }) },
    resolve: async (_root, { input }, ctx) => {
      requireOperator(ctx);
      const accountId = readId(input.accountId, "Account", "input.accountId");
      await ctx.services.earningsAdministration.unlink(ctx, accountId);
      return { accountId };
    },
  }),
);
