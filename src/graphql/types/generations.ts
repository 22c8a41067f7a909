/** Generation jobs (docs/spec/generation.md#jobs): long media, which outlives the connection that asked for it. */

import type { GraphQLResolveInfo } from "graphql";
import type { ErrorCode } from "../../errors.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import { errorOf, type JOB_STATUSES, type JobError, type JobResult, progressOf, statusOf } from "../../services/generation/jobs/job.js";
import type { SelectedJob } from "../../services/generation/jobs/rows.js";
import { type ImageJobInput, imageGenerationInput } from "../../services/generation/media/images-input.js";
import { musicInput } from "../../services/generation/media/speech.js";
import { type VideoAspectRatio, videoInput } from "../../services/generation/media/videos-input.js";
import { fromStoredReceipt } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import type { GraphQLContext } from "../context.js";
import { MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText } from "../extra.js";
import { readId } from "../global-ids.js";
import { rowsBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, type PageArgs, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { ApiKey } from "./api-keys.js";
import { MusicInput, toWire } from "./audio-input.js";
import { Receipt } from "./chat.js";
import { oneImageFields, toImageBody } from "./images.js";
import { Modality, Model, SafetyFeature } from "./models.js";
import { apiKeyOf, UsageRecord } from "./usage.js";

const GenerationJobStatus = builder.enumType("GenerationJobStatus", {
  description: "How a job stands. Every status but RUNNING is final. Only what has SUCCEEDED was charged, or was CANCELLED too late.",
  values: {
    RUNNING: { value: "running", description: "It is being made." },
    SUCCEEDED: { value: "succeeded", description: "It has been made and charged, and its result can be fetched." },
    FAILED: { value: "failed", description: "It could not be made. Nothing was charged." },
    CANCELLED: { value: "cancelled", description: "It was given up. What its upstream had begun is charged." },
  } satisfies Record<string, { value: (typeof JOB_STATUSES)[number]; description: string }>,
});

const GenerationResult = builder.objectRef<JobResult>("GenerationResult").implement({
  description: "The file that a job has made.",
  fields: (t) => ({
    url: t.exposeString("url", { description: "Where the file is fetched, with a key that may see the job." }),
    contentType: t.exposeString("contentType", { description: "The media type of the file, such as `video/mp4`." }),
  }),
});

const GenerationErrorCode = builder.enumType("GenerationErrorCode", {
  description: "Why a job has failed, as in `extensions.code` of an error.",
  values: {
    BAD_REQUEST: { description: "The upstream found the request wrong." },
    CONTENT_BLOCKED: { description: "A safety feature, or the upstream's own, refused the content." },
    UNAUTHORIZED: { description: "The caller's credentials were not good any more." },
    INSUFFICIENT_BALANCE: { description: "The account could not pay." },
    KEY_BUDGET_EXHAUSTED: { description: "The key's budget was used up." },
    MAX_COST_EXCEEDED: { description: "It would have cost more than the request allowed." },
    FORBIDDEN: { description: "The caller was not allowed to do it." },
    NOT_FOUND: { description: "Something that the request names was not there." },
    METHOD_NOT_ALLOWED: { description: "Something was asked in a way that it cannot be." },
    CONFLICT: { description: "It met with something else that was going on." },
    PAYLOAD_TOO_LARGE: { description: "What was sent, or what it names, is too large." },
    UNSUPPORTED_MEDIA_TYPE: { description: "What was sent, or what it names, is of a kind that is not taken." },
    MISDIRECTED_REQUEST: { description: "It was sent to a host that the gateway does not answer to." },
    UPGRADE_REQUIRED: { description: "It has to be asked over a WebSocket." },
    RATE_LIMITED: { description: "A limit on the number of requests was met." },
    INTERNAL_ERROR: { description: "Something went wrong in the gateway." },
    UPSTREAM_ERROR: { description: "The upstream failed." },
    SERVICE_UNAVAILABLE: { description: "The gateway was stopped, or could not take it on." },
    UPSTREAM_TIMEOUT: { description: "The upstream took too long." },
  } satisfies Record<ErrorCode, { description: string }>,
});

const GenerationError = builder.objectRef<JobError>("GenerationError").implement({
  description: "Why a job has failed.",
  fields: (t) => ({
    code: t.expose("code", { type: GenerationErrorCode, description: "The kind of failure." }),
    message: t.exposeString("message", { description: "What went wrong, in a sentence." }),
    details: t.field({
      type: "JSON",
      nullable: true,
      description:
        "As in `extensions.details` of an error: `upstreamStatus`, `upstreamCode` and `retryAfterSeconds` of an upstream's refusal.",
      resolve: ({ details }) => details ?? null,
    }),
  }),
});

const usageRecordOf = rowsBatchedBy((ctx, ids, select) => ctx.services.usage.getMany(ctx, ids, select));
const jobOf = rowsBatchedBy((ctx, ids, select) => ctx.services.jobs.getMany(ctx, ids, select));

export const GenerationJob = builder.prismaObject("GenerationJob", {
  description: "A generation that runs as a job: it goes on when its caller leaves, and can be watched, cancelled and fetched later.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.jobs.getMany(ctx, ids, selectionOf(ctx, info, [], "GenerationJob"))),
  ),
  fields: (t) => ({
    modality: t.field({ type: Modality, description: "What is made.", select: { modality: true }, resolve: ({ modality }) => modality }),
    modelId: t.exposeID("model", { description: "The canonical id of the model asked for." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model asked for. Null: it is no longer offered to the caller.",
      select: { model: true },
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: "The REST id of the key that started it. Null: a session did." }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description:
        "The key that started it. Null: a session did. Of other keys than the calling one it needs a secret key with the permission KEYS.",
      select: { apiKeyId: true },
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    status: t.field({ type: GenerationJobStatus, description: "How it stands.", select: { status: true }, resolve: statusOf }),
    progress: t.int({
      description: "Percent, as far as the upstream tells; 100 when it has succeeded.",
      select: { status: true, progress: true },
      resolve: progressOf,
    }),
    result: t.field({
      type: GenerationResult,
      nullable: true,
      description: "What was made, once it has succeeded.",
      select: { status: true, resultContentType: true },
      resolve: (row, _args, ctx) => ctx.services.jobs.resultOf(row),
    }),
    receipt: t.field({
      type: Receipt,
      nullable: true,
      description: "What it cost, once it has succeeded, or was cancelled and has been charged.",
      select: { receipt: true },
      resolve: ({ receipt }) => (receipt === null ? null : fromStoredReceipt(receipt)),
    }),
    usageRecordId: t.id({
      nullable: true,
      description: "The REST id of its usage record, which is that of the job. Null: it has not been charged.",
      select: { receipt: true },
      resolve: ({ id, receipt }) => (receipt === null ? null : id),
    }),
    usageRecord: t.field({
      type: UsageRecord,
      nullable: true,
      description: "Its usage record. Null: it has not been charged. Permission USAGE.",
      select: { receipt: true },
      resolve: ({ id, receipt }, _args, ctx, info) => (receipt === null ? null : usageRecordOf(ctx, id, info)),
    }),
    error: t.field({
      type: GenerationError,
      nullable: true,
      description: "What went wrong, once it has failed.",
      select: { errorCode: true, errorMessage: true, request: true },
      resolve: errorOf,
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was started." }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true, description: "When it ended. Null: it is running." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When it is forgotten, and its result with it." }),
  }),
});

builder.prismaObjectField(UsageRecord, "job", (t) =>
  t.field({
    type: GenerationJob,
    nullable: true,
    description: "The job that this was, as long as it is remembered. Null: it was none, or is forgotten.",
    resolve: ({ id }, _args, ctx, info) => jobOf(ctx, id, info),
  }),
);

function jobPayload(name: string, description: string) {
  return builder.objectRef<{ readonly job: SelectedJob }>(name).implement({
    description,
    fields: (t) => ({ job: t.field({ type: GenerationJob, description: "The job as it now is.", resolve: ({ job }) => job }) }),
  });
}

async function toPayload(ctx: GraphQLContext, info: GraphQLResolveInfo, { id }: { readonly id: string }) {
  return { job: await ctx.services.jobs.getSelected(ctx, id, selectionOf(ctx, info, ["job"])) };
}

const VideoAspectRatioEnum = builder.enumType("VideoAspectRatio", {
  description: "How wide a video is for its height.",
  values: {
    LANDSCAPE: { value: "16:9", description: "16 to 9." },
    PORTRAIT: { value: "9:16", description: "9 to 16." },
  } satisfies Record<string, { value: VideoAspectRatio; description: string }>,
});

const StartVideoInput = builder.inputType("StartVideoInput", {
  description: "The video to be made.",
  fields: (t) => ({
    prompt: t.string({ required: true, description: "What is to be seen." }),
    model: t.string({ description: "An id or alias. Omitted: the default video model." }),
    duration: t.int({ description: "Seconds, 1 to 10. Omitted: the model's own length; 10 seconds are held." }),
    width: t.int({ description: "Pixels, 64 to 4096." }),
    height: t.int({ description: "Pixels, 64 to 4096." }),
    aspectRatio: t.field({ type: VideoAspectRatioEnum, description: "Omitted: the size decides, or the model." }),
    hasAudio: t.boolean({ defaultValue: false, description: "With sound.", extensions: { wireName: "audio" } }),
    seed: t.int({ description: "-1 draws one. Honoured by some models." }),
    negativePrompt: t.string({ description: "What should not be seen. Honoured by some models." }),
    images: t.stringList({ description: "Addresses of reference images, http or https.", extensions: { wireName: "image" } }),
    isEnhanced: t.boolean({
      defaultValue: false,
      description: "Has the default text model improve the prompt first, which is charged as a chat.",
      extensions: { wireName: "enhance" },
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
  }),
});

builder.mutationField("startVideo", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("StartVideoPayload", "A video that is being made."),
    nullable: true,
    description: "Starts a video. It is admitted and its cost held before this answers; it is charged when it has been made.",
    args: { input: t.arg({ type: StartVideoInput, required: true, description: "The video to be made." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { negativePrompt, images, hasAudio, isEnhanced, safe, maxCost, ...same } = input;
      const fields = { negative_prompt: negativePrompt, image: images, audio: hasAudio, enhance: isEnhanced, safe: toSafeText(safe) };
      return toPayload(
        ctx,
        info,
        await ctx.services.videos.start(boundedBy(ctx, maxCost), parsePermitted(ctx, requireCaller, videoInput, { ...same, ...fields })),
      );
    },
  }),
);

builder.mutationField("startMusic", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("StartMusicPayload", "A piece of music that is being made."),
    nullable: true,
    description: "As `generateMusic`, as a job: for pieces that take longer than a connection lasts.",
    args: { input: t.arg({ type: MusicInput, required: true, description: "The piece to be made." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const parsed = parsePermitted(ctx, requireCaller, musicInput, () => toWire(input));
      return toPayload(ctx, info, await ctx.services.music.start(boundedBy(ctx, input.maxCost), parsed));
    },
  }),
);

const StartImageInput = builder.inputType("StartImageInput", {
  description: "The picture to be made.",
  fields: oneImageFields,
});

builder.mutationField("startImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("StartImagePayload", "A picture that is being made."),
    nullable: true,
    description: "As `generateImage`, as a job that makes one picture: for models that take longer than a connection lasts.",
    args: { input: t.arg({ type: StartImageInput, required: true, description: "The picture to be made." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const parsed = parsePermitted(ctx, requireCaller, imageGenerationInput, () => toImageBody(input, ["n", "response_format"]));
      return toPayload(ctx, info, await ctx.services.images.start(boundedBy(ctx, input.maxCost), parsed as ImageJobInput));
    },
  }),
);

const CancelGenerationInput = builder.inputType("CancelGenerationInput", {
  description: "The job to be given up.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which job." }) }),
});

builder.mutationField("cancelGeneration", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("CancelGenerationPayload", "A job that was given up, unless it was too late."),
    nullable: true,
    description:
      "Gives a job up: its result will be nobody's. What its upstream has begun is finished all the same, and charged; its receipt says what. One that is finished, or whose answer is here and being charged, stays as it is.",
    args: { input: t.arg({ type: CancelGenerationInput, required: true, description: "The job to be given up." }) },
    resolve: async (_root, { input }, ctx, info) =>
      toPayload(ctx, info, await ctx.services.jobs.cancel(ctx, readId(input.id, "GenerationJob", "id"))),
  }),
);

function findJob(ctx: GraphQLContext, info: GraphQLResolveInfo, id: string): Promise<SelectedJob> {
  return ctx.services.jobs.getSelected(ctx, readId(id, "GenerationJob", "id"), selectionOf(ctx, info));
}

builder.queryField("generationJob", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerationJob,
    nullable: true,
    description: "A job of the account; a publishable key sees those that it has started itself.",
    args: { id: t.arg.id({ required: true, description: "Which job." }) },
    resolve: (_root, { id }, ctx, info) => findJob(ctx, info, id),
  }),
);

builder.queryField("generation", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerationJob,
    nullable: true,
    description: "A job of the account; a publishable key sees those that it has started itself.",
    deprecationReason: "Use `generationJob`.",
    args: { id: t.arg.id({ required: true, description: "Which job." }) },
    resolve: (_root, { id }, ctx, info) => findJob(ctx, info, id),
  }),
);

const GenerationJobConnection = builder.connectionObject(
  { type: GenerationJob, name: "GenerationJobConnection", description: "Generation jobs, page by page." },
  { name: "GenerationJobEdge", description: "A generation job, and its place in the list." },
);

async function listJobs(ctx: GraphQLContext, info: GraphQLResolveInfo, accountId: string, args: PageArgs) {
  ctx.services.accounts.assertOwn(ctx, accountId);
  const page = await ctx.services.jobs.listSelected(ctx, toPageRequest(args, "jobs"), connectionSelectionOf(ctx, info));
  return toConnection(page, "jobs", createdPosition);
}

builder.prismaObjectField(Account, "jobs", (t) =>
  t.field({
    type: GenerationJobConnection,
    nullable: true,
    description: "The account's jobs of the last day, newest first. Permission USAGE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: ({ id }, args, ctx, info) => listJobs(ctx, info, id, args),
  }),
);

builder.prismaObjectField(Account, "generations", (t) =>
  t.field({
    type: GenerationJobConnection,
    nullable: true,
    description: "The account's jobs of the last day, newest first. Permission USAGE.",
    deprecationReason: "Use `jobs`.",
    args: pageArgs,
    complexity: pageCost,
    resolve: ({ id }, args, ctx, info) => listJobs(ctx, info, id, args),
  }),
);

builder.subscriptionField("generationProgress", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerationJob,
    description: "A job as it is, then each time that it got further, until it is finished. Unsubscribing does not stop it.",
    args: { id: t.arg.id({ required: true, description: "Which job." }) },
    subscribe: (_root, { id }, ctx, info) => {
      const jobId = readId(id, "GenerationJob", "id");
      const selection = selectionOf(ctx, info);
      return cancellable(ctx, (live) => ctx.services.jobs.watch(live, jobId, selection), ctx.closing);
    },
    resolve: (job, _args, ctx, info) => {
      selectionOf(ctx, info);
      return job;
    },
  }),
);
