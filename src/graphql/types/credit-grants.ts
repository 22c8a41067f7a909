/** Credits that an account was given, bought or paid in. */
import { formatNanocredits } from "../../lib/money.js";
import type { CreditGrant as Granted } from "../../services/accounts/credit-grants.js";
import { builder } from "../builder.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";
import { MeterSourceEnum } from "./usage.js";

const CreditGrant = builder.objectRef<Granted>("CreditGrant").implement({
  description:
    "Credits that came to an account otherwise than by its tier's refills. Its `restId` is the UUID that whoever granted it has given it, or one of the ledger.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.creditGrants.getMany(ctx, ids))),
  fields: (t) => ({
    bucket: t.expose("bucket", { type: MeterSourceEnum, description: "Where they went." }),
    credits: t.field({ type: "Credits", description: "How many.", resolve: ({ nanocredits }) => formatNanocredits(nanocredits) }),
    note: t.exposeString("note", { nullable: true, description: "What was written beside it. Null: nothing." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When they came." }),
  }),
});

builder.prismaObjectField(Account, "creditGrants", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: CreditGrant, name: "CreditGrantConnection", description: "Credits that were granted, page by page." },
      { name: "CreditGrantEdge", description: "Credits that were granted, and their place in the list." },
    ),
    nullable: true,
    description: "Credits that came otherwise than by the tier's refills, newest first. Permission BALANCE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx) => {
      const page = await ctx.services.creditGrants.list(ctx, id, toPageRequest(args, "creditGrants"));
      return toConnection(page, "creditGrants", createdPosition);
    },
  }),
);
