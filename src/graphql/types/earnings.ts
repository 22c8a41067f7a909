/** Earnings of owners of community models and apps (docs/spec/earnings.md). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import {
  convertEarningsInput,
  type EarningDayRow,
  type EarningRow,
  type EarningsSummary,
  earningDays,
  maturesAt,
} from "../../services/earnings/earnings.js";
import { EARNING_DAYS_DEFAULT, EARNING_DAYS_MAX } from "../../services/earnings/limits.js";
import { parseInput } from "../../services/requests/input.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";

/** Reads sums. */
const SUMMARY_COST = 10;

const EarningKind = builder.enumType("EarningKind", {
  description: "Whose share a part of a charge is.",
  values: {
    MODEL: { value: "model", description: "Of the owner of the community model that served." },
    APP: { value: "app", description: "Of the owner of the app that the key was granted to: its margin." },
  } as const,
});

const Earning = builder.objectRef<EarningRow>("Earning").implement({
  description: "The share of one charge.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.earnings.getMany(ctx, ids))),
  fields: (t) => ({
    kind: t.expose("kind", { type: EarningKind, description: "Whose share it is." }),
    source: t.exposeString("source", { description: "The canonical ID of the model, or the UUID of the app key." }),
    credits: t.field({
      type: "Credits",
      description: "The credits that were earned.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    reversed: t.field({
      type: "Credits",
      description: "The credits that were taken back of it.",
      resolve: ({ reversedNanocredits }) => formatNanocredits(reversedNanocredits),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the charge was made." }),
    maturesAt: t.field({ type: "DateTime", description: "From when it can be used.", resolve: maturesAt }),
  }),
});

const EarningDay = builder.objectRef<EarningDayRow>("EarningDay").implement({
  description: "Earnings of a day (UTC) from one model or app.",
  fields: (t) => ({
    date: t.string({ description: "The day, such as 2026-11-28.", resolve: ({ day }) => day.toISOString().slice(0, 10) }),
    kind: t.expose("kind", { type: EarningKind, description: "Whose share it is." }),
    source: t.exposeString("source", { description: "The canonical ID of the model, or the UUID of the app key." }),
    requests: t.exposeInt("requests", { description: "The number of charges that it is of." }),
    credits: t.field({
      type: "Credits",
      description: "The credits that were earned and not taken back.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    reversed: t.field({
      type: "Credits",
      description: "The credits that were taken back.",
      resolve: ({ reversedNanocredits }) => formatNanocredits(reversedNanocredits),
    }),
    maturedAt: t.expose("maturedAt", { type: "DateTime", nullable: true, description: "When they became usable. Null: not yet." }),
  }),
});

interface AccountEarnings extends EarningsSummary {
  readonly accountId: string;
}

const Earnings = builder.objectRef<AccountEarnings>("Earnings").implement({
  description: "What an account has earned with its community models and apps.",
  fields: (t) => ({
    pending: t.field({
      type: "Credits",
      description: "Credits that cannot be used yet.",
      resolve: ({ pending }) => formatNanocredits(pending),
    }),
    available: t.field({
      type: "Credits",
      description: "Credits that `convertEarnings` can use, or that the operator pays out.",
      resolve: ({ available }) => formatNanocredits(available),
    }),
    converted: t.field({
      type: "Credits",
      description: "Credits that were converted.",
      resolve: ({ converted }) => formatNanocredits(converted),
    }),
    paidOut: t.field({
      type: "Credits",
      description: "Credits that were paid out in money.",
      resolve: ({ paidOut }) => formatNanocredits(paidOut),
    }),
    reversed: t.field({
      type: "Credits",
      description: "Credits that were taken back before they could be used.",
      resolve: ({ reversed }) => formatNanocredits(reversed),
    }),
    daily: t.field({
      type: [EarningDay],
      description: "The earnings of each day and source, newest first.",
      args: {
        days: t.arg.int({ description: `The number of days, from 1 to ${EARNING_DAYS_MAX}. Defaults to ${EARNING_DAYS_DEFAULT}.` }),
      },
      complexity: SUMMARY_COST,
      resolve: ({ accountId }, { days }, ctx) => ctx.services.earnings.daily(ctx, accountId, parseInput(earningDays, days ?? undefined)),
    }),
    shares: t.field({
      type: builder.connectionObject(
        { type: Earning, name: "EarningConnection", description: "A page of shares." },
        { name: "EarningEdge", description: "A share and its cursor." },
      ),
      nullable: true,
      description: "The shares of single charges, newest first.",
      args: pageArgs,
      complexity: pageCost,
      resolve: async ({ accountId }, args, ctx) =>
        toConnection(await ctx.services.earnings.list(ctx, accountId, toPageRequest(args, "earnings")), "earnings", createdPosition),
    }),
  }),
});

builder.prismaObjectField(Account, "earnings", (t) =>
  t.field({
    type: Earnings,
    nullable: true,
    description: "What the account has earned with its community models and apps. Permission BALANCE.",
    complexity: SUMMARY_COST,
    resolve: async ({ id }, _args, ctx) => ({ accountId: id, ...(await ctx.services.earnings.summary(ctx, id)) }),
  }),
);

const ConvertEarningsInput = builder.inputType("ConvertEarningsInput", {
  description: "Parameters of `convertEarnings`.",
  fields: (t) => ({
    credits: t.field({ type: "Credits", required: true, description: "The number of credits. Must be more than 0." }),
    conversionId: t.id({ description: "A UUID that you choose. A conversion that is sent twice with the same UUID is made once." }),
  }),
});

const ConvertEarningsPayload = builder.objectRef<{ readonly converted: bigint }>("ConvertEarningsPayload").implement({
  description: "The result of `convertEarnings`.",
  fields: (t) => ({
    converted: t.field({
      type: "Credits",
      description: "The credits that were added to the bucket PACK.",
      resolve: ({ converted }) => formatNanocredits(converted),
    }),
  }),
});

builder.mutationField("convertEarnings", (t) =>
  t.field({
    type: ConvertEarningsPayload,
    nullable: true,
    extensions: { isOnePerOperation: true },
    description: "Turns earnings into credits to spend. Needs a session or a key with the permission KEYS.",
    args: { input: t.arg({ type: ConvertEarningsInput, required: true, description: "The conversion." }) },
    resolve: async (_root, { input }, ctx) => ({
      converted: await ctx.services.earnings.convert(ctx, parsePermitted(ctx, requireKeyManager, convertEarningsInput, input)),
    }),
  }),
);

builder.subscriptionField("earningsRecorded", (t) =>
  t.field({
    type: Earning,
    description: "Each share of a charge that the account earns. Permission BALANCE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.earnings.recorded(live)),
    resolve: (earning) => earning,
  }),
);
