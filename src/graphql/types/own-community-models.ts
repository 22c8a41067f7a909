/** Queries for registered models: fields of `me` and the root, the change subscription, and the link from catalog models. */
import type { OwnModelChange } from "../../services/community-models/community-models.js";
import type { ModelChange } from "../../services/community-models/repository.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import type { GraphQLContext } from "../context.js";
import { rowsBatchedBy } from "../loaders.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { CommunityModel, CommunityModelProvider, NEEDS_KEYS, readModelId } from "./community-models.js";
import { Model } from "./models.js";

builder.prismaObjectField(Account, "communityModels", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: CommunityModel, name: "CommunityModelConnection", description: "A page of registered models." },
      { name: "CommunityModelEdge", description: "A registered model and its cursor." },
    ),
    nullable: true,
    description: `The account's models and agents, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page = toPageRequest(args, "communityModels");
      const selection = connectionSelectionOf(ctx, info);
      return toConnection(await ctx.services.communityModels.listSelected(ctx, page, selection), "communityModels", createdPosition);
    },
  }),
);

const ONE_DESCRIPTION = `A model or agent of the account. ${NEEDS_KEYS}`;

builder.prismaObjectField(Account, "communityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: ONE_DESCRIPTION,
    args: { id: t.arg.id({ required: true, description: "The ID of the registered model." }) },
    resolve: (account, { id }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, account.id);
      return ctx.services.communityModels.getSelected(ctx, readModelId(id), selectionOf(ctx, info));
    },
  }),
);

builder.prismaObjectField(Account, "communityModelProvider", (t) =>
  t.field({
    type: CommunityModelProvider,
    nullable: true,
    description: `The provider of the account's models, as callers see it. ${NEEDS_KEYS}`,
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.communityModels.provider(ctx);
    },
  }),
);

const CommunityModelChangeKind = builder.enumType("CommunityModelChangeKind", {
  description: "The type of a change of a registered model.",
  values: describedValues<ModelChange>({
    created: "The model was registered.",
    updated: "The owner changed the model, or a scheduled change took effect.",
    deleted: "The model was deleted.",
  }),
});

const CommunityModelChange = builder.objectRef<OwnModelChange>("CommunityModelChange").implement({
  description: "A change of one of the account's models.",
  fields: (t) => ({
    communityModelId: t.exposeID("id", { description: "The REST ID of the registered model." }),
    change: t.expose("change", { type: CommunityModelChangeKind, description: "The type of the change." }),
    communityModel: t.field({
      type: CommunityModel,
      nullable: true,
      description: "The model after the change. Null when it was deleted.",
      resolve: async ({ id, change }, _args, ctx, info) => {
        if (change === "deleted") return null;
        const [model] = await ctx.services.communityModels.getMany(ctx, [id], selectionOf(ctx, info));
        return model ?? null;
      },
    }),
  }),
});

builder.subscriptionField("communityModelChanged", (t) =>
  t.field({
    type: CommunityModelChange,
    description: `Changes of the account's models, scheduled changes included when they take effect. ${NEEDS_KEYS}`,
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.communityModels.changed(live)),
    resolve: (change) => change,
  }),
);

const registeredBy = rowsBatchedBy((ctx: GraphQLContext, ids, select) => ctx.services.communityModels.getMany(ctx, ids, select));
const ownerBy = rowsBatchedBy((ctx: GraphQLContext, ids, select) => ctx.services.accounts.getMany(ctx, ids, select));

builder.objectField(Model, "communityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: `The registration of the model. Null unless the caller owns it. ${NEEDS_KEYS}`,
    resolve: (model, _args, ctx, info) =>
      model.communityModelId !== null && ctx.services.catalog.isOwn(ctx, model) ? registeredBy(ctx, model.communityModelId, info) : null,
  }),
);

builder.objectField(Model, "owner", (t) =>
  t.field({
    type: Account,
    nullable: true,
    description: "The account that registered the model. Null when no account did, or it is another account. Operators see every account.",
    resolve: (model, _args, ctx, info) => {
      const ownerId = ctx.services.catalog.ownerOf(model);
      return ownerId === null || ctx.caller.kind === "anonymous" ? null : ownerBy(ctx, ownerId, info);
    },
  }),
);
