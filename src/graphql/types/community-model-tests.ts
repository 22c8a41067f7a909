/** The probe of an upstream (docs/spec/community-models.md#probe). */

import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { type CommunityModelTest as Test, testCommunityModelInput } from "../../services/community-models/probe.js";
import { builder } from "../builder.js";
import { NEEDS_KEYS, UpstreamApiEnum } from "./community-model-terms.js";
import { Modality } from "./models.js";

const CommunityModelTest = builder.objectRef<Test>("CommunityModelTest").implement({
  description: "How an upstream answered when it was probed. Nothing of what it said is told.",
  fields: (t) => ({
    ok: t.exposeBoolean("ok", { description: "It answers as a model of its modality does." }),
    status: t.exposeInt("status", { nullable: true, description: "The upstream's HTTP status; null without one." }),
    upstreamCode: t.exposeString("upstreamCode", {
      nullable: true,
      description: "Why, in a word of the gateway's own, such as model_not_found; null when it is not known.",
    }),
    latencyMs: t.exposeInt("latencyMs", { nullable: true, description: "To the whole answer; null without one." }),
    message: t.exposeString("message"),
  }),
});

const TestCommunityModelInput = builder.inputType("TestCommunityModelInput", {
  description: "A registered model by its id alone, or an upstream as it would be registered.",
  fields: (t) => ({
    id: t.id({ description: "Of a model of the account: it is probed with what it was registered with." }),
    modality: t.field({ type: Modality, description: "TEXT unless stated." }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model: required." }),
    url: t.string({ description: "Of a text model: required." }),
    baseUrl: t.string({ description: "Of other media: required." }),
    bearerToken: t.string({ description: "Without it, none is sent." }),
    upstreamModel: t.string({ description: "Required unless there is an id." }),
  }),
});

builder.mutationField("testCommunityModel", (t) =>
  t.field({
    type: CommunityModelTest,
    nullable: true,
    description: `Calls an upstream once, as cheaply as its modality allows; once in 30 seconds. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: TestCommunityModelInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.communityModelProbe.test(ctx, parsePermitted(ctx, requireKeyManager, testCommunityModelInput, input)),
  }),
);
