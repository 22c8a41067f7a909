/** How an owner's models do, live. */
import type { ModelHealthChange as Change } from "../../services/community-models/live-health.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readOptionalId } from "../global-ids.js";
import { COMMUNITY_MODEL_TYPES } from "./community-models.js";
import { Model } from "./models.js";

const ModelHealthChange = builder.objectRef<Change>("ModelHealthChange").implement({
  description: "Others' calls have changed a registered model's health.",
  fields: (t) => ({
    communityModelId: t.exposeID("id", { description: "The REST id of the registered model." }),
    modelId: t.exposeID("modelId", { description: "The REST id of the model, by which it is called: `community/<owner>/<name>`." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model, with its health as it now is. Null: it is gone, or not the calling key's to call.",
      resolve: ({ modelId }, _args, ctx) => ctx.services.catalog.shown(ctx, modelId),
    }),
  }),
});

builder.subscriptionField("modelHealthChanged", (t) =>
  t.field({
    type: ModelHealthChange,
    description: "The health of the account's registered models, or of one of them, when others' calls have changed it. Permission KEYS.",
    args: { id: t.arg.id({ description: "The registered model that is meant. Left out: all of them." }) },
    subscribe: (_root, { id }, ctx) =>
      cancellable(
        ctx,
        (live) => ctx.services.liveModelHealth.changes(live, readOptionalId(id, COMMUNITY_MODEL_TYPES, "id") ?? null),
        ctx.closing,
      ),
    resolve: (change) => change,
  }),
);
