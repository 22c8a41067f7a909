/** The receipt of a generation (docs/spec/generation.md#headers). */
import { formatNanocredits } from "../../lib/money.js";
import type { Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { Model, SafetyFeature } from "./models.js";
import { CancelPolicyEnum, CutReasonEnum } from "./receipt-values.js";
import { ATTEMPTS, shownCost, UPSTREAM, UPSTREAM_COST, UsageAttempt, VENDOR_KEY } from "./served-routes.js";
import { MeterSourceEnum, UsageAmounts, UsageSourceEnum, UsageStatusEnum } from "./usage.js";

export const Receipt = builder.objectRef<ReceiptObject>("Receipt").implement({
  description: "The receipt of a finished generation: its cost and performance. It is stored before it is returned.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST ID of the usage record." }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model, whose prices applied." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    modelUsedId: t.exposeID("modelUsed", {
      description: "The canonical ID of the model that answered. It differs from `modelId` after a fallback.",
    }),
    modelUsed: t.field({
      type: Model,
      nullable: true,
      description: "The model that answered. Null when it is no longer offered to the caller.",
      resolve: ({ modelUsed }, _args, ctx) => ctx.services.catalog.shown(ctx, modelUsed),
    }),
    cost: t.field({
      type: "Credits",
      description: "The amount charged.",
      resolve: (receipt) => formatNanocredits(receipt.costNanocredits),
    }),
    childCost: t.field({
      type: "Credits",
      nullable: true,
      description: "For agents: the total charge of the generations that the agent made. Null for other models.",
      resolve: ({ childCostNanocredits }) => (childCostNanocredits === undefined ? null : formatNanocredits(childCostNanocredits)),
    }),
    held: t.field({
      type: "Credits",
      description: "The credits held before the upstream was called.",
      resolve: (receipt) => formatNanocredits(receipt.heldNanocredits),
    }),
    meterSource: t.expose("meterSource", { type: MeterSourceEnum, description: "The bucket that paid the largest share." }),
    usage: t.field({ type: UsageAmounts, description: "The metered usage.", resolve: (receipt) => receipt.usage }),
    usageSource: t.expose("usageSource", { type: UsageSourceEnum, description: "How the usage was determined." }),
    status: t.expose("status", { type: UsageStatusEnum, description: "How the generation ended." }),
    cancelPolicy: t.expose("cancelPolicy", {
      type: CancelPolicyEnum,
      nullable: true,
      description: "The policy for a caller that disconnects. Null when the answer was stored before the gateway recorded policies.",
    }),
    cut: t.field({
      type: CutReasonEnum,
      nullable: true,
      description: "The limit of the request at which the answer was cut. Null when it was not cut by one.",
      resolve: ({ cut }) => cut ?? null,
    }),
    appMargin: t.field({
      type: "Credits",
      nullable: true,
      description:
        "The part of the cost that is the margin of the app that the key was granted to. Null: none, or of an earlier generation.",
      resolve: ({ marginNanocredits }) => (marginNanocredits === undefined ? null : formatNanocredits(marginNanocredits)),
    }),
    gatewayMs: t.exposeFloat("gatewayMs", { description: "Milliseconds spent in the gateway itself." }),
    upstreamMs: t.exposeFloat("upstreamMs", { description: "Milliseconds from the upstream call to its last byte." }),
    responseMs: t.exposeFloat("responseMs", { description: "Milliseconds from the request to the end of its answer." }),
    firstTokenMs: t.exposeFloat("firstTokenMs", {
      nullable: true,
      description: "Milliseconds from the request to the first token. Null for answers that are not streamed.",
    }),
    safetyApplied: t.field({
      type: [SafetyFeature],
      description: "The safety features applied to the input.",
      resolve: ({ safety }) => [...(safety?.applied ?? [])],
    }),
    safetyRedacted: t.field({
      type: [SafetyFeature],
      description: "The safety features that changed the input.",
      resolve: ({ safety }) => [...(safety?.redacted ?? [])],
    }),
    warnings: t.exposeStringList("warnings", { description: "Request parameters that had no effect, as one sentence each." }),
    upstream: t.exposeString("upstream", { nullable: true, description: UPSTREAM }),
    vendorKeyId: t.exposeID("vendorKeyId", { nullable: true, description: VENDOR_KEY }),
    attempts: t.field({ type: [UsageAttempt], description: ATTEMPTS, resolve: ({ attempts }) => attempts }),
    upstreamCost: t.field({
      type: "Credits",
      nullable: true,
      description: UPSTREAM_COST,
      resolve: ({ upstreamCostNanocredits }, _args, ctx) => shownCost(ctx, upstreamCostNanocredits),
    }),
  }),
});
