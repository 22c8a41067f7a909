import type { ModelHealthChange as Change } from "../../services/community-models/live-health.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readOptionalId } from "../global-ids.js";
import { COMMUNITY_MODEL_TYPES } from "./community-models.js";
import { Model } from "./models.js";

const ModelHealthChange = builder.objectRef<Change>("ModelHealthChange").implement({
  description: "A change in the health of a registered model, caused by calls of other accounts.",
  fields: (t) => ({
    communityModelId: t.exposeID("id", { description: "The REST ID of the registered model." }),
    modelId: t.exposeID("modelId", { description: "The REST ID of the model, used to call it: `community/<owner>/<name>`." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model with its new health. Null when it was deleted, or the calling key may not call it.",
      resolve: ({ modelId }, _args, ctx) => ctx.services.catalog.shown(ctx, modelId),
    }),
  }),
});

builder.subscriptionField("modelHealthChanged", (t) =>
  t.field({
    type: ModelHealthChange,
    description:
      "Health of the account's registered models, or of one of them, when calls of other accounts have changed it. Permission KEYS.",
    args: { id: t.arg.id({ description: "The ID of a registered model. Defaults to all." }) },
    subscribe: (_root, { id }, ctx) =>
      cancellable(ctx, (live) => ctx.services.liveModelHealth.changes(live, readOptionalId(id, COMMUNITY_MODEL_TYPES, "id") ?? null)),
    resolve: (change) => change,
  }),
);
