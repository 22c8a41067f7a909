/** Credits granted to an account, bought or paid in. */
import { formatNanocredits } from "../../lib/money.js";
import type { CreditGrant as Granted } from "../../services/accounts/credit-grants.js";
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
