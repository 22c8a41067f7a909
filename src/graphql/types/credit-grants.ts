/** Credits of an account: grants, the ledger, refills, and how to get more. */
import { formatNanocredits } from "../../lib/money.js";
import type { TopUp as ConfiguredTopUp } from "../../lib/settings.js";
import type { CreditGrant as Granted, LedgerLine as Line } from "../../services/accounts/credit-grants.js";
import { statementPosition } from "../../services/accounts/credit-statement.js";
import type { TierRefill as Refill } from "../../services/credits/tiers.js";
import { builder } from "../builder.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";
import { MeterSourceEnum } from "./usage.js";

const CreditGrant = builder.objectRef<Granted>("CreditGrant").implement({
  description:
    "Credits added to an account, other than tier refills. The `restId` is the UUID that the granter chose, or one from the ledger.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.creditGrants.getMany(ctx, ids))),
  fields: (t) => ({
    bucket: t.expose("bucket", { type: MeterSourceEnum, description: "The bucket that received the credits." }),
    credits: t.field({
      type: "Credits",
      description: "The number of credits.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    note: t.exposeString("note", { nullable: true, description: "The note of the grant. Null when there is none." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the credits were added." }),
    expiresAt: t.expose("expiresAt", {
      type: "DateTime",
      nullable: true,
      description: "When the part that is not spent expires. Null: never.",
    }),
    expired: t.field({
      type: "Credits",
      description: "The credits that have expired.",
      resolve: ({ expired }) => formatNanocredits(expired),
    }),
  }),
});

builder.prismaObjectField(Account, "creditGrants", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: CreditGrant, name: "CreditGrantConnection", description: "A page of credit grants." },
      { name: "CreditGrantEdge", description: "A credit grant and its cursor." },
    ),
    nullable: true,
    description: "Credits added to the account, other than tier refills, newest first. Permission BALANCE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx) => {
      const page = await ctx.services.creditGrants.list(ctx, id, toPageRequest(args, "creditGrants"));
      return toConnection(page, "creditGrants", createdPosition);
    },
  }),
);

const LedgerLineKind = builder.enumType("LedgerLineKind", {
  description: "The kind of a ledger line.",
  values: {
    GRANT: { value: "grant", description: "Credits that an operator gave or was paid for." },
    REFILL: { value: "refill", description: "The refill of the tier's credits, or their lapse." },
    CHARGE: { value: "charge", description: "All charges of a day (UTC)." },
    WITHDRAWAL: { value: "withdrawal", description: "Credits that an operator took back." },
    PURCHASE: { value: "purchase", description: "Credits that were bought." },
    REFUND: { value: "refund", description: "Credits whose money was paid back." },
    EXPIRY: { value: "expiry", description: "Granted credits that were not spent in time." },
    CONVERSION: { value: "conversion", description: "Earnings that were turned into credits." },
    FORFEIT: { value: "forfeit", description: "The credits that a deleted account had left." },
  } as const satisfies Record<string, { readonly value: Line["kind"]; readonly description: string }>,
});

const LedgerLine = builder.objectRef<Line>("LedgerLine").implement({
  description: "A line of the ledger of an account. The `restId` is the UUID of its transaction, or the day of charges.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.creditGrants.getLines(ctx, ids))),
  fields: (t) => ({
    kind: t.expose("kind", { type: LedgerLineKind, description: "The reason of the change." }),
    bookedAt: t.expose("bookedAt", {
      type: "DateTime",
      description: "When the credits were added or taken. For charges, the start of their day (UTC).",
    }),
    bucket: t.expose("bucket", {
      type: MeterSourceEnum,
      nullable: true,
      description: "The bucket that was changed. Null for charges, and when there is more than one.",
    }),
    credits: t.field({
      type: "Credits",
      description: "The number of credits. Below 0 when they were taken.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    requests: t.exposeInt("requests", {
      nullable: true,
      description: "The number of requests of the day, free ones included. Null for other kinds.",
    }),
    note: t.exposeString("note", {
      nullable: true,
      description: "The note of a grant, or the tier of a refill. Null when there is none.",
    }),
    expiresAt: t.expose("expiresAt", {
      type: "DateTime",
      nullable: true,
      description: "When the next refill replaces these credits. Null for credits that do not expire.",
    }),
    balanceAfter: t.field({
      type: "Credits",
      description: "The balance of the account after this line. The charges of a day count at its end.",
      resolve: ({ balanceAfter }) => formatNanocredits(balanceAfter),
    }),
  }),
});

builder.prismaObjectField(Account, "ledger", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: LedgerLine, name: "LedgerConnection", description: "A page of ledger lines." },
      { name: "LedgerEdge", description: "A ledger line and its cursor." },
    ),
    nullable: true,
    description: "Grants, refills and the charges of each day, with the balance after each, newest first. Permission BALANCE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx) => {
      const page = await ctx.services.creditGrants.statement(ctx, id, toPageRequest(args, "ledger"));
      return toConnection(page, "ledger", statementPosition);
    },
  }),
);

const RefillPeriod = builder.enumType("RefillPeriod", {
  description: "How often a tier is refilled, at boundaries in UTC.",
  values: {
    HOUR: { value: "hour", description: "At each full hour." },
    DAY: { value: "day", description: "At midnight." },
    WEEK: { value: "week", description: "At midnight before each Monday." },
    MONTH: { value: "month", description: "At midnight before the first of each month." },
  } as const,
});

const TierRefill = builder.objectRef<Refill>("TierRefill").implement({
  description: "The refill of a tier.",
  fields: (t) => ({
    credits: t.field({
      type: "Credits",
      description: "The tier credits after a refill. Unused credits do not add up.",
      resolve: ({ nanocredits }) => formatNanocredits(nanocredits),
    }),
    period: t.expose("period", { type: RefillPeriod, description: "How often the credits are refilled." }),
  }),
});

builder.prismaObjectField(Account, "tierRefill", (t) =>
  t.field({
    type: TierRefill,
    nullable: true,
    description: "The refill of the account's tier. Null without refills. `nextResetAt` is the time of the next one. Permission PROFILE.",
    select: { tier: true },
    resolve: (account, _args, ctx) => ctx.services.creditGrants.refillOf(ctx, account),
  }),
);

const TopUp = builder.objectRef<ConfiguredTopUp>("TopUp").implement({
  description: "How to get credits on this gateway, as its operator configured it.",
  fields: (t) => ({
    text: t.exposeString("text", { nullable: true, description: "Plain text. Null when there is none." }),
    url: t.exposeString("url", { nullable: true, description: "A page: an https, http or mailto URL. Null when there is none." }),
  }),
});

builder.queryField("topUp", (t) =>
  t.field({
    type: TopUp,
    nullable: true,
    description: "How to get credits on this gateway. Null when the operator does not say.",
    resolve: (_root, _args, ctx) => ctx.services.creditGrants.topUp,
  }),
);
