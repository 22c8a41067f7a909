/** How an owner's models do, live. */
import type { ModelHealthChange as Change } from "../../services/community-models/live-health.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { ModelHealth } from "./models.js";

const ModelHealthChange = builder.objectRef<Change>("ModelHealthChange").implement({
  fields: (t) => ({
    id: t.exposeID("id", { description: "The registered model's own." }),
    modelId: t.exposeID("modelId", { description: "What it is called by: `community/<owner>/<name>`." }),
    health: t.field({ type: ModelHealth, resolve: ({ health }) => health }),
  }),
});

builder.subscriptionField("modelHealthChanged", (t) =>
  t.field({
    type: ModelHealthChange,
    description: "The health of the account's registered models, or of one of them, when others' calls have changed it. Permission KEYS.",
    args: { id: t.arg.id({ description: "Absent: all of them." }) },
    subscribe: (_root, { id }, ctx) => cancellable(ctx, (live) => ctx.services.liveModelHealth.changes(live, id ?? null), ctx.closing),
    resolve: (change) => change,
  }),
);
