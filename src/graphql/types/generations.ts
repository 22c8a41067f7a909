/** Generation jobs (docs/spec/generation.md#jobs): long media, which outlives the connection that asked for it. */

import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { type GenerationJob, JOB_STATUSES } from "../../services/generation/jobs/job.js";
import { musicInput } from "../../services/generation/media/speech.js";
import { type VideoAspectRatio, videoInput } from "../../services/generation/media/videos-input.js";
import { builder, enumValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";
import { StartMusicInput, toWire } from "./audio-input.js";
import { Receipt } from "./chat.js";
import { Modality } from "./models.js";

const GenerationStatus = builder.enumType("GenerationStatus", {
  description: "Every status but RUNNING is final. Only what has SUCCEEDED was charged.",
  values: enumValues(JOB_STATUSES),
});

const GenerationResult = builder.objectRef<NonNullable<GenerationJob["result"]>>("GenerationResult").implement({
  fields: (t) => ({
    url: t.exposeString("url", { description: "Where the file is fetched, with a key that may see the generation." }),
    contentType: t.exposeString("contentType"),
  }),
});

const GenerationError = builder.objectRef<NonNullable<GenerationJob["error"]>>("GenerationError").implement({
  fields: (t) => ({
    code: t.exposeString("code", { description: "As in `extensions.code` of an error." }),
    message: t.exposeString("message"),
    details: t.field({
      type: "JSON",
      nullable: true,
      description:
        "As in `extensions.details` of an error: `upstreamStatus`, `upstreamCode` and `retryAfterSeconds` of an upstream's refusal.",
      resolve: ({ details }) => details ?? null,
    }),
  }),
});

export const Generation = builder.objectRef<GenerationJob>("Generation").implement({
  description: "A generation that runs as a job: it goes on when its caller leaves, and can be watched, cancelled and fetched later.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "Its usage record has the same." }),
    modality: t.expose("modality", { type: Modality }),
    model: t.exposeString("model", { description: "The canonical id of the model asked for." }),
    status: t.expose("status", { type: GenerationStatus }),
    progress: t.exposeInt("progress", { description: "Percent, as far as the upstream tells; 100 when it has succeeded." }),
    result: t.expose("result", { type: GenerationResult, nullable: true, description: "Once it has succeeded." }),
    receipt: t.expose("receipt", {
      type: Receipt,
      nullable: true,
      description: "Once it has succeeded, or was cancelled and has been charged.",
    }),
    error: t.expose("error", { type: GenerationError, nullable: true, description: "Once it has failed." }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When it is forgotten, and its result with it." }),
  }),
});

const VideoAspectRatioEnum = builder.enumType("VideoAspectRatio", {
  description: "LANDSCAPE is 16:9, PORTRAIT 9:16.",
  values: { LANDSCAPE: { value: "16:9" }, PORTRAIT: { value: "9:16" } } satisfies Record<string, { value: VideoAspectRatio }>,
});

const GenerateVideoInput = builder.inputType("GenerateVideoInput", {
  fields: (t) => ({
    prompt: t.string({ required: true }),
    model: t.string({ description: "An id or alias. Omitted: the default video model." }),
    duration: t.int({ description: "Seconds, 1 to 10. Omitted: the model's own length; 10 seconds are held." }),
    width: t.int({ description: "Pixels, 64 to 4096." }),
    height: t.int({ description: "Pixels, 64 to 4096." }),
    aspectRatio: t.field({ type: VideoAspectRatioEnum }),
    audio: t.boolean({ description: "With sound." }),
    seed: t.int({ description: "-1 draws one. Honoured by some models." }),
    negativePrompt: t.string({ description: "What should not be seen. Honoured by some models." }),
    images: t.stringList({ description: "Addresses of reference images, http or https." }),
    enhance: t.boolean({ description: "Has the default text model improve the prompt first, which is charged as a chat." }),
    safe: t.string({ description: "`true`, or safety features separated by commas." }),
  }),
});

builder.mutationField("generateVideo", (t) =>
  t.field({
    type: Generation,
    nullable: true,
    description: "Starts a video. It is admitted and its cost held before this answers; it is charged when it has been made.",
    args: { input: t.arg({ type: GenerateVideoInput, required: true }) },
    resolve: (_root, { input }, ctx) => {
      const { negativePrompt, images, ...same } = input;
      return ctx.services.videos.start(
        ctx,
        parsePermitted(ctx, requireCaller, videoInput, { ...same, negative_prompt: negativePrompt, image: images }),
      );
    },
  }),
);

builder.mutationField("startMusic", (t) =>
  t.field({
    type: Generation,
    nullable: true,
    description: "As `generateMusic`, as a job: for pieces that take longer than a connection lasts.",
    args: { input: t.arg({ type: StartMusicInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.music.start(
        ctx,
        parsePermitted(ctx, requireCaller, musicInput, () => toWire(input)),
      ),
  }),
);

const CancelGenerationInput = builder.inputType("CancelGenerationInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

builder.mutationField("cancelGeneration", (t) =>
  t.field({
    type: Generation,
    nullable: true,
    description:
      "Gives a job up: its result will be nobody's. What its upstream has begun is finished all the same, and charged; its receipt says what. One that is finished, or whose answer is here and being charged, stays as it is.",
    args: { input: t.arg({ type: CancelGenerationInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.jobs.cancel(ctx, input.id),
  }),
);

builder.queryField("generation", (t) =>
  t.field({
    type: Generation,
    nullable: true,
    description: "A job of the account; a publishable key sees those that it has started itself.",
    args: { id: t.arg.id({ required: true }) },
    resolve: (_root, { id }, ctx) => ctx.services.jobs.get(ctx, id),
  }),
);

builder.objectField(Account, "generations", (t) =>
  t.field({
    type: builder.connectionObject({ type: Generation, name: "GenerationConnection" }, { name: "GenerationEdge" }),
    nullable: true,
    description: "The account's jobs of the last day, newest first. Permission USAGE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async (_row, args, ctx) =>
      toConnection(await ctx.services.jobs.list(ctx, toPageRequest(args, "generations")), "generations", createdPosition),
  }),
);

builder.subscriptionField("generationProgress", (t) =>
  t.field({
    type: Generation,
    description: "A job as it is, then each time that it got further, until it is finished. Unsubscribing does not stop it.",
    args: { id: t.arg.id({ required: true }) },
    subscribe: (_root, { id }, ctx) => cancellable(ctx, (live) => ctx.services.jobs.watch(live, id), ctx.closing),
    resolve: (job) => job,
  }),
);
