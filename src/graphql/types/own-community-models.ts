/** Where registered models are found: below me, at the root, as they change, and from the catalog's models. */
import type { OwnModelChange } from "../../services/community-models/community-models.js";
import { FALLBACK_CANDIDATES_MAX } from "../../services/community-models/limits.js";
import type { ModelChange } from "../../services/community-models/repository.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import type { GraphQLContext } from "../context.js";
import { rowsBatchedBy } from "../loaders.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { CommunityModel, CommunityModelProvider, FallbackCandidate, NEEDS_KEYS, readModelId } from "./community-models.js";
import { Model } from "./models.js";

builder.prismaObjectField(Account, "communityModels", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: CommunityModel, name: "CommunityModelConnection", description: "Registered models, page by page." },
      { name: "CommunityModelEdge", description: "A registered model, and its place in the list." },
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

const ONE_DESCRIPTION = `One of the account's models and agents. ${NEEDS_KEYS}`;

builder.prismaObjectField(Account, "communityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: ONE_DESCRIPTION,
    args: { id: t.arg.id({ required: true, description: "Which one." }) },
    resolve: (account, { id }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, account.id);
      return ctx.services.communityModels.getSelected(ctx, readModelId(id), selectionOf(ctx, info));
    },
  }),
);

builder.queryField("communityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: ONE_DESCRIPTION,
    deprecationReason: "Use `me { communityModel(id) }`.",
    args: { id: t.arg.id({ required: true, description: "Which one." }) },
    resolve: (_root, { id }, ctx, info) => ctx.services.communityModels.getSelected(ctx, readModelId(id), selectionOf(ctx, info)),
  }),
);

builder.prismaObjectField(Account, "communityModelProvider", (t) =>
  t.field({
    type: CommunityModelProvider,
    nullable: true,
    description: `Who offers the account's models. ${NEEDS_KEYS}`,
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.communityModels.provider(ctx);
    },
  }),
);

builder.queryField("fallbackCandidates", (t) =>
  t.field({
    type: [FallbackCandidate],
    nullable: true,
    description: `The models that could be fallbacks of one of the account's models, the account's own first; at most ${FALLBACK_CANDIDATES_MAX}. ${NEEDS_KEYS}`,
    deprecationReason: "Use `me { communityModel(id) { ... on ProxyModel { fallbackCandidates { model { id } } } } }`.",
    args: { communityModelId: t.arg.id({ required: true, description: "The one that is to have them." }) },
    complexity: { field: 1, multiplier: FALLBACK_CANDIDATES_MAX },
    resolve: async (_root, { communityModelId: id }, ctx) => [
      ...(await ctx.services.communityModels.fallbackCandidates(ctx, readModelId(id, "communityModelId"))),
    ],
  }),
);

const CommunityModelChangeKind = builder.enumType("CommunityModelChangeKind", {
  description: "What became of a registered model.",
  values: describedValues<ModelChange>({
    created: "It was registered.",
    updated: "Its owner has changed it, or what was scheduled has come due.",
    deleted: "It is gone.",
  }),
});

const CommunityModelChange = builder.objectRef<OwnModelChange>("CommunityModelChange").implement({
  description: "What became of one of the account's models.",
  fields: (t) => ({
    communityModelId: t.exposeID("id", { description: "The REST id of the registered model." }),
    change: t.expose("change", { type: CommunityModelChangeKind, description: "What became of it." }),
    communityModel: t.field({
      type: CommunityModel,
      nullable: true,
      description: "As it now is. Null: it is deleted.",
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
    description: `Each change of the account's models, and each scheduled change when it comes due. ${NEEDS_KEYS}`,
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.communityModels.changed(live), ctx.closing),
    resolve: (change) => change,
  }),
);

// The catalog's models lead to who has registered them.

const registeredBy = rowsBatchedBy((ctx: GraphQLContext, ids, select) => ctx.services.communityModels.getMany(ctx, ids, select));
const ownerBy = rowsBatchedBy((ctx: GraphQLContext, ids, select) => ctx.services.accounts.getMany(ctx, ids, select));

builder.objectField(Model, "communityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: `What its owner has registered. Null for everybody else. ${NEEDS_KEYS}`,
    resolve: (model, _args, ctx, info) =>
      model.communityModelId !== null && ctx.services.catalog.isOwn(ctx, model) ? registeredBy(ctx, model.communityModelId, info) : null,
  }),
);

builder.objectField(Model, "owner", (t) =>
  t.field({
    type: Account,
    nullable: true,
    description: "The account that registered it. Null: none has, or it is another's; operators see every one.",
    resolve: (model, _args, ctx, info) => {
      const ownerId = ctx.services.catalog.ownerOf(model);
      return ownerId === null || ctx.caller.kind === "anonymous" ? null : ownerBy(ctx, ownerId, info);
    },
  }),
);
